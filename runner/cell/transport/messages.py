"""What launcher, supervisor, fork server and workers say to each other: small plain values, never pictures or plans."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pydantic_core import to_json as json_bytes

from nimbus.datagen.store.info import DatasetInfo
from nimbus.datagen.store.json_text import from_json_bytes
from nimbus.datagen.store.ledger.attempt import Attempt
from nimbus.runner.cell.transport.spec import Origin

# Supervisor to worker


@dataclass(frozen=True, kw_only=True)
class Order:
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


@dataclass(frozen=True, kw_only=True)
class PlanOrder:
    """Plan episodes, one after the other, each into its slot of the slab; who does everything renders them, too."""

    orders: tuple[Order, ...]


@dataclass(frozen=True, kw_only=True)
class RenderOrder:
    """Render and stage plans, one after the other."""

    orders: tuple[Order, ...]


@dataclass(frozen=True, kw_only=True)
class Stop:
    """Close and leave."""


# Worker to supervisor


@dataclass(frozen=True, kw_only=True)
class Times:
    """Where the time went since the last such message."""

    spans: tuple[tuple[str, float, float], ...] = ()
    """Intervals of work: phase, begin and end [s since 1970]."""
    gaps: tuple[tuple[str, float, float], ...] = ()
    """Phase, largest gap between stamps and total [s]."""


@dataclass(frozen=True, kw_only=True)
class PlanMade:
    """A plan lies in its slot, or in the file."""

    index: int
    lease: int
    spilled: bool = False


@dataclass(frozen=True, kw_only=True)
class Idle(Times):
    """Ready for something to do."""

    done: int
    """Orders carried out so far: an answer to an older state is not taken for a new one."""
    seconds: float = 0.0
    """[s] That the orders took, all together, which were carried out since the last such message."""
    flushing: bool = False
    """What was rendered last is still being written."""
    roles: tuple[str, ...] = ()
    """Halves of the chain that this worker has used: taking such a role again costs nothing."""


@dataclass(frozen=True, kw_only=True)
class Recorded:
    """Failed attempts, one row for each variant that would have shown them."""

    index: int
    lease: int
    attempts: tuple[Attempt, ...]


@dataclass(frozen=True, kw_only=True)
class EpisodeWritten:
    """An episode's file is whole and synced, under its staged name."""

    index: int
    lease: int
    attempt: Attempt
    path: str
    learned: DatasetInfo | None = None
    """What it tells about the dataset, when that is news."""


@dataclass(frozen=True, kw_only=True)
class WorkerError:
    """Why this worker leaves."""

    sort: str
    """``exception`` (a bug, of Nimbus or of somebody's own code), ``input`` (something of the user's), ``storage`` (the
    disk), ``lost_plan`` or ``garbled``."""
    line: str
    traceback: str = ""
    code: int = 70
    same: str = ""
    """Equal for equal errors at the same place; empty where that says nothing."""


# Supervisor and fork server


@dataclass(frozen=True, kw_only=True)
class Spawn:
    """Fork a worker; its channel, the slab, the stamps and its log come along as descriptors."""

    worker: int
    seat: int
    instance: int = -1
    """Number of the instance of Isaac Sim that it is to be; -1: none."""


@dataclass(frozen=True, kw_only=True)
class Spawned:
    """The process of a worker."""

    worker: int
    pid: int


@dataclass(frozen=True, kw_only=True)
class Loaded:
    """The job is loaded."""

    origin: Origin
    has_planner: bool
    """The pipeline is cut in two roles."""
    load_time: float
    """[s] CPU"""
    compiles: bool = False
    """The renderer's kernels are not in the cache: compiling them comes first."""


@dataclass(frozen=True, kw_only=True)
class Ready:
    """Workers can be forked."""


# Supervisor to launcher


@dataclass(frozen=True, kw_only=True)
class Alive:
    """The supervisor's loop runs."""

    patience: float = 0.0
    """[s] It may say nothing for so long, because what it does next takes long."""


@dataclass(frozen=True, kw_only=True)
class Ended:
    """The run is over."""

    code: int
    state: str
    line: str = ""


_KINDS: dict[bytes, Any] = {
    kind.__name__.encode(): kind
    for kind in (
        *(PlanOrder, RenderOrder, Stop),
        *(Idle, PlanMade, Recorded, EpisodeWritten, Times, WorkerError),
        *(Spawn, Spawned, Loaded, Ready, Alive, Ended),
    )
}


def to_bytes(message: Any) -> bytes:
    """A message as it travels, a line: its kind, a space, its fields as JSON; a path arrives as text."""
    return b"%s %s" % (type(message).__name__.encode(), json_bytes(vars(message)))


def all_from_bytes(content: bytes) -> list[Any]:
    """The messages of a datagram, a line each; ``ValueError`` when one is none."""
    return [from_bytes(line) for line in content.split(b"\n")]


def from_bytes(content: bytes) -> Any:
    """The message that such bytes are; ``ValueError`` when they are none."""
    name, _, values = content.partition(b" ")
    kind = _KINDS.get(name)
    if kind is None:
        raise ValueError(f"unknown message {name[:40]!r}")
    return from_json_bytes(kind, values)
