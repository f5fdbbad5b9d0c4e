"""Messages between node agents and the head: JSON of at most 64 kB, all safe to repeat."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import msgspec

from nimbus.datagen.files.bounded import Count, Seconds
from nimbus.datagen.store.ledger.attempt import Attempt
from nimbus.datagen.store.ledger.records import Fault
from nimbus.runner.monitor.status import Status

MOST_BYTES = 64_000
"""Largest message; larger content is sent in parts, so that no answer waits for long [bytes]."""

FAILED = 3
"""Exit code of an agent whose node cannot work; it is not restarted."""


NodeName: TypeAlias = Annotated[str, msgspec.Meta(pattern=r"\A[A-Za-z0-9][A-Za-z0-9_.-]{0,99}\Z")]
"""Name of a node, which is also part of file names."""
MOST_LETTERS = 1000
"""Longest :data:`ShortText` [characters]."""
ShortText: TypeAlias = Annotated[str, msgspec.Meta(max_length=MOST_LETTERS)]
Slots: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=100_000)]
SlotCount: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=100_000)]


class Struct(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", omit_defaults=True):
    """Base of all messages, distinguished by ``kind``."""


class Capabilities(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Free resources reported by a node."""

    simulators: tuple[str, ...] = ("newton",)
    engines: tuple[str, ...] = ("ompl",)
    """Motion planners."""
    cuda: bool = False
    rt: bool = False
    """GPUs with ray-tracing cores."""
    gpu_bytes: Count = 0
    """Free memory of its largest GPU [bytes]."""
    memory_bytes: Count = 0
    """Available memory [bytes]."""


