"""The Plan stage for skills: settle the scene, run the task's steps in physics, judge the end."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Self

import numpy as np
from pydantic import Field

from nimbus.datagen import registry
from nimbus.datagen.episode.layout import PhysicalLayout
from nimbus.datagen.episode.trajectory import Outcome, Reason, Trajectory
from nimbus.datagen.execute.disturbance_watch import Disturbed
from nimbus.datagen.execute.interpreter import TaskPerformer, performer
from nimbus.datagen.execute.resuming import find_unmet, recover
from nimbus.datagen.execute.workcell import SimulatedWorkcell
from nimbus.datagen.files.strict_yaml import StrictModel
from nimbus.datagen.pipeline import RunContext, register_component
from nimbus.datagen.plan.motion import MotionPlanner
from nimbus.datagen.random_streams import Streams
from nimbus.datagen.robots.robot import Robot
from nimbus.datagen.simulate.newton import NewtonSimulation
from nimbus.datagen.stages import Planned, Planner, Randomized
from nimbus.datagen.tasks.statements import SkillFailure
from nimbus.datagen.tasks.task import Task

if TYPE_CHECKING:
    from nimbus.datagen.tasks.scene_assets import SceneAssets

_SETTLE_PERIODS = 8
"""Record periods in which objects come to rest before the recording starts."""
_PATIENCE_PERIODS = 15
"""Record periods in which what was put down may come to rest after the last step."""
_REST_PERIODS = 8
"""Record periods in which the arm holds still after success: it takes two to stop, the others show what the end is."""
_CALMER = 0.75
"""Each further attempt at a layout moves at this share of the speed of the one before."""
_BELIEVABLE = {"held_penetration": 0.002, "table_penetration": 0.001, "held_creep": 0.0005}
"""Contact that an expert would believe: depths [m], and the mean speed of a carried object in the hand [m/s]."""


class SkillPlannerSettings(StrictModel):
    """Settings of :class:`SkillPlanner`."""

    attempts: Annotated[int, Field(ge=1, le=100)] = 3


class SkillPlanner(Planner["SceneAssets"]):
    """Plans and executes a task's steps, several times over when an attempt fails.

    Attempt ``n`` of a layout draws from streams of its own, so that a layout's outcome depends on nothing but its key.

    Args:
        task: The task.
        planner: Registered name of the motion planner.
        attempts: Attempts at one layout at most.
    """

    version = 3

    @classmethod
    def create(cls, context: RunContext, settings: SkillPlannerSettings) -> Self:
        """Make the planner of a run."""
        return cls(context.need_task(), context.planner, settings.attempts)

    def __init__(self, task: Task, planner: str = "ompl", attempts: int = 3) -> None:
        self._task, self._planner, self._attempts = task, planner, attempts
        self._simulation: NewtonSimulation | None = None

    def process(self, item: Randomized[SceneAssets]) -> Iterator[Planned[SceneAssets]]:
        """Attempts until one succeeds, or the plan that is stored already."""
        if (plan := item.scene.request.plan) is not None:
            layouts = tuple(replace(layout, physical=plan.physical) for layout in item.layouts)
            yield Planned(scene=item.scene, layouts=layouts, trajectory=plan.trajectory, attempt=plan.attempt)
            return
        assets, physical = item.scene.assets, item.layouts[0].physical
        if self._simulation is None:
            self._simulation = NewtonSimulation(assets.stage, assets.robot, rate=self._task.rate)
        for attempt in range(self._attempts):
            begin = time.process_time()
            streams = partial(item.layouts[0].key.generator, "attempt", attempt)
            pace = _CALMER**attempt
            trajectory = run_attempt(
                self._task, self._simulation, physical, streams=streams, planner=self._planner, pace=pace
            )
            final = trajectory.outcome.success or attempt == self._attempts - 1
            times = {"plan": time.process_time() - begin}
            yield Planned(
                scene=item.scene, layouts=item.layouts, trajectory=trajectory, attempt=attempt, final=final, times=times
            )
            if final:
                return


register_component("plan", "skills", SkillPlanner, SkillPlannerSettings)


def make_motion_planner(name: str, robot: Robot, *, rate: float, pace: float = 1.0) -> MotionPlanner:
    """The motion planner of that name, for a robot.

    Args:
        name: As it is registered.
        robot: The robot.
        rate: Commands a second [Hz].
        pace: Share of the usual speed; motions keep their shape and take ``1 / pace`` times as long.
    """
    return registry.lookup("planner", name)(
        velocity_limits=np.multiply(robot.arm.velocity_limits, pace),
        acceleration_limits=np.multiply(robot.arm.acceleration_limits, pace**2),
        period=1.0 / rate,
    )


def run_attempt(
    task: Task,
    simulation: NewtonSimulation,
    layout: PhysicalLayout,
    *,
    streams: Streams,
    planner: str,
    pace: float = 1.0,
) -> Trajectory:
    """One attempt at a layout, from loading to judging; a failure is an outcome, not an error.

    After success the arm holds still for some rows, and what is recorded is judged again at its very end.
    """
    return perform(task, begin_attempt(task, simulation, layout, streams=streams, planner=planner, pace=pace))


def perform(task: Task, doing: TaskPerformer, *, prepare: Callable[[], None] = lambda: None) -> Trajectory:
    """Do a task's steps from where everything is now, and judge.

    Args:
        task: The task.
        doing: Performer of its steps.
        prepare: Done before; it may fail as a skill does.
    """
    cell = doing.cell
    try:
        unmet = find_unmet(task, cell, doing.scope) if cell.disturbance else frozenset()
        try:
            prepare()
            outcome = _do_and_judge(task, doing)
        except (Disturbed, SkillFailure):
            if not cell.disturbance.is_active:
                raise
            outcome = _do_and_judge(task, recover(task, doing, unmet=unmet))
    except SkillFailure as failure:
        outcome = Outcome(success=False, phase=cell.phase, reason=failure.reason, detail=failure.detail)
    return cell.finish(outcome)


def _do_and_judge(task: Task, doing: TaskPerformer) -> Outcome:
    doing.do(task.steps, doing.scope)
    outcome = evaluate_success(task, doing)
    if outcome.success:
        hold_still(doing.cell)
        outcome = evaluate_success(task, doing)  # what lay still may have begun to rock
    return outcome


def begin_attempt(
    task: Task,
    simulation: NewtonSimulation,
    layout: PhysicalLayout,
    *,
    streams: Streams,
    planner: str,
    pace: float = 1.0,
) -> TaskPerformer:
    """Load a layout and let it come to rest; who will do the task's steps there."""
    simulation.load(layout)
    settle(simulation)
    planners = {
        arm: make_motion_planner(planner, simulation.robot.with_arm(arm), rate=simulation.rate, pace=pace)
        for arm in simulation.robot.arm_names
    }
    noise = task.execution_noise
    cell = SimulatedWorkcell(simulation, planners, layout, streams=streams, regions=task.regions, execution_noise=noise)
    return performer(task, cell, layout)


