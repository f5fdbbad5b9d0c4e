"""Status file: the state of a run for everything that displays it; described in ``docs/status.md``."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from msgspec import Meta

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.bounded import read_text
from nimbus.datagen.files.codec import from_json
from nimbus.datagen.store.remote.working_copy import is_remote
from nimbus.runner.monitor.lower_bound import LowerBound, find_bound

FILE_NAME = "status.json"
_BYTES = 16 << 20
"""Largest status file that is read [bytes]; with 1,000 workers the file has 0.3 MB."""
_SILENCE = 600.0
"""Age above which the status of a run into a store counts as that of a killed run [s], because its process cannot be
checked from another machine."""
STAGES = ("load", "randomize", "plan", "render", "store")
Span: TypeAlias = Annotated[float, Meta(ge=-1e11, le=1e11)]
"""Duration or time since 1970 [s], rate or cost; the limits keep values from other sources displayable."""
Whole: TypeAlias = Annotated[int, Meta(ge=-(2**53), le=2**53)]
"""Number of things or bytes that is exact as a double."""


@dataclass(frozen=True, kw_only=True)
class WorkerStatus:
    """Current state of one worker."""

    number: Whole
    """Number of the worker, counted over the run."""
    seat: Whole
    """Row in the heartbeat page, which a successor takes over."""
    pid: Whole
    """Process id; 0 while the worker is being started."""
    role: str
    phase: str
    index: Whole
    """Episode, -1 for none."""
    age: Span
    """Time since the last heartbeat [s]."""
    in_phase: Span
    """Time in the current phase [s]."""
    resident: Whole = 0
    """Resident memory [bytes]."""
    results: Whole = 0
    """Plans, rejections and stored episodes so far."""
    retiring: str = ""
    """Reason to exit after the current orders; empty for none."""
    gpu: str = ""
    """UUID of its GPU; empty for none."""


@dataclass(frozen=True, kw_only=True)
class RingStatus:
    """Slots with plans between planners and renderers."""

    slots: Whole = 0
    ready: Whole = 0
    """Number of plans that wait to be rendered."""
    taken: Whole = 0
    """Number of plans that renderers have the order to render."""
    granted: Whole = 0
    """Number of slots reserved for plans that are being made."""
    spilled: Whole = 0
    """Number of plans that wait in spill files."""


@dataclass(frozen=True, kw_only=True)
class Event:
    """Event of a run."""

    number: Whole
    """Number of the event, counted from 1."""
    text: str
    kind: str = "episode"
    """``episode`` (an attempt ended), ``phase`` (of the start-up), ``files`` (missing or unknown files), ``fault``,
    ``quarantine``, ``role``, ``workers`` (started, ended or replaced) or ``disk``."""
    time: Span = 0.0
    """Time of the event [s since 1970]."""


LEFT_STATES = ("gone", "failed")
"""States of nodes that have left the run."""


@dataclass(frozen=True, kw_only=True)
class NodeStatus:
    """Current state of one node of a cluster."""

    name: str
    host: str = ""
    pid: Whole = 0
    """Process id of its agent."""
    state: str = "starting"
    """``starting``, ``working``, ``full``, ``idle``, ``draining``, ``silent``, ``gone`` or ``failed``."""
    slots: Whole = 0
    """Number of episodes that the node makes at once."""
    workers: Whole = 0
    phases: dict[str, Whole] = field(default_factory=dict)
    """Number of workers in each phase."""
    held: Whole = 0
    """Number of episodes leased to the node."""
    stored: Whole = 0
    """Number of episodes settled by the node."""
    rate: Span = 0.0
    """Episodes settled per second since it joined [1/s]."""
    resident: Whole = 0
    """Resident memory [bytes]."""
    disk_free: Whole = 0
    """Free disk space [bytes]."""
    outbox: Whole = 0
    """Size of its episodes that are not acknowledged yet [bytes]."""
    since_beat: Span = 0.0
    """Time since its last message [s]."""
    group: str = ""
    """Task whose context it has loaded."""
    price_class: str = ""
    why: str = ""
    """Reason of the state of a node that drains, is gone or has failed."""


@dataclass(frozen=True, kw_only=True)
class ClusterStatus:
    """Nodes and leases of a cluster run."""

    leases: Whole = 0
    """Number of leases granted so far."""
    waiting: Whole = 0
    """Number of episodes that are not leased to a node."""
    held: Whole = 0
    """Number of episodes leased to nodes."""
    wanted_nodes: Whole = 0
    """Number of nodes that the job requests, if it has bounds."""
    node_hours: Span = 0.0
    cost: Span = 0.0
    """Cost of the node hours, if prices are known."""
    useful: Span = 0.0
    """Share of the slots' time in which settled episodes were made; the rest is idle or lost."""
    doubled: Whole = 0
    """Results that were dropped because another node had already delivered them."""
    nodes: tuple[NodeStatus, ...] = ()


