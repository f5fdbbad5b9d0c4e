"""Messages between node agents and the head: JSON of at most 64 kB. Every request can be repeated safely.

A larger request is sent in parts; see :mod:`nimbus.runner.cluster.message_parts`.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

import msgspec

from nimbus.datagen.files.bounded import Count, Seconds
from nimbus.datagen.store.ledger.attempt import Attempt
from nimbus.datagen.store.ledger.records import Fault
from nimbus.runner.cluster.reported_rows import check_rows
from nimbus.runner.monitor.status import Status

MOST_BYTES = 64_000
"""Size limit of a message [bytes]; larger content is sent in parts, so that no message delays others for long."""

FAILED = 3
"""Exit code of an agent whose node cannot work; it is not restarted."""


NodeName: TypeAlias = Annotated[str, msgspec.Meta(pattern=r"\A[A-Za-z0-9][A-Za-z0-9_.-]{0,99}\Z")]
"""Name of a node, which is also part of file names."""
MOST_LETTERS = 1000
"""Longest :data:`ShortText` [characters]."""
StagedName: TypeAlias = Annotated[str, msgspec.Meta(pattern=r"\A[A-Za-z0-9][A-Za-z0-9_.-]{0,254}\Z")]
"""Name of an uploaded file in the folder of staged files."""
ShortText: TypeAlias = Annotated[str, msgspec.Meta(max_length=MOST_LETTERS)]
Slots: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=100_000)]
SlotCount: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=100_000)]


class Struct(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", omit_defaults=True):
    """Base class of all messages; the field ``kind`` of the JSON names the class."""


class Capabilities(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Resources of a node that are free for tasks."""

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
    """``starting``, ``working``, ``full`` (it waits for the store), ``idle`` or ``draining``."""
    resident_bytes: Count = 0
    disk_free_bytes: Count = 0
    outbox_bytes: Count = 0
    """Size of the files of finished, unacknowledged episodes [bytes]."""
    workers: Count = 0
    phases: dict[str, Count] = msgspec.field(default_factory=dict)
    """Number of workers by their current phase."""
    group: str = ""
    """Group of a running cell; empty without one."""


class Join(Struct, frozen=True, kw_only=True, tag="join"):
    """Request of an agent to join; repeated after a restart of the head."""

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
    """Free resources before any cell of the node started."""
    first: Count = 0
    """Number of the first task to describe; see :attr:`Joined.next`."""


class LeaseRequest(Struct, frozen=True, kw_only=True, tag="pull"):
    """Request for a lease."""

    node: NodeName
    idle: SlotCount
    """Number of slots without work."""
    ahead: SlotCount
    """Number of slots without work after their current episode."""


