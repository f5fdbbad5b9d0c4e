"""Messages between node agents and the head: JSON, none over 64 kB, all safe to repeat."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import msgspec

from nimbus.datagen.files.bounded import Count, Seconds
from nimbus.datagen.store.ledger.attempt import Attempt
from nimbus.datagen.store.ledger.records import Fault

MOST_BYTES = 64_000
"""[bytes] Largest message: larger content is sent in parts, so that no answer waits for long."""

FAILED = 3
"""Exit code of an agent whose node can do nothing: it is not started again."""


NodeName: TypeAlias = Annotated[str, msgspec.Meta(pattern=r"\A[A-Za-z0-9][A-Za-z0-9_.-]{0,99}\Z")]
"""Name of a node: a part of names of files, too."""
MOST_LETTERS = 1000
"""[characters] Longest :data:`ShortText`."""
ShortText: TypeAlias = Annotated[str, msgspec.Meta(max_length=MOST_LETTERS)]
Slots: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=100_000)]
SlotCount: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=100_000)]


class Struct(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", omit_defaults=True):
    """Base of all messages; ``kind`` names one."""


class Capabilities(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Resources that a node reports free."""

    simulators: tuple[str, ...] = ("newton",)
    engines: tuple[str, ...] = ("ompl",)
    """Motion planners."""
    cuda: bool = False
    rt: bool = False
    """GPUs with ray-tracing cores."""
    gpu_bytes: Count = 0
    """Free memory of its largest GPU."""
    memory_bytes: Count = 0
    """Available memory."""


class NodeReading(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """State of a node at a beat."""

    state: ShortText = "starting"
    """``starting``, ``working``, ``idle`` or ``draining``."""
    resident_bytes: Count = 0
    disk_free_bytes: Count = 0
    outbox_bytes: Count = 0
    """Size of episodes that are made and not acknowledged."""
    workers: Count = 0
    group: str = ""


class Join(Struct, frozen=True, kw_only=True, tag="join"):
    """First message of an agent; also after a restart of the head."""

    node: NodeName
    slots: Slots
    version: ShortText
    platform: ShortText
    host: ShortText
    pid: Count
    clock: Seconds
    """[s since 1970]"""
    price_class: ShortText = ""
    capabilities: Capabilities = msgspec.field(default_factory=Capabilities)
    """Resources that were free before the node loaded anything."""
    first: Count = 0
    """Number of the first task to be described; see :attr:`Joined.next`."""


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
    """Place of each stored attempt's files after the upload, by episode id, where names are not enough."""
    objects: dict[str, int] = msgspec.field(default_factory=dict)
    """Sizes of the objects that are in the store now, by name [bytes]."""
    is_partial: bool = False
    """Further rows follow, in another message."""
    seconds: Seconds = 0.0
    """[s] of one slot that it took."""


class Report(Struct, frozen=True, kw_only=True, tag="report"):
    """Settled episodes; answered once they are durable."""

    node: NodeName
    episodes: tuple[EpisodeReport, ...]
    info: str = ""
    """``dataset.json`` of the node, when it has changed."""


class Beat(Struct, frozen=True, kw_only=True, tag="beat"):
    """Sign of life, with every episode that the agent holds."""

    node: NodeName
    held: dict[str, tuple[Count, ...]]
    reading: NodeReading = msgspec.field(default_factory=NodeReading)
    capabilities: Capabilities | None = None
    """Resources that are free now, twice a minute."""


class GiveBack(Struct, frozen=True, kw_only=True, tag="give_back"):
    """Episodes that are not begun."""

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
    """Request for a URL with which the node may use one object of a store, for a while."""

    node: NodeName
    group: str
    name: ShortText
    method: Annotated[str, msgspec.Meta(pattern=r"\A(?:PUT|GET|HEAD)\Z")]


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
    """Place of uploads."""
    gpus: str | None = None
    """Text of ``--gpus``; the node chooses among its own."""


class Joined(Struct, frozen=True, kw_only=True, tag="joined"):
    """The node belongs to the cluster."""

    epoch: int
    tasks: tuple[CellTask, ...]
    next: int = 0
    """Number of the first task that has no room in this message; 0 when there is none."""


class JoinRefused(Struct, frozen=True, kw_only=True, tag="refused"):
    """The node does not fit; it exits with this line."""

    line: str


class Leased(Struct, frozen=True, kw_only=True, tag="leased"):
    """Episodes for a node."""

    number: int
    group: str
    indices: tuple[int, ...]


class NoLease(Struct, frozen=True, kw_only=True, tag="wait"):
    """Nothing for a node now."""

    seconds: float


class Finished(Struct, frozen=True, kw_only=True, tag="finished"):
    """Nothing more comes: the node leaves."""

    why: str = ""


class Reported(Struct, frozen=True, kw_only=True, tag="reported"):
    """Result of a report: the named episodes are settled, except for missing ones."""

    missing: tuple[tuple[str, int], ...] = ()
    """Episodes whose files are not in their places: upload them again."""
    is_full: bool = False
    """The head's disk is full: report again later."""


class Beaten(Struct, frozen=True, kw_only=True, tag="beaten"):
    """Answer to a beat."""

    recall: int = 0
    """Episodes to be given back, of those that are not begun."""
    drain: str = ""
    """Why the node is to leave."""


class Signed(Struct, frozen=True, kw_only=True, tag="signed"):
    """Answer to a request for a signature."""

    url: str = ""
    """Empty where the node may not use the object."""


class Done(Struct, frozen=True, kw_only=True, tag="done"):
    """The message was taken."""


class Unknown(Struct, frozen=True, kw_only=True, tag="unknown"):
    """The head does not know the node: join first."""


Request: TypeAlias = Join | LeaseRequest | Report | Beat | GiveBack | Vote | Faults | SignatureRequest | Leave
Answer: TypeAlias = Joined | JoinRefused | Leased | NoLease | Finished | Reported | Beaten | Signed | Done | Unknown

_encode = msgspec.json.Encoder().encode
_requests = msgspec.json.Decoder(Request)
_answers = msgspec.json.Decoder(Answer)


def to_line(message: Request | Answer) -> bytes:
    """Encode a message as one line.

    Raises:
        ValueError: It is too large.
    """
    line = _encode(message)
    if len(line) > MOST_BYTES:
        raise ValueError(f"a message of {len(line)} bytes: at most {MOST_BYTES}")
    return line


def request_of(line: bytes) -> Request:
    """Decode a request; ``ValueError`` when it is none."""
    return _requests.decode(line)


def answer_of(line: bytes) -> Answer:
    """Decode an answer; ``ValueError`` when it is none."""
    return _answers.decode(line)