class NodeReading(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """State of a node at a heartbeat."""

    state: ShortText = "starting"
    """``starting``, ``working``, ``idle`` or ``draining``."""
    resident_bytes: Count = 0
    disk_free_bytes: Count = 0
    outbox_bytes: Count = 0
    """Size of finished, unacknowledged episodes [bytes]."""
    workers: Count = 0
    phases: dict[str, Count] = msgspec.field(default_factory=dict)
    """Workers by what they do now."""
    group: str = ""


class Join(Struct, frozen=True, kw_only=True, tag="join"):
    """First message of an agent, also after a restart of the head."""

    node: NodeName
    slots: Slots
    version: ShortText
    platform: ShortText
    host: ShortText
    pid: Count
    clock: Seconds
    """Time of the node's clock [s since 1970]."""
    price_class: ShortText = ""
    capabilities: Capabilities = msgspec.field(default_factory=Capabilities)
    """Free resources before the node loaded anything."""
    first: Count = 0
    """Number of the first task to describe; see :attr:`Joined.next`."""


class LeaseRequest(Struct, frozen=True, kw_only=True, tag="pull"):
    """Request for a lease."""

    node: NodeName
    idle: SlotCount
    ahead: SlotCount


class EpisodeReport(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Rows of one episode."""

    group: str
    index: Count
    lease: Count
    attempts: tuple[Attempt, ...]
    staged: dict[str, str] = msgspec.field(default_factory=dict)
    """Location of each stored attempt's files after the upload, by episode id, if names do not suffice."""
    objects: dict[str, int] = msgspec.field(default_factory=dict)
    """Sizes of the objects in the store, by name [bytes]."""
    is_partial: bool = False
    """True if further rows follow in another message."""
    seconds: Seconds = 0.0
    """Time of one slot for the episode [s]."""


class Report(Struct, frozen=True, kw_only=True, tag="report"):
    """Report of settled episodes, answered once they are durable."""

    node: NodeName
    episodes: tuple[EpisodeReport, ...]
    info: str = ""
    """Content of ``dataset.json`` of the node, when it has changed."""


class Beat(Struct, frozen=True, kw_only=True, tag="beat"):
    """Heartbeat, with every episode that the agent holds."""

    node: NodeName
    held: dict[str, tuple[Count, ...]]
    spare: Count | None = None
    """Number of held episodes that no cell has, and that can be recalled."""
    reading: NodeReading = msgspec.field(default_factory=NodeReading)
    capabilities: Capabilities | None = None
    """Free resources, twice a minute."""


class GiveBack(Struct, frozen=True, kw_only=True, tag="give_back"):
    """Episodes not begun."""

    node: NodeName
    group: str
    indices: tuple[Count, ...]


class Vote(Struct, frozen=True, kw_only=True, tag="vote"):
    """Evidence that an episode ends workers."""

    node: NodeName
    group: str
    index: Count
    evidence: ShortText


class Faults(Struct, frozen=True, kw_only=True, tag="faults"):
    """Faults of a node's cell."""

    node: NodeName
    group: str
    rows: tuple[Fault, ...]


class SignatureRequest(Struct, frozen=True, kw_only=True, tag="sign"):
    """Request for a temporary URL with which the node may use one object of a store."""

    node: NodeName
    group: str
    name: ShortText
    method: Annotated[str, msgspec.Meta(pattern=r"\A(?:PUT|GET|HEAD)\Z")]


class Details(Struct, frozen=True, kw_only=True, tag="details"):
    """Status of the cell that works on a node, for its own page."""

    node: NodeName
    status: Status


class Leave(Struct, frozen=True, kw_only=True, tag="leave"):
    """Last message of an agent."""

    node: NodeName
    why: ShortText
    has_failed: bool = False


class CellTask(msgspec.Struct, frozen=True, kw_only=True):
    """Cell that a node starts for a group."""

    group: str
    spec: str
    """CellSpec as JSON; the node sets folder, feed and workers."""
    task_hash: str
    inputs: dict[str, str]
    upload: str
    """Destination of uploads."""
    gpus: str | None = None
    """Text of ``--gpus``; the node chooses among its own GPUs."""


class Joined(Struct, frozen=True, kw_only=True, tag="joined"):
    """Acceptance of a node into the cluster."""

    epoch: int
    tasks: tuple[CellTask, ...]
    next: int = 0
    """Number of the first task that does not fit into this message; 0 if all fit."""


class JoinRefused(Struct, frozen=True, kw_only=True, tag="refused"):
    """Refusal of a node, which exits with this reason."""

    line: str


class Leased(Struct, frozen=True, kw_only=True, tag="leased"):
    """Lease of episodes for a node."""

    number: int
    group: str
    indices: tuple[int, ...]


class NoLease(Struct, frozen=True, kw_only=True, tag="wait"):
    """Answer that there is no work for a node now."""

    seconds: float


class Finished(Struct, frozen=True, kw_only=True, tag="finished"):
    """Answer that there is no more work: the node leaves."""

    why: str = ""
    has_failed: bool = False
    """True if the node fails everything; another one has to take its place."""


class Reported(Struct, frozen=True, kw_only=True, tag="reported"):
    """Result of a report: the named episodes are settled, except for missing ones."""

    missing: tuple[tuple[str, int], ...] = ()
    """Episodes whose files are missing and must be uploaded again."""
    is_full: bool = False
    """True if the head's disk is full, so that the node must report again later."""


class Beaten(Struct, frozen=True, kw_only=True, tag="beaten"):
    """Answer to a heartbeat."""

    recall: int = 0
    """Number of episodes to give back, of those not begun."""
    drain: str = ""
    """Reason why the node must leave."""
    has_failed: bool = False
    """As in :class:`Finished`."""


class Signed(Struct, frozen=True, kw_only=True, tag="signed"):
    """Answer to a request for a signature."""

    url: str = ""
    """URL; empty if the node may not use the object."""


class Done(Struct, frozen=True, kw_only=True, tag="done"):
    """Acknowledgment of a message."""


class Unknown(Struct, frozen=True, kw_only=True, tag="unknown"):
    """Answer that the head does not know the node, which must join first."""


Request: TypeAlias = Join | LeaseRequest | Report | Beat | Details | GiveBack | Vote | Faults | SignatureRequest | Leave
Answer: TypeAlias = Joined | JoinRefused | Leased | NoLease | Finished | Reported | Beaten | Signed | Done | Unknown

_encode = msgspec.json.Encoder().encode
_requests = msgspec.json.Decoder(Request)
_answers = msgspec.json.Decoder(Answer)


def to_line(message: Request | Answer) -> bytes:
    """Encode a message as one line.

    Raises:
        ValueError: The message is too large.
    """
    line = _encode(message)
    if len(line) > MOST_BYTES:
        raise ValueError(f"a message of {len(line)} bytes: at most {MOST_BYTES}")
    return line


def request_of(line: bytes) -> Request:
    """Decode a request; raise ``ValueError`` for other texts."""
    return _requests.decode(line)


def answer_of(line: bytes) -> Answer:
    """Decode an answer; raise ``ValueError`` for other texts."""
    return _answers.decode(line)
