"""Execution of a task from the middle of an episode: completed steps are skipped, and hands are freed first."""

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
"""Phases of rows: the arm comes to rest; the hand releases its object."""
STOP_PERIODS = 3
"""Record periods in which an arm comes to rest: its reference follows two periods behind its command."""
MOST_PLANS = 40
"""Largest number of plans of an arm in a correction.

A correction usually takes 3 to 8 plans. Without a limit, `place` requested a thousand plans for a cube that was held at
an angle, which took 186 s of CPU time."""
_PLANS_EACH = 16
"""Largest number of plans of an arm for each unfinished thing in a recovery; pick and place take 6."""
_IN_THE_AIR = 0.02
"""Rise from its initial position above which a held object stays in the hand [m]; otherwise it is released and picked
again."""
_PATIENCE_PERIODS = 15
"""Largest number of record periods in which a pushed object comes to rest before new plans."""


def find_unmet(task: Task, cell: SimulatedWorkcell, scope: Scope) -> frozenset[str]:
    """Return the names of the things with an unfulfilled condition of success."""
    judge = _UnmetJudge(cell, scope)
    judge.failure(task.success, scope)
    return frozenset(judge.names)


class _UnmetJudge(TaskJudge):
    """Evaluates all conditions instead of stopping at the first that does not hold."""

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
    """Runs a task's steps in a scene in which some are complete.

    Steps on a thing in ``done`` are skipped, and so is the grasp of an object that is already in the hand.

    Args:
        cell: The scene.
        scope: Meaning of the task's names.
        done: Things whose conditions all hold now, and did not all hold at the start of the episode.
    """

    def __init__(self, cell: SimulatedWorkcell, scope: Scope, *, done: frozenset[str]) -> None:
        super().__init__(cell, scope)
        self.done = done

    def of_arm(self, arm: str) -> ResumedPerformer:
        """Return this performer in the view of another arm."""
        return ResumedPerformer(self.cell.arms[arm], self.scope, done=self.done)

    def do(self, steps: Steps, scope: Scope) -> None:
        """Run steps in sequence.

        Raises:
            SkillFailure: A step fails.
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
    """Keep lifted objects; otherwise open the hand and retreat from contact.

    Raises:
        SkillFailure: There is no free retreat.
    """
    for arm in cell.arms.values():
        with arm.step(FREE, ""):
            touched = arm.touched_by_gripper()
            held = next(filter(arm.is_gripping, sorted(touched & set(arm.objects))), None)
            # A lifted object stays in the hand; dropping it would be a new disturbance.
            if held and (arm.pose(held) - arm.start_poses[held])[2, 3] > _IN_THE_AIR:
                arm.meter.held = arm.meter.closing_on = held
                arm.carry()
                continue
            arm.begin("open")
            if not np.isclose(arm.opening, arm.robot.gripper.open):
                arm.open()
            if touched:
                arm.begin("retreat")
                # Objects that were released earlier may be at their goals; the retreat must not move them.
                retreat(arm, next(iter(sorted(touched))), touching=touched, among_released=False)


def recover(task: Task, doing: TaskPerformer, *, unmet: frozenset[str]) -> ResumedPerformer:
    """Stop all arms after a disturbance, free the hands, and return the performer of the rest of the task.

    Args:
        task: The task.
        doing: Performer of the interrupted steps.
        unmet: Things with an unfulfilled condition when the steps began.

    Raises:
        SkillFailure: The hands cannot be freed.
    """
    cell = doing.cell
    pushed = cell.disturbance.body
    # An active disturbance labels rows and suppresses checks of slip and lag, which apply again from here.
    cell.disturbance.is_active = False
    cell.break_off()
    # Without a limit, a recovery that cannot succeed plans for minutes; see MOST_PLANS.
    cell.limit_plans(_PLANS_EACH * max(1, len(unmet)))
    with cell.step(DISTURBED, pushed):
        cell.begin(STOP)
        cell.stop(STOP_PERIODS)
        for _ in range(_PATIENCE_PERIODS):
            if all(map(cell.is_at_rest, cell.objects)):
                break
            cell.wait(1)
    free_hands(cell)
    # Evaluated after the hands are free, because an object that falls from a hand may meet or violate a condition.
    return ResumedPerformer(cell, doing.scope, done=(doing.done | unmet) - find_unmet(task, cell, doing.scope))
