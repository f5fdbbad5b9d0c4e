"""Work queue of a run: state of every episode, and the next work for a worker. Pure."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum

from nimbus.runner.cell.queue.lease import Counts, Lease, Missing, Place, Role, Settled


class QueueState(StrEnum):
    """State of an index in the queue."""

    PENDING = "pending"
    PLANNING = "planning"
    PLANNED = "planned"
    RENDERING = "rendering"


@dataclass(slots=True)
class _QueuedEpisode:
    request: Missing
    open: dict[int, None]
    """Unsettled variants, in order."""
    number: int
    state: QueueState = QueueState.PENDING
    lease: Lease | None = None
    place: Place | None = None
    unwritten: set[int] = field(default_factory=set)
    """Variants of the current lease whose files are incomplete."""
    order: int = 0
    """Position of the plan among all plans."""
    losses: int = 0
    is_isolated: bool = False


@dataclass(slots=True)
class _Waiting:
    """Heap with lazy deletion, ordered by number of losses, then rank."""

    state: QueueState
    entries: list[tuple[int, int, int]] = field(default_factory=list)

    def push(self, held: _QueuedEpisode) -> None:
        rank = held.order if self.state is QueueState.PLANNED else held.request.index
        # By losses first: an episode that keeps killing workers must not block the others.
        heapq.heappush(self.entries, (held.losses, rank, held.request.index))

    def first(self, known: dict[int, _QueuedEpisode]) -> _QueuedEpisode | None:
        while self.entries:
            # Entries are never updated in place: one whose state or loss count has changed is outdated and dropped
            # here.
            losses, _, index = self.entries[0]
            held = known.get(index)
            if held and held.state is self.state and held.losses == losses and not held.is_isolated:
                return held
            heapq.heappop(self.entries)
        return None


class WorkQueue:
    """Queue of a run's episodes. It holds only indices in progress, because millions more may follow.

    Args:
        requests: Missing work, read lazily, each index once, with None for "nothing now" where more may follow later.
        total: Number of requests, for the counts; exact once all are read.
        is_ordered: True when indices grow; checked while they are read.
        has_planner: True when planning is a separate role. Otherwise :meth:`next_render` hands out pending indices.
    """

    def __init__(
        self, requests: Iterable[Missing | None], *, total: int = 0, is_ordered: bool = True, has_planner: bool = True
    ) -> None:
        self._requests: Iterator[Missing | None] = iter(requests)
        self._total, self._has_planner = total, has_planner
        self._held: dict[int, _QueuedEpisode] = {}
        self._by_worker: dict[int, set[int]] = {}
        self._pending, self._planned = _Waiting(QueueState.PENDING), _Waiting(QueueState.PLANNED)
        self._isolated: dict[int, None] = {}
        self._states: Counter[QueueState] = Counter()
        self._results: Counter[Settled] = Counter()
        self._settled = self._quarantined = self._drawn = self._plans = 0
        self._last = -1
        self._is_ordered = is_ordered
        self._next: Missing | None = None
        self._exhausted = False

    def next_plan(self, worker: int, *, is_fresh: bool = False) -> Lease | None:
        """Lease a pending index: the lowest of those with the fewest losses.

        Args:
            worker: Number of the worker.
            is_fresh: True to lease only an index that was never lost.
        """
        if not self._has_planner or (is_fresh and not self._has_fresh_pending()):
            return None
        return self._hand_out(self._first_pending(), worker, Role.PLANNER)

    def next_render(self, worker: int) -> Lease | None:
        """Lease a plan: the oldest of those with the fewest losses."""
        held = self._planned.first(self._held) if self._has_planner else self._first_pending()
        return self._hand_out(held, worker, Role.RENDERER)

    def next_isolated(self, worker: int, *, role: Role | None = None) -> Lease | None:
        """Lease to a fresh worker the index that was isolated first.

        Args:
            worker: Number of the worker.
            role: Only role that the worker can take; None for either.
        """
        for index, needed in self._isolated_roles():
            if role in (None, needed):
                return self._hand_out(self._held[index], worker, needed)
        return None

    def planned(self, index: int, place: Place, *, lease: int) -> bool:
        """Record a plan at its location; False when the lease is outdated, and the location can be freed."""
        held = self._held.get(index)
        # A worker that was presumed dead may still send its plan; the lease number shows that its lease has ended.
        if held is None or held.lease is None or held.state is not QueueState.PLANNING or held.number != lease:
            return False
        self._take_back(held)
        self._plans += 1
        held.place, held.order = place, self._plans
        held.losses = 0  # losses during planning say nothing about rendering
        self._queue(held)
        return True

    def rendered(self, index: int, variant: int, *, lease: int) -> Place | None:
        """Record that a variant's file is complete, though not yet stored.

        Returns:
            Location to be freed when this was the lease's last variant. If a file is lost before it is stored, the plan
            is made again.
        """
        held = self._held.get(index)
        if held is None or held.lease is None or held.number != lease:
            return None
        held.unwritten.discard(variant)
        if held.unwritten:
            return None
        place, held.place = held.place, None
        return place

    def settled(self, index: int, variant: int, kind: Settled) -> Place | None:
        """Settle a variant as stored or rejected, by whichever worker; repeated calls change nothing.

        Returns:
            Location to be freed when this was the index's last variant and its plan still has one.
        """
        held = self._held.get(index)
        if held is None or variant not in held.open:
            return None
        del held.open[variant]
        self._results[kind] += 1
        # Variants settle one by one; the episode, its plan and its lease stay until the last one.
        if held.open:
            return None
        self._settled += 1
        return self._release(held)

    def losses(self, index: int) -> int:
        """Return how often the lease of an index was lost."""
        held = self._held.get(index)
        return held.losses if held else 0

    def is_written(self, index: int) -> bool:
        """Return True when a lease of this index runs and all of its files are complete."""
        held = self._held.get(index)
        return held is not None and held.lease is not None and not held.unwritten

    def is_complete(self, index: int) -> bool:
        """Return True when this index needs no further work."""
        # Settled indices are not kept, because there may be millions. An index that was read from the source and is
        # no longer held is therefore complete.
        if index in self._held or (self._next is not None and self._next.index == index):
            return False
        return index <= self._last or self._exhausted or not self._is_ordered

    def expect(self, total: int) -> None:
        """Set the number of requests, which grows when more of them arrive during the run."""
        self._total = total

    def lost(self, worker: int, *, index: int | None = None) -> tuple[Lease, ...]:
        """Take back all leases of a worker, or that of one index.

        An index with a plan waits again to be rendered; one without a plan waits again to be planned.

        Returns:
            The leases that ended; the role of each shows which work its index waits for again.
        """
        indices = sorted(self._by_worker.get(worker, ())) if index is None else [index]
        leases = []
        for each in indices:
            held = self._held.get(each)
            if held and held.lease and held.lease.worker == worker:
                leases.append(self._take_back(held))
                held.losses += 1
                self._queue(held)
        return tuple(leases)

    def isolate(self, index: int) -> None:
        """Keep a waiting index for :meth:`next_isolated`."""
        held = self._held[index]
        if held.lease:
            raise ValueError(f"episode {index} is leased to worker {held.lease.worker}")
        held.is_isolated = True
        self._isolated[index] = None

    def replan(self, index: int) -> Place | None:
        """Requeue an index for planning because the plan at its location cannot be read.

        Returns:
            Location to be freed.
        """
        held = self._held.get(index)
        if held is None or held.place is None:
            return None
        if held.lease:
            self._take_back(held)
        place, held.place = held.place, None
        held.losses += 1
        self._queue(held)
        return place

    def drop(self, index: int) -> Place | None:
        """Quarantine an index, even while it is leased.

        Returns:
            Location to be freed.
        """
        held = self._held.get(index)
        if held is None:
            return None
        self._quarantined += 1
        return self._release(held)

    def held_by(self, worker: int) -> tuple[Lease, ...]:
        """Return the leases of a worker."""
        if not (indices := self._by_worker.get(worker)):
            return ()
        leases = (self._held[index].lease for index in sorted(indices))
        return tuple(lease for lease in leases if lease)

    @property
    def finished(self) -> bool:
        """True when all requested work is settled or quarantined."""
        return not self._held and self._peek() is None and self._exhausted

    @property
    def has_plan(self) -> bool:
        """True when a plan waits to be rendered."""
        return self._planned.first(self._held) is not None

    @property
    def has_pending(self) -> bool:
        """True when an index waits to be planned, or is still to come."""
        return self._pending.first(self._held) is not None or self._peek() is not None

    @property
    def isolated_roles(self) -> set[Role]:
        """Roles for which isolated indices wait."""
        return {role for _, role in self._isolated_roles()}

    @property
    def counts(self) -> Counts:
        """Number of indices by state."""
        self._peek()
        to_come = int(self._next is not None)
        # The source is lazy: until it is read to its end, the caller's total is used to count the remaining requests.
        if not self._exhausted:
            to_come = max(to_come, self._total - self._drawn)
        planned_isolated = sum(self._held[index].state is QueueState.PLANNED for index in self._isolated)
        return Counts(
            pending=self._states[QueueState.PENDING] - (len(self._isolated) - planned_isolated) + to_come,
            planning=self._states[QueueState.PLANNING],
            planned=self._states[QueueState.PLANNED] - planned_isolated,
            rendering=self._states[QueueState.RENDERING],
            isolated=len(self._isolated),
            settled=self._settled,
            quarantined=self._quarantined,
            stored=self._results[Settled.STORED],
            rejected=self._results[Settled.REJECTED],
        )

    def _isolated_roles(self) -> Iterator[tuple[int, Role]]:
        """Yield isolated indices, each with the role that it needs next."""
        for index in self._isolated:
            plans = self._has_planner and self._held[index].state is QueueState.PENDING
            yield index, Role.PLANNER if plans else Role.RENDERER

    def _peek(self) -> Missing | None:
        while self._next is None and not self._exhausted:
            try:
                request = next(self._requests)
            except StopIteration:
                self._exhausted = True
                break
            if request is None:
                break
            if self._is_ordered and request.index <= self._last:
                raise ValueError(f"index {request.index} after {self._last}: indices must grow")
            self._last = request.index
            self._next = request if request.variants else None
        return self._next

    def _has_fresh_pending(self) -> bool:
        held = self._pending.first(self._held)
        return (held is not None and not held.losses) or self._peek() is not None

    def _first_pending(self) -> _QueuedEpisode | None:
        held = self._pending.first(self._held)
        # New indices go first, because the lost ones may be what kills workers.
        if (held is None or held.losses) and (request := self._peek()):
            self._next = None
            self._drawn += 1
            held = _QueuedEpisode(request, dict.fromkeys(request.variants), request.leases)
            self._held[request.index] = held
            self._states[held.state] += 1
        return held

    def _hand_out(self, held: _QueuedEpisode | None, worker: int, role: Role) -> Lease | None:
        if held is None:
            return None
        # The number grows after a loss as well: a late result of the lost lease has a smaller one and is refused.
        held.number += 1
        held.lease = lease = Lease(
            index=held.request.index,
            number=held.number,
            role=role,
            worker=worker,
            variants=tuple(held.open),
            place=held.place,
            stored_plan=held.request.stored_plan,
            stored_attempt=held.request.stored_attempt,
            is_isolated=held.is_isolated,
        )
        held.is_isolated, held.unwritten = False, set(held.open)
        self._isolated.pop(lease.index, None)
        self._by_worker.setdefault(worker, set()).add(lease.index)
        self._move(held, QueueState.PLANNING if role is Role.PLANNER else QueueState.RENDERING)
        return lease

    def _take_back(self, held: _QueuedEpisode) -> Lease:
        lease, held.lease = held.lease, None
        assert lease is not None
        items = self._by_worker[lease.worker]
        items.remove(lease.index)
        if not items:
            del self._by_worker[lease.worker]
        return lease

    def _queue(self, held: _QueuedEpisode) -> None:
        queue = self._pending if held.place is None else self._planned
        self._move(held, queue.state)
        queue.push(held)

    def _move(self, held: _QueuedEpisode, state: QueueState) -> None:
        self._states[held.state] -= 1
        held.state = state
        self._states[state] += 1

    def _release(self, held: _QueuedEpisode) -> Place | None:
        if held.lease:
            self._take_back(held)
        self._states[held.state] -= 1
        self._isolated.pop(held.request.index, None)
        del self._held[held.request.index]
        return held.place
