"""The three roles of an improvement: each does one piece of its own work at a time, and evaluates while it has none."""

from __future__ import annotations

import os
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import ClassVar

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.bounded import Seconds, read_typed
from nimbus.datagen.files.codec import to_json
from nimbus.datagen.store.folder_lock import FolderLock, lock_folder
from nimbus.datagen.store.publish import replace_text
from nimbus.runner.improvement.bench import Bench
from nimbus.runner.improvement.learner import train_version
from nimbus.runner.improvement.loop import Improvement
from nimbus.runner.improvement.rows import is_complete, missing_corrections, prepare_rows

_POLL = 0.2
"""[s] Between two looks for work."""


@dataclass(frozen=True, kw_only=True)
class RoleTimes:
    """Times of a role since the first version was there, over all of its processes [s of the wall]."""

    pid: int = 0
    """Process that has the role."""
    working: Seconds = 0.0
    evaluating: Seconds = 0.0
    """Work as well, done while a role has none of its own."""
    waiting: Seconds = 0.0
    preparing: Seconds = 0.0
    """Before the first version: the loop is not closed yet."""
    pieces: int = 0
    """Pieces of work that it has done."""


class ImprovementRole(ABC):
    """One role; all that it knows is in the files of the improvement.

    Args:
        loop: The improvement.
        bench: Makes episodes.
    """

    name: ClassVar[str]

    def __init__(self, loop: Improvement, bench: Bench) -> None:
        self.loop, self.bench = loop, bench

    @abstractmethod
    def find_work(self) -> Callable[[], None] | None:
        """The next piece of its own work; None where none is ready."""

    @abstractmethod
    def is_done(self) -> bool:
        """Check whether no work of its own is left."""


class RolloutRole(ImprovementRole):
    """Makes the demonstrations, then the rollouts of each round."""

    name = "rollout"

    def find_work(self) -> Callable[[], None] | None:
        """The first round that lacks rollouts, when its policy is there."""
        number = self._next()
        if number is None or not self.loop.may_roll_out(number):
            return None
        return lambda: self.bench.roll_out(number)

    def _next(self) -> int | None:
        return next((number for number in self.loop.rounds if not self.loop.has_rollouts(number)), None)

    def is_done(self) -> bool:
        """Check whether all rounds have their rollouts."""
        return self._next() is None


class PreparationRole(ImprovementRole):
    """Corrects failed rollouts as they come, and makes rows of each round."""

    name = "preparation"

    def find_work(self) -> Callable[[], None] | None:
        """Corrections of the first round without rows, or its rows."""
        number = self._next()
        if number is None:
            return None
        if missing_corrections(self.loop, number):
            return lambda: self.bench.correct(number)
        if is_complete(self.loop, number):
            return lambda: prepare_rows(self.loop, number).write(self.loop.rows(number))
        return None

    def _next(self) -> int | None:
        return next((number for number in self.loop.rounds if not self.loop.rows(number).is_file()), None)

    def is_done(self) -> bool:
        """Check whether all rounds have their rows."""
        return self._next() is None


class LearnerRole(ImprovementRole):
    """Trains and publishes one version after the other."""

    name = "learner"

    def find_work(self) -> Callable[[], None] | None:
        """The next version, when all that it learns from is there."""
        version = self.loop.published()
        if version not in self.loop.rounds or not self.loop.may_learn(version):
            return None
        return lambda: _ignore(train_version(self.loop, version))

    def is_done(self) -> bool:
        """Check whether all versions are published."""
        return self.loop.published() == len(self.loop.rounds)


ROLES: dict[str, type[ImprovementRole]] = {role.name: role for role in (RolloutRole, PreparationRole, LearnerRole)}


def _ignore(_: object) -> None:
    return None


class RoleClock:
    """Measures a role's times and keeps them in its file, over restarts.

    Args:
        loop: The improvement.
        name: Of the role.
    """

    def __init__(self, loop: Improvement, name: str) -> None:
        self._loop, self._path = loop, loop.folder / "roles" / f"{name}.json"
        self._path.parent.mkdir(exist_ok=True)
        self.times = replace(read_times(loop, name), pid=os.getpid())
        self._last = time.monotonic()
        self._write()

    def add(self, kind: str, *, pieces: int = 0) -> None:
        """Count the time since the last call as ``working``, ``evaluating`` or ``waiting``."""
        now = time.monotonic()
        kind = kind if self._loop.is_published(0) else "preparing"
        known = {kind: getattr(self.times, kind) + now - self._last}
        self.times, self._last = replace(self.times, **known, pieces=self.times.pieces + pieces), now
        self._write()

    def _write(self) -> None:
        replace_text(self._path, to_json(self.times) + "\n", durable=False)


def read_times(loop: Improvement, name: str) -> RoleTimes:
    """Times of a role so far."""
    path = loop.folder / "roles" / f"{name}.json"
    return read_typed(RoleTimes, path) if path.is_file() else RoleTimes()


def play(role: ImprovementRole, *, until_evaluated: bool) -> None:
    """Do a role's work to its end.

    Args:
        role: The role.
        until_evaluated: Stay until all versions are evaluated.
    """
    clock = RoleClock(role.loop, role.name)
    while True:
        if work := role.find_work():
            work()
            clock.add("working", pieces=1)
        elif evaluate_one(role.loop, role.bench, stop=lambda: role.find_work() is not None):
            clock.add("evaluating", pieces=1)
        elif role.is_done() and not (until_evaluated and unevaluated(role.loop)):
            clock.add("waiting")
            return
        else:
            time.sleep(_POLL)
            clock.add("waiting")


def run_in_lockstep(loop: Improvement) -> None:
    """Do all work in this process: one role after the other, never two at once."""
    bench = Bench(loop)
    roles = [role(loop, bench) for role in ROLES.values()]
    clocks = {role.name: RoleClock(loop, role.name) for role in roles}
    while True:
        found = next(((role, work) for role in roles if (work := role.find_work())), None)
        if found is not None:
            found[1]()
            worker, kind = found[0].name, "working"
        elif evaluate_one(loop, bench):
            worker, kind = LearnerRole.name, "evaluating"
        else:
            return
        for name, clock in clocks.items():
            clock.add(kind if name == worker else "waiting", pieces=int(name == worker))


def unevaluated(loop: Improvement) -> list[int]:
    """Versions of the improvement, published or not, without an evaluation."""
    from nimbus.runner.evaluation.results import NAME

    wanted = loop.rounds if loop.settings.layouts else ()
    return [version for version in wanted if not (loop.evaluation(version) / NAME).is_file()]


def evaluate_one(loop: Improvement, bench: Bench, *, stop: Callable[[], bool] = lambda: False) -> bool:
    """Evaluate the first published version that waits for it, as far as that goes; False where there is none.

    Args:
        loop: The improvement.
        bench: Makes episodes.
        stop: More urgent work is there: the evaluation goes on later.
    """
    for version in unevaluated(loop):
        if loop.is_published(version) and (claim := _claim(loop, version)):
            try:
                bench.evaluate(version, stop=stop)
            finally:
                claim.release()
            return True
    return False


def _claim(loop: Improvement, version: int) -> FolderLock | None:
    """Keep other roles from the evaluation of a version; None where one of them is at it."""
    with suppress(InputError):
        return lock_folder(loop.round(version))
    return None
