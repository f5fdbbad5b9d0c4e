"""Plan stage for skills: settles the scene, runs the task's steps in physics, evaluates the result."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
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
from nimbus.datagen.execute.lockstep import Lane, Lockstep
from nimbus.datagen.execute.resuming import find_unmet, recover
from nimbus.datagen.execute.workcell import SimulatedWorkcell
from nimbus.datagen.files.strict_yaml import StrictModel
from nimbus.datagen.pipeline import RunContext, register_component
from nimbus.datagen.plan.batch import BatchPlanner, MotionExchange
from nimbus.datagen.plan.motion import MotionPlanner
from nimbus.datagen.plan.timing import load_toppra
from nimbus.datagen.random_streams import Streams
from nimbus.datagen.robots.robot import Robot
from nimbus.datagen.robots.tool_poses import find_end_effectors
from nimbus.datagen.simulate.newton import NewtonSimulation
from nimbus.datagen.stages import LaneWatch, Planned, Planner, Randomized
from nimbus.datagen.tasks.statements import SkillFailure
from nimbus.datagen.tasks.task import Task

if TYPE_CHECKING:
    from nimbus.datagen.tasks.scene_assets import SceneAssets

_SETTLE_PERIODS = 8
"""Number of record periods in which objects come to rest before the recording."""
_PATIENCE_PERIODS = 15
"""Largest number of record periods in which released objects come to rest after the last step."""
_REST_PERIODS = 8
"""Record periods at rest after success: the arm needs two to stop; the others teach a policy to hold still."""
_CALMER = 0.75
"""Speed of each further attempt at a layout, relative to the previous one."""
_BELIEVABLE = {"held_penetration": 0.002, "table_penetration": 0.001, "held_creep": 0.0005}
"""Limits of plausible contacts: depths [m], and mean speed of a carried object in the hand [m/s]."""


class SkillPlannerSettings(StrictModel):
    """Settings of :class:`SkillPlanner`."""

    attempts: Annotated[int, Field(ge=1, le=100)] = 3


class SkillPlanner(Planner["SceneAssets"]):
    """Plans and executes a task's steps, and retries failed attempts.

    Each attempt of a layout draws from its own streams, so that a layout's outcome depends only on its key.

    Args:
        task: The task.
        planner: Registered name of the motion planner.
        attempts: Largest number of attempts at one layout.
        physics: Registered name of the simulator.
    """

    version = 3

    @classmethod
    def create(cls, context: RunContext, settings: SkillPlannerSettings) -> Self:
        """Create the planner of a run."""
        return cls(context.need_task(), context.planner, settings.attempts, physics=context.physics)

    def __init__(self, task: Task, planner: str = "ompl", attempts: int = 3, *, physics: str = "newton") -> None:
        self._task, self._planner, self._attempts, self._physics = task, planner, attempts, physics
        self._simulations: dict[int, NewtonSimulation] = {}
        """Simulation of each lane."""
        self.batches: Counter[int] = Counter()
        """Number of motion batches, keyed by the number of queries in a batch, in the last :meth:`process_together`."""

    def process(self, item: Randomized[SceneAssets]) -> Iterator[Planned[SceneAssets]]:
        """Yield attempts until one succeeds, or the plan that is already stored."""
        yield from self._make_attempts(item, 0)

    def process_together(
        self, items: Iterator[Randomized[SceneAssets] | None], *, lanes: int, watch: LaneWatch[SceneAssets]
    ) -> Iterator[Planned[SceneAssets]]:
        """Yield the attempts at several items, whose motions are planned in batches.

        Args:
            items: Source of episodes, read whenever a lane is free; None means that no episode is available now.
            lanes: Largest number of items in progress.
            watch: Called whenever another item is advanced.
        """

        def attempts(item: Randomized[SceneAssets], lane: Lane) -> Iterator[Planned[SceneAssets]]:
            """Make the attempts of one lane."""
            return self._make_attempts(item, lane.number, clock=lane.clock, exchange=lane.exchange)

        lockstep = Lockstep(attempts, lanes=lanes, watch=watch)
        self.batches = lockstep.batches
        yield from lockstep.run(items)

    @classmethod
    def preload(cls, context: RunContext) -> None:
        """Import the modules that planning needs before workers are forked, so that they are imported only once."""
        load_toppra()

    @classmethod
    def lane_count(cls, context: RunContext) -> int:
        """Return the number of items that can advance together: the motion planner's batch size; 1 in Isaac Sim."""
        if context.physics == "isaacsim":
            return 1  # Isaac Sim has one stage open
        planner = registry.lookup("planner", context.planner)
        return planner.batch_size if isinstance(planner, type) and issubclass(planner, BatchPlanner) else 1

    def _make_attempts(
        self,
        item: Randomized[SceneAssets],
        lane: int,
        *,
        clock: Callable[[], float] = time.process_time,
        exchange: MotionExchange | None = None,
    ) -> Iterator[Planned[SceneAssets]]:
        if (plan := item.scene.request.plan) is not None:
            layouts = tuple(replace(layout, physical=plan.physical) for layout in item.layouts)
            yield Planned(scene=item.scene, layouts=layouts, trajectory=plan.trajectory, attempt=plan.attempt)
            return
        assets, physical = item.scene.assets, item.layouts[0].physical
        if lane not in self._simulations:
            simulator: type[NewtonSimulation] = registry.lookup("simulator", self._physics)
            self._simulations[lane] = simulator(assets.stage, assets.robot, rate=self._task.rate)
        simulation = self._simulations[lane]
        for attempt in range(self._attempts):
            begin = clock()
            streams = partial(item.layouts[0].key.generator, "attempt", attempt)
            # Slower from attempt to attempt: most failures (slips, creep, tracking errors) grow with acceleration.
            pace = _CALMER**attempt
            trajectory = run_attempt(
                self._task,
                simulation,
                physical,
                streams=streams,
                planner=self._planner,
                pace=pace,
                exchange=exchange,
            )
            final = trajectory.outcome.success or attempt == self._attempts - 1
            times = {"plan": clock() - begin}
            yield Planned(
                scene=item.scene, layouts=item.layouts, trajectory=trajectory, attempt=attempt, final=final, times=times
            )
            if final:
                return


