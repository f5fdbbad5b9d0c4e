"""Messages between launcher, supervisor, fork server and workers: small plain values, never pictures or plans."""

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
    """Base of all messages; each carries the name of its class."""


# Supervisor to worker


class Order(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Work on an episode, and where its plan lies or is to lie."""

    index: int
    variants: tuple[int, ...]
    lease: int
    slot: int = -1
    """-1: in a file instead, or nowhere, when the pipeline has one role."""
    generation: int = 0
    spill: str = ""
    """File of a plan that has no slot or does not fit into it."""
    stored: str = ""
    """File of a stored variant, whose plan is to be shown."""
    stored_attempt: int = 0


class PlanOrder(Message, frozen=True, kw_only=True):
    """Plan episodes, one after the other, each into its shared slot; who does everything renders them, too."""

    orders: tuple[Order, ...]


class RenderOrder(Message, frozen=True, kw_only=True):
    """Render and stage plans, one after the other."""

    orders: tuple[Order, ...]


class Stop(Message, frozen=True, kw_only=True):
    """Close and leave."""


# Worker to supervisor


class Times(Message, frozen=True, kw_only=True):
    """Where the time went since the last such message."""

    spans: tuple[tuple[str, float, float], ...] = ()
    """Intervals of work: phase, begin and end [s since 1970]."""
    gaps: tuple[tuple[str, float, float], ...] = ()
    """Phase, largest gap between heartbeats and total [s]."""


class PlanMade(Message, frozen=True, kw_only=True):
    """A plan lies in its slot, or in the file."""

    index: int
    lease: int
    spilled: bool = False


class Idle(Times, frozen=True, kw_only=True):
    """Ready for something to do."""

    done: int
    """Orders carried out so far: an answer to an older state is not taken for a new one."""
    seconds: float = 0.0
    """[s] That the orders took, all together, which were carried out since the last such message."""
    flushing: bool = False
    """What was rendered last is still being written."""
    roles: tuple[str, ...] = ()
    """Halves of the chain that this worker has used: taking such a role again costs nothing."""


class Recorded(Message, frozen=True, kw_only=True):
    """Failed attempts, one row for each variant that would have shown them."""

    index: int
    lease: int
    attempts: tuple[Attempt, ...]


class EpisodeWritten(Message, frozen=True, kw_only=True):
    """An episode's file is whole and synced, under its staged name."""

    index: int
    lease: int
    attempt: Attempt
    path: str
    learned: DatasetInfo | None = None
    """What it tells about the dataset, when that is news."""


class WorkerError(Message, frozen=True, kw_only=True):
    """Why this worker leaves."""

    sort: str
    """``exception`` (a bug, of Nimbus or of somebody's own code), ``input`` (something of the user's), ``storage`` (the
    disk), ``lost_plan`` or ``garbled``."""
    line: str
    traceback: str = ""
    code: int = BUG
    same: str = ""
    """Equal for equal errors at the same place; empty where that says nothing."""


# Supervisor and fork server


class Spawn(Message, frozen=True, kw_only=True):
    """Fork a worker; its channel, the shared slots, the heartbeat page and its log come along as descriptors."""

    worker: int
    row: int
    instance: int = -1
    """Number of the instance of Isaac Sim that it is to be; -1: none."""


class Spawned(Message, frozen=True, kw_only=True):
    """The process of a worker."""

    worker: int
    pid: int


class Loaded(Message, frozen=True, kw_only=True):
    """The job is loaded."""

    origin: Origin
    has_planner: bool
    """The pipeline is cut in two roles."""
    load_time: float
    """[s] CPU"""
    compiles: bool = False
    """The renderer's kernels are not in the cache: compiling them comes first."""


class Ready(Message, frozen=True, kw_only=True):
    """Workers can be forked."""


# Supervisor to launcher


class Alive(Message, frozen=True, kw_only=True):
    """The supervisor's loop runs."""

    patience: float = 0.0
    """[s] It may say nothing for so long, because what it does next takes long."""


class Ended(Message, frozen=True, kw_only=True):
    """The run is over."""

    code: int
    state: str
    line: str = ""


AnyMessage: TypeAlias = (
    PlanOrder | RenderOrder | Stop
    | Times | PlanMade | Idle | Recorded | EpisodeWritten | WorkerError
    | Spawn | Spawned | Loaded | Ready
    | Alive | Ended
)  # fmt: skip

_ENCODER = msgspec.msgpack.Encoder(enc_hook=to_plain)
_DECODER = msgspec.msgpack.Decoder(list[AnyMessage])


def pack(message: Message) -> msgspec.Raw:
    """Encode a message to be sent later; its ``len`` is in bytes."""
    return msgspec.Raw(_ENCODER.encode(message))


def to_bytes(*messages: Message | msgspec.Raw) -> bytes:
    """Encode messages as one datagram, a list in MessagePack: unlike JSON it has NaN, and tells 1 from 1.0.

    Raises:
        TypeError: A field holds a value without a plain form.
    """
    return _ENCODER.encode(messages)


def all_from_bytes(content: bytes) -> Sequence[AnyMessage]:
    """Decode the messages of a datagram; ``ValueError`` when it is none."""
    try:
        return _DECODER.decode(content)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def from_bytes(content: bytes) -> AnyMessage:
    """Decode a datagram of one message; ``ValueError`` when it is none."""
    messages = all_from_bytes(content)
    if len(messages) != 1:
        raise ValueError(f"{len(messages)} messages, expected one")
    return messages[0]