def settle(simulation: NewtonSimulation) -> None:
    """Let objects come to rest before anything is recorded."""
    command = simulation.present_action()
    for _ in range(_SETTLE_PERIODS):
        simulation.advance(command)
    simulation.data.qvel[:] = 0.0
    simulation.restore(simulation.state())


def wait_for_rest(cell: SimulatedWorkcell, *, patience: int) -> None:
    """Wait a little when something still rolls, so that the end can be judged."""
    with cell.step("wait", ""):
        cell.begin("settle")
        for _ in range(patience):
            if all(cell.is_at_rest(name) for name in cell.objects):
                return
            cell.wait(1)


def hold_still(cell: SimulatedWorkcell) -> None:
    """Record some rows in which the arm holds still, so that a policy learns to stop."""
    with cell.step("wait", ""):
        cell.begin("rest")
        cell.wait(_REST_PERIODS)


def evaluate_success(task: Task, doing: TaskPerformer, *, patience: int = _PATIENCE_PERIODS) -> Outcome:
    """The first condition of success that does not hold, or success.

    Args:
        task: The task.
        doing: The performer of its steps, at their end.
        patience: Record periods to wait at most for what still moves.
    """
    wait_for_rest(doing.cell, patience=patience)
    if failure := doing.failure(task.success, doing.scope):
        return replace(failure, phase=f"success {failure.phase}")
    return _unbelievable(doing.cell.contact_extremes()) or Outcome(success=True)


def _unbelievable(extremes: dict[str, float]) -> Outcome | None:
    for name, limit in _BELIEVABLE.items():
        if extremes[name] > limit:
            unit = "mm/s" if name == "held_creep" else "mm"
            detail = f"{name.replace('_', ' ')} of {extremes[name] * 1e3:.2f} {unit}, at most {limit * 1e3:g}"
            return Outcome(success=False, phase="success contacts", reason=Reason.UNBELIEVABLE_CONTACT, detail=detail)
    return None