register_component("plan", "skills", SkillPlanner, SkillPlannerSettings)


def make_motion_planner(
    name: str, robot: Robot, *, rate: float, pace: float = 1.0, exchange: MotionExchange | None = None
) -> MotionPlanner:
    """Create the motion planner of a robot.

    Args:
        name: Registered name of the planner.
        robot: The robot.
        rate: Commands per second [Hz].
        pace: Fraction of the usual speed; motions keep their shape and take ``1 / pace`` times as long.
        exchange: Collects the queries of several episodes for a planner that plans batches.
    """
    return registry.lookup("planner", name)(
        velocity_limits=np.multiply(robot.arm.velocity_limits, pace),
        # A motion of the same shape at ``pace`` times the speed has ``pace**2`` times the accelerations.
        acceleration_limits=np.multiply(robot.arm.acceleration_limits, pace**2),
        period=1.0 / rate,
        **({} if exchange is None else {"exchange": exchange}),
    )


def run_attempt(
    task: Task,
    simulation: NewtonSimulation,
    layout: PhysicalLayout,
    *,
    streams: Streams,
    planner: str,
    pace: float = 1.0,
    exchange: MotionExchange | None = None,
) -> Trajectory:
    """Run one attempt at a layout, from loading to evaluation; a failure is an outcome, not an error.

    After success the arm holds still for some rows, and the state is evaluated again at the very end.
    """
    doing = begin_attempt(task, simulation, layout, streams=streams, planner=planner, pace=pace, exchange=exchange)
    return perform(task, doing)


