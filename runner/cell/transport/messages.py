"""Messages between launcher, supervisor, fork server and workers: small plain values, never images or plans."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import msgspec

from nimbus.datagen.errors import BUG
from nimbus.datagen.files.codec import to_plain
from nimbus.datagen.store.info import DatasetInfo
from nimbus.datagen.store.ledger.attempt import Attempt
from nimbus.runner.cell.transport.spec import Origin


class Message(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """Base of all messages; each is tagged with the name of its class."""


# Supervisor to worker


class Order(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Work on an episode, with the location of its plan."""

    index: int
    variants: tuple[int, ...]
    lease: int
    slot: int = -1
    """Shared slot of the plan; -1 when it is in a file, or when the pipeline has a single role."""
    generation: int = 0
    spill: str = ""
    """Spill file of a plan without a slot, or too large for it."""
    stored: str = ""
    """File of a stored variant whose plan is to be rendered."""
    stored_attempt: int = 0


class PlanOrder(Message, frozen=True, kw_only=True):
    """Order to plan episodes in turn, each into its shared slot; a worker without a separate role also renders them."""

    orders: tuple[Order, ...]
    lanes: int = 0
    """Number of episodes to advance together, while further orders are requested; 0 to plan these in sequence."""


class RenderOrder(Message, frozen=True, kw_only=True):
    """Order to render and stage plans in turn."""

    orders: tuple[Order, ...]


class Stop(Message, frozen=True, kw_only=True):
    """Order to exit."""


# Worker to supervisor


class Times(Message, frozen=True, kw_only=True):
    """Report of the time used since the previous report."""

    spans: tuple[tuple[str, float, float], ...] = ()
    """Intervals of work: phase, begin and end [s since 1970]."""
    gaps: tuple[tuple[str, float, float], ...] = ()
    """Phase, largest gap between heartbeats and total [s]."""


class PlanMade(Message, frozen=True, kw_only=True):
    """Report of a plan in its slot or spill file."""

    index: int
    lease: int
    spilled: bool = False


class Idle(Times, frozen=True, kw_only=True):
    """Request for orders."""

    done: int
    """Number of completed orders, which identifies a request sent before the latest order arrived."""
    seconds: float = 0.0
    """Total duration of the orders completed since the previous request [s]."""
    flushing: bool = False
    """True while the last rendered episode is still being written."""
    roles: tuple[str, ...] = ()
    """Halves of the chain that this worker has already built; such a role costs nothing to take again."""


class Refill(Times, frozen=True, kw_only=True):
    """Request for further orders while others are planned in lockstep."""

    room: int
    """Number of orders that it can take."""
    done: int
    seconds: float = 0.0
    """Duration of the orders completed since the previous request, as if they had been planned in sequence [s]."""


class Recorded(Message, frozen=True, kw_only=True):
    """Report of failed attempts, one row for each variant that would have shown them."""

    index: int
    lease: int
    attempts: tuple[Attempt, ...]


class EpisodeWritten(Message, frozen=True, kw_only=True):
    """Report of an episode's file that is complete and synced under its staged name."""

    index: int
    lease: int
    attempt: Attempt
    path: str
    learned: DatasetInfo | None = None
    """Description of the dataset inferred from the episode, when it is new."""


class WorkerError(Message, frozen=True, kw_only=True):
    """Reason for the exit of a worker."""

    sort: str
    """``exception`` (a bug in Nimbus or a plug-in), ``input`` (bad input), ``storage`` (the disk), ``lost_plan`` or
    ``garbled`` (an invalid message)."""
    line: str
    traceback: str = ""
    code: int = BUG
    same: str = ""
    """Digest equal for equal errors at the same position; empty where it has no meaning."""


# Supervisor and fork server


class Spawn(Message, frozen=True, kw_only=True):
    """Order to fork a worker; its channel, the shared slots, the heartbeat page and its log are sent as descriptors."""

    worker: int
    row: int
    instance: int = -1
    """Number of the Isaac Sim instance to become; -1 for none."""
    gpu: str = ""
    """UUID of the GPU to use; empty for none."""


class Spawned(Message, frozen=True, kw_only=True):
    """Report of a worker's process id."""

    worker: int
    pid: int


class Loaded(Message, frozen=True, kw_only=True):
    """Report of the loaded job."""

    origin: Origin
    has_planner: bool
    """True when the pipeline is split into two roles."""
    load_time: float
    """CPU time of loading [s]."""
    lanes: int = 1
    """Number of episodes that a planner advances together."""
    compiles: bool = False
    """True when the renderer's kernels are not cached and must be compiled first."""


class Ready(Message, frozen=True, kw_only=True):
    """Report that workers can be forked."""


# Supervisor to launcher


class Alive(Message, frozen=True, kw_only=True):
    """Sign of life of the supervisor's loop."""

    patience: float = 0.0
    """Longest silence to expect, because the next step takes long [s]."""


class Ended(Message, frozen=True, kw_only=True):
    """Result of a run."""

    code: int
    state: str
    line: str = ""


AnyMessage: TypeAlias = (
    PlanOrder | RenderOrder | Stop
    | Times | PlanMade | Idle | Refill | Recorded | EpisodeWritten | WorkerError
    | Spawn | Spawned | Loaded | Ready
    | Alive | Ended
)  # fmt: skip

_ENCODER = msgspec.msgpack.Encoder(enc_hook=to_plain)
_DECODER = msgspec.msgpack.Decoder(list[AnyMessage])


def pack(message: Message) -> msgspec.Raw:
    """Encode a message to be sent later; its ``len`` is in bytes."""
    return msgspec.Raw(_ENCODER.encode(message))


def to_bytes(*messages: Message | msgspec.Raw) -> bytes:
    """Encode messages as one datagram, a list in MessagePack, which unlike JSON has NaN and keeps 1 and 1.0 apart.

    Raises:
        TypeError: A field holds a value without a plain form.
    """
    return _ENCODER.encode(messages)


def all_from_bytes(content: bytes) -> Sequence[AnyMessage]:
    """Decode the messages of a datagram; raises ``ValueError`` for an invalid one."""
    try:
        return _DECODER.decode(content)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def from_bytes(content: bytes) -> AnyMessage:
    """Decode a datagram of one message; raises ``ValueError`` for an invalid one."""
    messages = all_from_bytes(content)
    if len(messages) != 1:
        raise ValueError(f"{len(messages)} messages, expected one")
    return messages[0]