@dataclass(kw_only=True)
class Status:
    """Content of ``status.json``."""

    task: str
    state: str = "running"
    """``running``, ``done``, ``short`` (ended with fewer episodes than requested), ``interrupted`` or ``failed``.
    Reading it can also give ``killed``, for a run whose process is gone."""
    mode: str = ""
    """``cell``, ``serial``, ``coupled`` or ``cluster``"""
    activity: str = ""
    """Activity of the run during its start, in a few words; empty during normal work."""
    pid: Whole = 0
    """Process id of the supervisor, or of the process that does the run."""
    launcher: Whole = 0
    """Process id of the launcher, which handles Ctrl-C and SIGTERM."""
    target: Whole = 0
    """Number of requested episodes."""
    unit: str = "episode"
    """Word for one of them in output: ``layout`` where the indices of layouts are given, as in an evaluation."""
    already: Whole = 0
    """Number of episodes that earlier runs have stored or given up."""
    already_stored: Whole = 0
    """Number of stored episodes among ``already``."""
    stored: Whole = 0
    """Number of episodes stored by this run."""
    given_up: Whole = 0
    """Number of episodes whose last attempt failed in this run."""
    quarantined: Whole = 0
    """Number of episodes that this run gave up because workers died at them."""
    attempts: Whole = 0
    """Number of attempts; a plan that several variants show counts once."""
    failures: dict[str, Whole] = field(default_factory=dict)
    """Failed attempts by reason."""
    counts: dict[str, Whole] = field(default_factory=dict)
    """Number of items produced by each stage."""
    cpu_times: dict[str, Span] = field(default_factory=dict)
    """Total CPU time by stage [s]."""
    waits: dict[str, Span] = field(default_factory=dict)
    """Time of waiting for a queue, by name [s]."""
    byte_count: Whole = 0
    step_count: Whole = 0
    started: Span = 0.0
    """Start of the run [s since 1970]."""
    updated: Span = 0.0
    """Time of the last update [s since 1970]."""
    startup_seconds: Span = 0.0
    """Time from the start to the first order [s]; 0 before that."""
    phases: dict[str, Span] = field(default_factory=dict)
    """Duration of each phase of the start-up, in order [s]: ``load``, ``compile``, ``workers``."""
    cores: Whole = 1
    split: tuple[Whole, Whole] = (0, 0)
    """Target number of planners and renderers."""
    scaled: Whole = 0
    """Number of the last ``nimbus scale`` request that was applied."""
    longest_episode: Span = 0.0
    """CPU time of the most expensive episode, without one-time loading [s]."""
    busy_times: dict[str, Span] = field(default_factory=dict)
    """Time since the first order during which each GPU, by UUID, and the disk (``disk``) were busy [s]."""
    faults: dict[str, Whole] = field(default_factory=dict)
    """Number of workers that died, hung or raised, by kind."""
    recycled: Whole = 0
    """Number of workers that were replaced because of their memory."""
    switches: Whole = 0
    """Number of changes of a worker's role."""
    workers: tuple[WorkerStatus, ...] = ()
    ring: RingStatus = field(default_factory=RingStatus)
    cluster: ClusterStatus | None = None
    """Nodes and leases of a run on several machines."""
    events: tuple[Event, ...] = ()
    """Latest events."""

    @property
    def settled(self) -> int:
        """Number of episodes that need no more work."""
        return self.already + self.stored + self.given_up + self.quarantined

    @property
    def elapsed(self) -> float:
        """Time since the start [s]."""
        return max(0.0, self.updated - self.started)

    @property
    def working(self) -> float:
        """Time since the first order [s], or since the start if that is unknown."""
        return max(0.0, self.elapsed - self.startup_seconds)

    @property
    def remaining(self) -> float | None:
        """Remaining time at the rate so far [s]; None while unknown."""
        done = self.stored + self.given_up + self.quarantined
        left = max(0, self.target - self.settled)
        return self.working / done * left if done else (0.0 if not left else None)

    @property
    def bound_seconds(self) -> float:
        """Shortest time that the measured work could have taken on these cores, GPUs and this disk [s]."""
        return self._bound(sum(self.cpu_times.values())).seconds

    @property
    def distance(self) -> float | None:
        """Ratio of the run's duration so far to the bound; None while unknown."""
        return self.elapsed / self.bound_seconds if self.bound_seconds else None

    @property
    def bound_after_startup(self) -> float:
        """Bound of the work without loading, which is done once [s]."""
        return self.working_bound.seconds

    @property
    def working_bound(self) -> LowerBound:
        """Bound of the work without loading, and the resource that determines it."""
        return self._bound(sum(self.cpu_times.values()) - self.cpu_times.get("load", 0.0))

    @property
    def distance_after_startup(self) -> float | None:
        """Ratio of the time since the first order to the bound; None while unknown."""
        return self.working / self.bound_after_startup if self.bound_after_startup else None

    def rate(self, stage: str) -> float | None:
        """Return the rate of items from a stage [1/s]; None before the first item."""
        count = self.counts.get(stage, 0)
        return count / self.working if count and self.working > 0 else None

    def to_plain(self) -> dict[str, Any]:
        """Return the content of the file: all fields, and derived values."""
        return vars(self) | {
            "settled": self.settled,
            "elapsed_seconds": self.elapsed,
            "remaining_seconds": self.remaining,
            "bound_seconds": self.bound_seconds,
            "distance": self.distance,
            "bound_after_startup": self.bound_after_startup,
            "distance_after_startup": self.distance_after_startup,
            "bound_by": self.working_bound.resource,
        }

    def _bound(self, cpu_seconds: float) -> LowerBound:
        return find_bound(cpu_seconds, cores=self.cores, longest_episode=self.longest_episode, busy=self.busy_times)


def read_status(folder: Path) -> Status | None:
    """Read the status of the last run in a folder; None when there is none.

    Raises:
        InputError: The file is not a status.
    """
    path = folder / FILE_NAME
    if not os.path.lexists(path):
        return None
    try:
        status = from_json(Status, read_text(path, limit=_BYTES, follow=False))
    except (InputError, ValueError):
        raise InputError("not the status file of a run", where=str(path), instead="delete this file") from None
    if status.state == "running":
        is_there = time.time() - status.updated < _SILENCE if is_remote(folder) else _is_alive(status.pid)
        status.state = "running" if is_there else "killed"
    return status


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        pass  # the process of another user
    return True