def perform(task: Task, doing: TaskPerformer, *, prepare: Callable[[], None] = lambda: None) -> Trajectory:
    """Run a task's steps from the current state, and evaluate the result.

    Args:
        task: The task.
        doing: Performer of its steps.
        prepare: Function that is called first; it may raise :class:`SkillFailure`.
    """
    cell = doing.cell
    try:
        unmet = find_unmet(task, cell, doing.scope) if cell.disturbance else frozenset()
        try:
            prepare()
            outcome = _do_and_judge(task, doing)
        except (Disturbed, SkillFailure):
            # Only a failure during a push leads to a recovery; any other failure ends the attempt.
            if not cell.disturbance.is_active:
                raise
            outcome = _do_and_judge(task, recover(task, doing, unmet=unmet))
    except SkillFailure as failure:
        outcome = Outcome(success=False, phase=cell.phase, reason=failure.reason, detail=failure.detail)
    trajectory = cell.finish(outcome)
    if "end_effector" not in task.modalities:
        return trajectory
    motion = trajectory.body_names, trajectory.body_positions, trajectory.body_wxyz
    return replace(trajectory, end_effectors=find_end_effectors(cell.simulation.robot, *motion))


def _do_and_judge(task: Task, doing: TaskPerformer) -> Outcome:
    doing.do(task.steps, doing.scope)
    outcome = evaluate_success(task, doing)
    if outcome.success:
        hold_still(doing.cell)
        outcome = evaluate_success(task, doing)  # things at rest may have begun to rock
    return outcome


def begin_attempt(
    task: Task,
    simulation: NewtonSimulation,
    layout: PhysicalLayout,
    *,
    streams: Streams,
    planner: str,
    pace: float = 1.0,
    exchange: MotionExchange | None = None,
) -> TaskPerformer:
    """Load a layout and let it settle; return the performer of the task's steps."""
    simulation.load(layout)
    settle(simulation)
    planners = {
        arm: make_motion_planner(
            planner, simulation.robot.with_arm(arm), rate=simulation.rate, pace=pace, exchange=exchange
        )
        for arm in simulation.robot.arm_names
    }
    noise = task.execution_noise
    cell = SimulatedWorkcell(simulation, planners, layout, streams=streams, regions=task.regions, execution_noise=noise)
    return performer(task, cell, layout)


def settle(simulation: NewtonSimulation) -> None:
    """Let objects come to rest before recording."""
    command = simulation.present_action()
    for _ in range(_SETTLE_PERIODS):
        simulation.advance(command)
    # An attempt and its replay must begin in the same state. A replay begins from stored positions and velocities; the
    # solver's warm-start data are not stored, and restore() resets them here as well.
    simulation.data.qvel[:] = 0.0
    simulation.restore(simulation.state())


def wait_for_rest(cell: SimulatedWorkcell, *, patience: int) -> None:
    """Wait for rolling objects to come to rest, so that the result can be evaluated."""
    with cell.step("wait", ""):
        cell.begin("settle")
        for _ in range(patience):
            if all(cell.is_at_rest(name) for name in cell.objects):
                return
            cell.wait(1)


def hold_still(cell: SimulatedWorkcell) -> None:
    """Record some rows with the arm at rest, so that a policy learns to stop."""
    with cell.step("wait", ""):
        cell.begin("rest")
        cell.wait(_REST_PERIODS)


def evaluate_success(task: Task, doing: TaskPerformer, *, patience: int = _PATIENCE_PERIODS) -> Outcome:
    """Return the first condition of success that does not hold, or success.

    Args:
        task: The task.
        doing: Performer of the steps, after the last one.
        patience: Longest wait for moving objects [record periods].
    """
    wait_for_rest(doing.cell, patience=patience)
    if failure := doing.failure(task.success, doing.scope):
        return replace(failure, phase=f"success {failure.phase}")
    return find_unbelievable(doing.cell.contact_extremes()) or Outcome(success=True)


def find_unbelievable(extremes: Mapping[str, float]) -> Outcome | None:
    """Return a failure if one of the largest contact measures is implausible; None if all are plausible."""
    for name, limit in _BELIEVABLE.items():
        if extremes[name] > limit:
            unit = "mm/s" if name == "held_creep" else "mm"
            detail = f"{name.replace('_', ' ')} of {extremes[name] * 1e3:.2f} {unit}, at most {limit * 1e3:g}"
            return Outcome(success=False, phase="success contacts", reason=Reason.UNBELIEVABLE_CONTACT, detail=detail)
    return None
