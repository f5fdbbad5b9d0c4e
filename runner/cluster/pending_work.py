"""Pending episodes of a task, sorted by expected cost, longest first. No side effects."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass
from enum import IntEnum

from nimbus.runner.cluster.cost_model import CostModel

_WINDOW = 16_384
"""Number of episodes that are classified at once, which takes 0.3 s; the order matters only near the end of a job."""
_FEW_LOSSES = 2
"""Number of lost nodes after which an episode waits behind all others, because it may be the cause of the losses."""


class ItemState(IntEnum):
    """State of an episode."""

    PENDING = 0
    HELD = 1
    SETTLED = 2
    GIVEN_UP = 3


@dataclass(frozen=True, kw_only=True)
class WorkGroup:
    """Episodes of one task of a job; a node loads the task once for all of them."""

    name: str
    count: int
    """Number of episodes; their indices start at 0."""
    priority: int = 0
    """Priority; a group with a higher number comes first."""
    load_seconds: float = 0.0
    """Time to load the task on a node [s]; 0 while unknown."""
    weights: tuple[float, ...] = (1.0,)
    """Relative cost of each cost class before measurements."""


def one_class(index: int) -> int:
    """Return cost class 0 for every episode."""
    return 0


class PendingWork:
    """Pending episodes of one group.

    Args:
        group: Group of the episodes.
        states: State of each episode by index (:class:`ItemState`), shared with the balance; changed in place.
        cost_class: Function from the index of an episode to its cost class.
    """

    def __init__(self, group: WorkGroup, states: bytearray, *, cost_class: Callable[[int], int] = one_class) -> None:
        self.group, self.costs = group, CostModel(group.weights)
        self.left = states.count(ItemState.PENDING)
        """Number of pending episodes."""
        self.open = group.count - states.count(ItemState.SETTLED) - states.count(ItemState.GIVEN_UP)
        """Number of pending or held episodes."""
        self._states, self._class_of = states, cost_class
        self._classes: dict[int, int] = {}
        """Cost class of each classified, unsettled episode."""
        self._queues: dict[int, deque[int]] = {}
        self._returned: deque[int] = deque()
        self._last: deque[int] = deque()
        self._losses: dict[int, int] = {}
        self._drawn = 0

    def take(self, *, without: Container[int] = ()) -> int | None:
        """Take an episode: a returned one, otherwise the one with the longest expected time; None if there is none.

        Args:
            without: Indices of episodes to skip.
        """
        if not self.left:
            return None
        self._draw()
        order = sorted(self._queues, key=self.costs.seconds, reverse=True)
        for queue in (self._returned, *(self._queues[number] for number in order), self._last):
            if (index := self._first(queue, without)) is not None:
                self._states[index] = ItemState.HELD
                self.left -= 1
                return index
        return None

    def put_back(self, index: int, *, is_lost: bool) -> None:
        """Make a held episode pending again.

        It is taken before all others, or after them if it was lost with several nodes.

        Args:
            index: Index of the episode.
            is_lost: The node was lost while it held the episode; otherwise it gave the episode back.
        """
        if self._states[index] != ItemState.HELD:
            return
        self._states[index] = ItemState.PENDING
        self.left += 1
        if is_lost:
            self._losses[index] = self._losses.get(index, 0) + 1
        (self._last if self._losses.get(index, 0) >= _FEW_LOSSES else self._returned).append(index)

    def claim(self, index: int) -> None:
        """Mark a pending episode as held, because a node reports that it holds it."""
        if self._states[index] == ItemState.PENDING:
            self._states[index] = ItemState.HELD
            self.left -= 1

    def settle(self, index: int, state: ItemState) -> None:
        """Mark an episode as settled or given up."""
        if self._states[index] == ItemState.PENDING:
            self.left -= 1
        self._states[index] = state
        self.open -= 1
        self._classes.pop(index, None)
        self._losses.pop(index, None)

    def cost_class(self, index: int) -> int:
        """Return the cost class of an episode."""
        known = self._classes.get(index)
        return self._class_of(index) if known is None else known

    def seconds(self, index: int) -> float:
        """Return the expected time of an episode on one slot [s]."""
        return self.costs.seconds(self.cost_class(index))

    @property
    def left_seconds(self) -> float:
        """Time that the pending episodes are expected to take on one slot [s]."""
        return self.left * self.costs.mean_seconds

    def _draw(self) -> None:
        """Classify the next window of episodes once the previous one is used up."""
        while self._drawn < self.group.count and not any(self._live(queue) for queue in self._queues.values()):
            end = min(self._drawn + _WINDOW, self.group.count)
            for index in range(self._drawn, end):
                if self._states[index] == ItemState.PENDING:
                    number = self._class_of(index)
                    self._classes[index] = number
                    self._queues.setdefault(number, deque()).append(index)
            self._drawn = end

    def _live(self, queue: deque[int]) -> bool:
        while queue and self._states[queue[0]] != ItemState.PENDING:
            queue.popleft()
        return bool(queue)

    def _first(self, queue: deque[int], without: Container[int]) -> int | None:
        if not self._live(queue):
            return None
        if queue[0] not in without:
            return queue.popleft()
        found = next(self._others(queue, without), None)
        if found is not None:
            queue.remove(found)
        return found

    def _others(self, queue: deque[int], without: Container[int]) -> Iterator[int]:
        return (index for index in queue if self._states[index] == ItemState.PENDING and index not in without)
