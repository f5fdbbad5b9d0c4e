"""Several episodes advanced in lockstep, so that their motion queries are planned as one batch.

Each episode runs in its own lane until it needs a motion. Once every lane waits, one call plans all of the motions.
Only one lane runs at a time, in a fixed order, and lanes share nothing: an episode's result does not depend on the
number of lanes or on the episodes beside it.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from dataclasses import replace
from typing import Generic, Protocol

from nimbus.datagen.execute.coroutine import Coroutine
from nimbus.datagen.plan.batch import BatchPlanner
from nimbus.datagen.plan.motion import MotionPlan, MotionQuery
from nimbus.datagen.stages import Assets, LaneWatch, Planned, Randomized, named_errors


class Attempts(Protocol[Assets]):
    """Makes the attempts at one episode."""

    def __call__(self, item: Randomized[Assets], lane: Lane) -> Iterator[Planned[Assets]]:
        """Yield attempts; the last one is final."""
        ...


class Lane:
    """One of several episodes that are advanced in turn.

    Args:
        number: Position among the lanes.
    """

    def __init__(self, number: int) -> None:
        self.number = number
        self.spent = 0.0
        """Wall-clock time of this episode's own turns [s]."""
        self._cpu = self._cpu_since = 0.0
        self._turn: Coroutine | None = None
        self._asked: tuple[BatchPlanner, MotionQuery] | None = None
        self._plan: MotionPlan | None = None

    def clock(self) -> float:
        """Return the CPU time of this episode: its own turns and its share of the batches [s]."""
        return self._cpu + time.process_time() - self._cpu_since

    def exchange(self, planner: BatchPlanner, query: MotionQuery) -> MotionPlan:
        """Submit a query, and wait for its plan."""
        assert self._turn is not None
        self._asked = planner, query
        self._turn.pause()
        plan, self._plan = self._plan, None
        assert plan is not None
        return plan

    @property
    def is_free(self) -> bool:
        """True if the lane has no episode."""
        return self._turn is None

    @property
    def asked(self) -> tuple[BatchPlanner, MotionQuery] | None:
        """Planner and query that the episode waits for."""
        return self._asked

    def begin(self, work: Callable[[], None]) -> None:
        """Take an episode; :meth:`advance` starts it."""
        self._turn, self._cpu, self.spent = Coroutine(work), 0.0, 0.0

    def advance(self) -> None:
        """Run until the episode needs a motion or ends; raises its error."""
        assert self._turn is not None
        begin, self._cpu_since = time.monotonic(), time.process_time()
        self._turn.resume()
        self._cpu += time.process_time() - self._cpu_since
        self.spent += time.monotonic() - begin
        if self._turn.error is not None:
            raise self._turn.error
        if self._turn.done:
            self._turn = None

    def answer(self, plan: MotionPlan, cpu_time: float) -> None:
        """Deliver the plan of the query, with the query's share of the batch's CPU time [s]."""
        self._plan, self._asked = plan, None
        self._cpu += cpu_time

    def stop(self) -> None:
        """End the episode where it waits."""
        if self._turn is not None:
            self._turn.stop()
            self._turn = None


class Lockstep(Generic[Assets]):
    """Advances several episodes together.

    Args:
        attempts: Makes the attempts at one episode.
        lanes: Largest number of episodes in progress.
        watch: Called before each turn, and before each batch.
    """

    def __init__(self, attempts: Attempts[Assets], *, lanes: int, watch: LaneWatch[Assets]) -> None:
        self._attempts, self._watch = attempts, watch
        self._lanes = [Lane(number) for number in range(lanes)]
        self._items: dict[int, Randomized[Assets]] = {}
        self._made: list[Planned[Assets]] = []
        self.batches: Counter[int] = Counter()
        """Number of batches, keyed by the number of queries in a batch."""

    def run(self, items: Iterator[Randomized[Assets] | None]) -> Generator[Planned[Assets], None, None]:
        """Yield the attempts at all items, each as soon as it is made.

        Args:
            items: Source of episodes, read whenever a lane is free. None means that no episode is available now; the
                run ends if no lane is busy then.
        """
        try:
            while True:
                yield from self._advance(items)
                waiting = [(lane, lane.asked) for lane in self._lanes if lane.asked]
                if not waiting:
                    return
                queries = [asked for _, asked in waiting if asked]
                self._watch(None, 0.0)
                begin = time.process_time()
                # Each query contains its limits, and planners have no state, so the planner of any lane can plan all
                # queries.
                plans = queries[0][0].plan_batch([query for _, query in queries])
                share = (time.process_time() - begin) / len(plans)
                for (lane, _), plan in zip(waiting, plans, strict=True):
                    lane.answer(plan, share)
                self.batches[len(plans)] += 1
        finally:
            for lane in self._lanes:
                lane.stop()

    def _advance(self, items: Iterator[Randomized[Assets] | None]) -> Iterator[Planned[Assets]]:
        """Advance every lane to its next query; a lane whose episode ends takes another one."""
        for lane in self._lanes:
            while lane.asked is None:
                if lane.is_free:
                    if (item := next(items, None)) is None:
                        break
                    self._begin(lane, item)
                self._watch(self._items[lane.number], lane.spent)
                lane.advance()
                made, self._made = self._made, []
                yield from made

    def _begin(self, lane: Lane, item: Randomized[Assets]) -> None:
        self._items[lane.number] = item

        def work() -> None:
            """Make the attempts at one episode."""
            with named_errors("plan", item):
                before = item.times
                for planned in self._attempts(item, lane):
                    # The caller's thread yields the attempt when the turn ends.
                    self._made.append(replace(planned, times=before | planned.times))
                    before = {}  # times before planning are counted once, as in Stage.__call__

        lane.begin(work)
