"""The queue of one run: where every episode is, and what a worker gets next. Pure."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum

from nimbus.runner.cell.queue.lease import Counts, Lease, Missing, Place, Role, Settled


class QueueState(StrEnum):
    """Where an index is on its way."""

    PENDING = "pending"
    PLANNING = "planning"
    PLANNED = "planned"
    RENDERING = "rendering"


@dataclass(slots=True)
class _QueuedEpisode:
    request: Missing
    open: dict[int, None]
    """Variants that are not settled, in order."""
    number: int
    state: QueueState = QueueState.PENDING
    lease: Lease | None = None
    place: Place | None = None
    unwritten: set[int] = field(default_factory=set)
    """Variants of the present lease whose files are not whole yet."""
    order: int = 0
    """Of the plan among all plans."""
    losses: int = 0
    is_isolated: bool = False


@dataclass(slots=True)
class _Waiting:
    """A heap whose outdated entries are passed over; first those lost least often, then the lowest."""

    state: QueueState
    entries: list[tuple[int, int, int]] = field(default_factory=list)

    def push(self, held: _QueuedEpisode) -> None:
        rank = held.order if self.state is QueueState.PLANNED else held.request.index
        heapq.heappush(self.entries, (held.losses, rank, held.request.index))

    def first(self, known: dict[int, _QueuedEpisode]) -> _QueuedEpisode | None:
        while self.entries:
            losses, _, index = self.entries[0]
            held = known.get(index)
            if held and held.state is self.state and held.losses == losses and not held.is_isolated:
                return held
            heapq.heappop(self.entries)
        return None


class WorkQueue:
    """The queue. Only indices under way are held: millions may be to come.

    Args:
        requests: What is to be made, read lazily, each index once: with growing indices, or, where more may follow
            later, in any order, with None for "nothing now".
        total: How many requests there are, for the counts; exact once all are read.
        has_planner: Episodes are planned first. Otherwise :meth:`next_render` hands out what is pending.
    """

    def __init__(self, requests: Iterable[Missing | None], *, total: int = 0, has_planner: bool = True) -> None:
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
        self._is_ordered = True
        """No request was missing yet when one was asked for: indices grow."""
        self._next: Missing | None = None
        self._exhausted = False

    def next_plan(self, worker: int) -> Lease | None:
        """Hand out the lowest pending index; those that were lost come behind all that were lost less often."""
        return self._hand_out(self._first_pending(), worker, Role.PLANNER) if self._has_planner else None

    def next_render(self, worker: int) -> Lease | None:
        """Hand out the oldest plan; those that were lost come behind all that were lost less often."""
        held = self._planned.first(self._held) if self._has_planner else self._first_pending()
        return self._hand_out(held, worker, Role.RENDERER)

    def next_isolated(self, worker: int, *, role: Role | None = None) -> Lease | None:
        """Hand out what was isolated first to a worker that has done nothing yet.

        Args:
            worker: Its number.
            role: The only one that it works in; None: planning or rendering.
        """
        for index, needed in self._isolated_roles():
            if role in (None, needed):
                return self._hand_out(self._held[index], worker, needed)
        return None

    def planned(self, index: int, place: Place, *, lease: int) -> bool:
        """A plan lies at its place. False when nothing waits for it (an old lease): the place can be freed."""
        held = self._held.get(index)
        if held is None or held.lease is None or held.state is not QueueState.PLANNING or held.number != lease:
            return False
        self._take_back(held)
        self._plans += 1
        held.place, held.order = place, self._plans
        held.losses = 0  # of planning, which is over
        self._queue(held)
        return True

    def rendered(self, index: int, variant: int, *, lease: int) -> Place | None:
        """A variant's file is whole, though not yet stored.

        Returns:
            The place to be freed, when this was the lease's last variant: nobody needs the plan any more, but for a
            file that is lost before it is stored, for which it is made again.
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
        """Settle a variant that is stored or rejected, by any worker; a second time changes nothing.

        Returns:
            The place to be freed, when this was the index's last variant and its plan lies somewhere.
        """
        held = self._held.get(index)
        if held is None or variant not in held.open:
            return None
        del held.open[variant]
        self._results[kind] += 1
        if held.open:
            return None
        self._settled += 1
        return self._release(held)

    def is_written(self, index: int) -> bool:
        """A lease of this index goes on, and all of its files are whole."""
        held = self._held.get(index)
        return held is not None and held.lease is not None and not held.unwritten

    def is_complete(self, index: int) -> bool:
        """Nothing of this index is to be made any more."""
        if index in self._held or (self._next is not None and self._next.index == index):
            return False
        return index <= self._last or self._exhausted or not self._is_ordered

    def expect(self, total: int) -> None:
        """Set how many requests there are, which grows where they follow later."""
        self._total = total

    def lost(self, worker: int, *, index: int | None = None) -> tuple[Lease, ...]:
        """Take back what a worker had, or one index of it: a plan in its place waits again, another is made again.

        Returns:
            The leases that ended; their role says where each went.
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
            raise ValueError(f"episode {index} is with worker {held.lease.worker}")
        held.is_isolated = True
        self._isolated[index] = None

    def replan(self, index: int) -> Place | None:
        """Make the plan of an index anew, because what lies at its place cannot be read.

        Returns:
            The place to be freed.
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
        """Give an index up (quarantine), whoever has it.

        Returns:
            The place to be freed.
        """
        held = self._held.get(index)
        if held is None:
            return None
        self._quarantined += 1
        return self._release(held)

    def held_by(self, worker: int) -> tuple[Lease, ...]:
        """What a worker has."""
        if not (indices := self._by_worker.get(worker)):
            return ()
        leases = (self._held[index].lease for index in sorted(indices))
        return tuple(lease for lease in leases if lease)

    @property
    def finished(self) -> bool:
        """Everything asked for is settled or quarantined."""
        return not self._held and self._peek() is None and self._exhausted

    @property
    def has_plan(self) -> bool:
        """A plan waits to be rendered."""
        return self._planned.first(self._held) is not None

    @property
    def has_pending(self) -> bool:
        """An index waits for its plan, or is still to come."""
        return self._pending.first(self._held) is not None or self._peek() is not None

    @property
    def isolated_roles(self) -> set[Role]:
        """Roles in which indices wait for a worker that has done nothing yet."""
        return {role for _, role in self._isolated_roles()}

    @property
    def counts(self) -> Counts:
        """How many are where."""
        self._peek()
        to_come = int(self._next is not None)
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
        """Isolated indices, each with the role that it needs next."""
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
                self._is_ordered = False
                break
            if self._is_ordered and request.index <= self._last:
                raise ValueError(f"index {request.index} after {self._last}: indices must grow")
            self._last = request.index
            self._next = request if request.variants else None
        return self._next

    def _first_pending(self) -> _QueuedEpisode | None:
        held = self._pending.first(self._held)
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
