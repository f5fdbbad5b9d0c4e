"""A task's steps from the middle of an episode: what is done is left out, and the hands are made free."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nimbus.datagen.episode.trajectory import DISTURBED, Outcome
from nimbus.datagen.execute.interpreter import TaskJudge, TaskPerformer
from nimbus.datagen.execute.motions.setting_down import retreat
from nimbus.datagen.tasks.steps import Scope, Step, Steps

if TYPE_CHECKING:
    from nimbus.datagen.execute.workcell import SimulatedWorkcell
    from nimbus.datagen.tasks.task import Task

STOP, FREE = "stop", "free"
"""Phases of rows: the arm comes to rest; the hand lets go."""
STOP_PERIODS = 3
"""Record periods in which an arm comes to rest: its reference follows two periods behind its command."""
MOST_PLANS = 40
"""Plans of an arm in a correction at most. It takes 3 to 8; for a cube that is held aslant
`place` asked for a thousand, which took 186 s of the CPU."""
_PLANS_EACH = 16
"""Plans of an arm in a recovery at most for each thing that is not done: pick and place take 6."""
_IN_THE_AIR = 0.02
"""[m] What is held so far above the height at which it stood is carried on; below, it is let go and picked again."""
_PATIENCE_PERIODS = 15
"""Record periods in which what was pushed may come to rest before plans are made."""


def find_unmet(task: Task, cell: SimulatedWorkcell, scope: Scope) -> frozenset[str]:
    """Names of the things of which a condition of success does not hold now."""
    judge = _UnmetJudge(cell, scope)
    judge.failure(task.success, scope)
    return frozenset(judge.names)


class _UnmetJudge(TaskJudge):
    """Judges all conditions, and goes on after those that do not hold."""

    def __init__(self, world: SimulatedWorkcell, scope: Scope) -> None:
        super().__init__(world, scope)
        self.names: set[str] = set()

    def failure(self, conditions: Steps, scope: Scope) -> Outcome | None:
        for condition in conditions:
            found = super().failure((condition,), scope)
            if found is not None and isinstance(condition, Step):
                self.names.add(self._target(condition, scope))
        return None

    def _target(self, condition: Step, scope: Scope) -> str:
        statement = self.resolved(condition.statement, scope)
        value = getattr(statement, statement.main) if statement.main else ""
        return value if isinstance(value, str) else ""


class ResumedPerformer(TaskPerformer):
    """Does a task's steps in a scene in which some have been done.

    Steps with a thing in ``done`` are left out, and so is taking what the hand holds already.

    Args:
        cell: The scene.
        scope: Meaning of the names of the task.
        done: Things of which all conditions hold, and did not at the start of the episode.
    """

    def __init__(self, cell: SimulatedWorkcell, scope: Scope, *, done: frozenset[str]) -> None:
        super().__init__(cell, scope)
        self.done = done

    def of_arm(self, arm: str) -> ResumedPerformer:
        """The same, seen by another arm."""
        return ResumedPerformer(self.cell.arms[arm], self.scope, done=self.done)

    def do(self, steps: Steps, scope: Scope) -> None:
        """Do steps one after another.

        Raises:
            SkillFailure: One cannot be done.
        """
        for step in steps:
            if not self._is_done(step, scope):
                super().do((step,), scope)

    def _is_done(self, step: object, scope: Scope) -> bool:
        if not isinstance(step, Step) or not step.statement.main:
            return False
        skill = self.resolved(step.statement, scope)
        thing = getattr(skill, skill.main)
        return thing in self.done or (skill.hand == "takes" and thing == self.cell.held)


def free_hands(cell: SimulatedWorkcell) -> None:
    """Hold on to what is in the air; else open and go back from what is touched.

    Raises:
        SkillFailure: There is no way back.
    """
    for arm in cell.arms.values():
        with arm.step(FREE, ""):
            touched = arm.touched_by_gripper()
            held = next(filter(arm.is_gripping, sorted(touched & set(arm.objects))), None)
            if held and (arm.pose(held) - arm.start_poses[held])[2, 3] > _IN_THE_AIR:
                arm.meter.held = arm.meter.closing_on = held
                arm.carry()
                continue
            arm.begin("open")
            if not np.isclose(arm.opening, arm.robot.gripper.open):
                arm.open()
            if touched:
                arm.begin("retreat")
                retreat(arm, next(iter(sorted(touched))), touching=touched, among_released=False)


def recover(task: Task, doing: TaskPerformer, *, unmet: frozenset[str]) -> ResumedPerformer:
    """Come to rest after a disturbance, and make the hands free; the performer of what is left of the task.

    Args:
        task: The task.
        doing: Performer of the steps that were broken off.
        unmet: Things of which a condition did not hold when it began.

    Raises:
        SkillFailure: The hands cannot be made free.
    """
    cell = doing.cell
    pushed = cell.disturbance.body
    cell.disturbance.is_active = False
    cell.break_off()
    cell.limit_plans(_PLANS_EACH * max(1, len(unmet)))
    with cell.step(DISTURBED, pushed):
        cell.begin(STOP)
        cell.stop(STOP_PERIODS)
        for _ in range(_PATIENCE_PERIODS):
            if all(map(cell.is_at_rest, cell.objects)):
                break
            cell.wait(1)
    free_hands(cell)
    return ResumedPerformer(cell, doing.scope, done=(doing.done | unmet) - find_unmet(task, cell, doing.scope))