class EpisodeReport(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Rows of one episode."""

    group: str
    index: Count
    lease: Count
    """Number of the lease."""
    attempts: tuple[Attempt, ...]
    staged: dict[str, StagedName] = msgspec.field(default_factory=dict)
    """Location of the uploaded files by attempt (``<episode id>.a<attempt>``); empty if their names suffice."""
    objects: dict[str, Count] = msgspec.field(default_factory=dict)
    """Sizes of the objects in the store, by name [bytes]."""
    is_partial: bool = False
    """True if more rows of the episode follow in another message."""
    seconds: Seconds = 0.0
    """Time of one slot for the episode [s]."""

    def __post_init__(self) -> None:
        check_rows(self.attempts)


class Report(Struct, frozen=True, kw_only=True, tag="report"):
    """Report of settled episodes, answered once they are durable."""

    node: NodeName
    episodes: tuple[EpisodeReport, ...]
    info: str = ""
    """Content of the node's ``dataset.json`` for the episodes' group; empty if it is that of the last report."""


class Description(Struct, frozen=True, kw_only=True, tag="description"):
    """Last content of a cell's ``dataset.json``, which is written some seconds after the rows that were reported."""

    node: NodeName
    group: str
    info: str


class Beat(Struct, frozen=True, kw_only=True, tag="beat"):
    """Heartbeat of an agent."""

    node: NodeName
    held: dict[str, tuple[Count, ...]]
    """Indices of all episodes that the agent holds, by group."""
    spare: Count | None = None
    """Number of held episodes that were not passed to a cell yet, so that they can be recalled."""
    reading: NodeReading = msgspec.field(default_factory=NodeReading)
    capabilities: Capabilities | None = None
    """Free resources; sent twice per minute, otherwise None."""


class GiveBack(Struct, frozen=True, kw_only=True, tag="give_back"):
    """Return of episodes that the node has not begun."""

    node: NodeName
    group: str
    indices: tuple[Count, ...]


class Vote(Struct, frozen=True, kw_only=True, tag="vote"):
    """Evidence that an episode crashes workers."""

    node: NodeName
    group: str
    index: Count
    evidence: ShortText


class Faults(Struct, frozen=True, kw_only=True, tag="faults"):
    """Faults in a cell of the node."""

    node: NodeName
    group: str
    rows: tuple[Fault, ...]


class SignatureRequest(Struct, frozen=True, kw_only=True, tag="sign"):
    """Request for a temporary URL that gives the node access to one object of a store."""

    node: NodeName
    group: str
    name: ShortText
    """Path of the object in the dataset."""
    method: Annotated[str, msgspec.Meta(pattern=r"\A(?:PUT|GET|HEAD)\Z")]


class Details(Struct, frozen=True, kw_only=True, tag="details"):
    """Status of the cell that works on a node, for its own page."""

    node: NodeName
    status: Status


class MessagePart(Struct, frozen=True, kw_only=True, tag="part"):
    """Part of a request that is larger than a message; the answer to the last part is the answer to the request."""

    node: NodeName
    begin: Count
    """Position of the part in the request [characters]."""
    text: str
    """Part of the JSON of the request."""
    is_last: bool = False


class Leave(Struct, frozen=True, kw_only=True, tag="leave"):
    """Last message of an agent."""

    node: NodeName
    why: ShortText
    has_failed: bool = False
    """True if the node leaves because it cannot work."""


class CellTask(msgspec.Struct, frozen=True, kw_only=True):
    """Task for which a node starts a cell."""

    group: str
    """Name of the task in the job."""
    spec: str
    """:class:`CellSpec` as JSON; the node sets its folder, feed and workers."""
    task_hash: str
    inputs: dict[str, str]
    """Fingerprint of the inputs of the task, as the head knows it."""
    upload: str
    """Destination of uploads: a folder, or an address in a store."""
    gpus: str | None = None
    """Value of ``--gpus``, which the node applies to its own GPUs."""


class Joined(Struct, frozen=True, kw_only=True, tag="joined"):
    """Acceptance of a node into the cluster."""

    epoch: int
    """Number of the head's current start."""
    tasks: tuple[CellTask, ...]
    next: int = 0
    """Number of the first task that did not fit into this message; 0 if all did."""


class JoinRefused(Struct, frozen=True, kw_only=True, tag="refused"):
    """Refusal of a node, whose agent then exits."""

    line: str
    """Reason, in one line."""


class Leased(Struct, frozen=True, kw_only=True, tag="leased"):
    """Lease of episodes to a node."""

    number: int
    group: str
    indices: tuple[int, ...]


class NoLease(Struct, frozen=True, kw_only=True, tag="wait"):
    """Answer that there is no work for a node now."""

    seconds: float
    """Time after which the node asks again [s]."""


class Finished(Struct, frozen=True, kw_only=True, tag="finished"):
    """Answer that there is no more work for a node, which then leaves."""

    why: str = ""
    has_failed: bool = False
    """True if everything fails on the node, so that another one must replace it."""


class Reported(Struct, frozen=True, kw_only=True, tag="reported"):
    """Answer to a report: its episodes are settled, except for those in ``missing``."""

    missing: tuple[tuple[str, int], ...] = ()
    """Groups and indices of the episodes whose files are missing and must be uploaded again."""
    is_full: bool = False
    """True if the head's disk is full; nothing is settled, and the node must report again later."""


class Beaten(Struct, frozen=True, kw_only=True, tag="beaten"):
    """Answer to a heartbeat."""

    recall: int = 0
    """Number of not yet begun episodes that the node must give back."""
    drain: str = ""
    """Reason why the node must leave; empty if it stays."""
    has_failed: bool = False
    """True if everything fails on the node, so that another one must replace it."""


class Signed(Struct, frozen=True, kw_only=True, tag="signed"):
    """Answer to a :class:`SignatureRequest`."""

    url: str = ""
    """URL; empty if the node may not use the object."""


class Done(Struct, frozen=True, kw_only=True, tag="done"):
    """Acknowledgment of a message."""


class Unknown(Struct, frozen=True, kw_only=True, tag="unknown"):
    """Answer to a node that the head does not know; it must join first."""


Request: TypeAlias = (
    Join
    | LeaseRequest
    | Report
    | Description
    | Beat
    | Details
    | GiveBack
    | Vote
    | Faults
    | SignatureRequest
    | MessagePart
    | Leave
)
Answer: TypeAlias = Joined | JoinRefused | Leased | NoLease | Finished | Reported | Beaten | Signed | Done | Unknown

_encode = msgspec.json.Encoder().encode
_requests = msgspec.json.Decoder(Request)
_answers = msgspec.json.Decoder(Answer)


def encoded(message: Request | Answer) -> bytes:
    """Encode a message of any size as JSON without line breaks."""
    return _encode(message)


def to_line(message: Request | Answer) -> bytes:
    """Encode a message as one line, without the line break.

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
