"""The three roles of an improvement. Each does one piece of its own work at a time.

Without own work, a role makes a free part of the rollouts, and if there is none, a free part of an evaluation.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import ClassVar

from nimbus.datagen.errors import InputError, single_line
from nimbus.datagen.files.folder_lock import FolderLock, FolderTakenError, lock_folder
from nimbus.datagen.progress import subscribe, tick
from nimbus.runner.improvement.episode_maker import EpisodeMaker
from nimbus.runner.improvement.learner import train_version
from nimbus.runner.improvement.loop import Improvement, LayoutPart
from nimbus.runner.improvement.rows import is_complete, missing_corrections, prepare_rows
from nimbus.runner.improvement.times import LEARNER, PREPARATION, ROLLOUT, RoleClock
from nimbus.runner.system.output import write_error
from nimbus.runner.system.processes import die_with_parent

_POLL = 0.2
"""Interval of the checks for work [s]."""


class ImprovementRole(ABC):
    """Role of an improvement, whose state is in the improvement's files only.

    Args:
        loop: The improvement.
        maker: Makes episodes.
    """

    name: ClassVar[str]

    def __init__(self, loop: Improvement, maker: EpisodeMaker) -> None:
        self.loop, self.maker = loop, maker

    @abstractmethod
    def find_work(self) -> Callable[[], None] | None:
        """Return the next piece of the role's work; None where none is ready."""

    @abstractmethod
    def is_done(self) -> bool:
        """Check whether the role has no work left, apart from evaluations."""


class RolloutRole(ImprovementRole):
    """Makes the demonstrations, then the rollouts of each round, which the other roles share."""

    name = ROLLOUT

    def find_work(self) -> Callable[[], None] | None:
        """Return the demonstrations, or a part of the rollouts that no role has locked."""
        if not self.loop.has_rollouts(0):
            return self.maker.demonstrate
        if next((True for _, part in open_rollouts(self.loop) if _is_free(part)), False):
            return lambda: _ignore(roll_out_one(self.loop, self.maker))
        return None

    def is_done(self) -> bool:
        """Check whether all rounds have their rollouts."""
        return all(self.loop.has_rollouts(number) for number in self.loop.rounds)


class PreparationRole(ImprovementRole):
    """Corrects failed rollouts as they come, and makes rows of each round."""

    name = PREPARATION

    def find_work(self) -> Callable[[], None] | None:
        """Return the next work for the first round without rows: first its corrections, then its rows."""
        number = self._next()
        if number is None:
            return None
        if missing_corrections(self.loop, number):
            return lambda: self.maker.correct(number)
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

    name = LEARNER

    def find_work(self) -> Callable[[], None] | None:
        """Return the next version whose rows are complete."""
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


def play(role: ImprovementRole) -> None:
    """Do all work of a role, and help until all versions are evaluated."""
    clock = RoleClock(role.loop, role.name)
    while True:
        if work := role.find_work():
            work()
            clock.add("working", pieces=1)
        elif roll_out_one(role.loop, role.maker, stop=lambda: role.find_work() is not None):
            clock.add("working", pieces=1)
        elif evaluate_one(role.loop, role.maker, stop=lambda: role.find_work() is not None):
            clock.add("evaluating", pieces=1)
        elif role.is_done() and not role.loop.unevaluated():
            clock.add("waiting")
            return
        else:
            time.sleep(_POLL)
            tick()  # a role that waits is not hung
            clock.add("waiting")


def run_in_lockstep(loop: Improvement) -> None:
    """Do the work of all roles in this process, one role at a time."""
    maker = EpisodeMaker(loop)
    roles = [role(loop, maker) for role in ROLES.values()]
    clocks = {role.name: RoleClock(loop, role.name) for role in roles}
    while True:
        found = next(((role, work) for role in roles if (work := role.find_work())), None)
        if found is not None:
            found[1]()
            worker, kind = found[0].name, "working"
        elif evaluate_one(loop, maker):
            worker, kind = LearnerRole.name, "evaluating"
        else:
            return
        for name, clock in clocks.items():
            clock.add(kind if name == worker else "waiting", pieces=int(name == worker))


def open_rollouts(loop: Improvement) -> Iterator[tuple[int, LayoutPart]]:
    """Yield the unfinished parts of all rounds whose acting version is published, with the round's number."""
    for number in loop.rounds[1:]:
        if loop.may_roll_out(number) and not loop.has_rollouts(number):
            yield from ((number, part) for part in loop.rollout_parts(number) if not part.is_done)


def roll_out_one(loop: Improvement, maker: EpisodeMaker, *, stop: Callable[[], bool] = lambda: False) -> bool:
    """Make a free part of the rollouts of the first possible round; return False if no part is free.

    Args:
        loop: The improvement.
        maker: Makes episodes.
        stop: True when the role has own work: any role continues the part later.
    """
    for number, part in open_rollouts(loop):
        if claim := _claim(part):
            try:
                maker.roll_out_part(number, part, stop=stop)
            finally:
                claim.release()
            return True
    return False


def evaluate_one(loop: Improvement, maker: EpisodeMaker, *, stop: Callable[[], bool] = lambda: False) -> bool:
    """Evaluate a free part of the first version without results; return False if no part is free.

    After the last part, the results are written.

    Args:
        loop: The improvement.
        maker: Makes episodes.
        stop: True when more urgent work exists: the evaluation continues later.
    """
    for version in loop.unevaluated():
        if not loop.is_published(version):
            continue
        parts = loop.evaluation_parts(version)
        missing = [part for part in parts if not part.is_done]
        for part in missing:
            if claim := _claim(part):
                try:
                    maker.evaluate_part(version, part, stop=stop)
                finally:
                    claim.release()
                break
        else:
            if missing:
                continue  # other roles are working on all remaining parts of this version
        if all(part.is_done for part in parts):
            maker.finish_evaluation(version)
        return True
    return False


def _is_free(part: LayoutPart) -> bool:
    """Check whether no role has locked a part."""
    if claim := _claim(part):
        claim.release()
    return claim is not None


def _claim(part: LayoutPart) -> FolderLock | None:
    """Lock a part; return None if another role has locked it."""
    part.folder.mkdir(parents=True, exist_ok=True)
    with suppress(FolderTakenError):
        return lock_folder(part.folder)
    return None


def _main(folder: str, name: str, parent: str) -> int:
    """Play a role; return 2 for bad input."""
    die_with_parent(int(parent))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the supervisor ends it
    alive, last = Path(folder) / "roles" / f"{name}.alive", 0.0

    def beat(_: str) -> None:
        nonlocal last
        if (now := time.monotonic()) - last > 1.0:
            last = now
            with suppress(OSError):
                os.utime(alive)

    subscribe(beat)
    try:
        loop = Improvement.read(Path(folder))
        play(ROLES[name](loop, EpisodeMaker(loop)))
    except InputError as error:
        write_error(single_line(str(error)) + "\n")
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(_main(*sys.argv[1:]))
