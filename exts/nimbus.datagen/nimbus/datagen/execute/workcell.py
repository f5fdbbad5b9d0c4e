"""Interface of a skill to the robot in its scene: observe, plan a motion, execute it in physics."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.episode.layout import PhysicalLayout
from nimbus.datagen.episode.trajectory import Outcome, Reason, Trajectory
from nimbus.datagen.execute.disturbance_watch import DisturbanceWatch
from nimbus.datagen.execute.execution_noise import NOISY_PHASES, draw_execution_noise, noise_scale
from nimbus.datagen.execute.gripper_control import GripperControl
from nimbus.datagen.execute.motions.grasps import grasp_axes, prefer_tried
from nimbus.datagen.execute.multi_arm.arm_scheduler import ArmScheduler, wait_for_way
from nimbus.datagen.execute.planning_scenes import planning_scene
from nimbus.datagen.execute.scene_graph import describe_scene
from nimbus.datagen.execute.world_state import SimulatedWorld
from nimbus.datagen.plan.grasp import Grasp
from nimbus.datagen.plan.grasp_ranking import rank_grasps
from nimbus.datagen.plan.motion import MotionPlan, MotionPlanner
from nimbus.datagen.plan.scene import PlanningScene
from nimbus.datagen.plan.verify import first_collision
from nimbus.datagen.progress import tick
from nimbus.datagen.random_streams import Streams
from nimbus.datagen.tasks.statements import GivenUp, SkillFailure

if TYPE_CHECKING:
    from nimbus.datagen.simulate.newton import NewtonSimulation
    from nimbus.datagen.tasks.task_file import Region


_TRACKING_LIMIT = 0.03
"""Tracking error above which the arm counts as blocked [rad]."""
_PACE_WITH_GRAINS = 0.35
"""Fraction of the usual speed of transports in a world with grains: its physics takes long steps, in which a fast and
turning hand leaves the object behind by up to a millimeter."""
_FAR_BELOW = 10.0
"""Depth to which the planning scene moves ignored bodies [m]."""


class SimulatedWorkcell(SimulatedWorld):
    """View of one arm in one attempt at a physical layout; skills move the arm through it.

    The views of all arms share the attempt and the state of physics. Each has its own planner, planning scene and
    plans.

    Args:
        simulation: Simulation loaded with the layout.
        planner: The motion planner, or one for each arm by name.
        layout: The physical layout.
        streams: Random streams of this attempt by address.
        regions: The task's regions by name.
        execution_noise: Standard deviation of the noise on the motion of an empty arm toward a thing [rad].
    """

    def __init__(
        self,
        simulation: NewtonSimulation,
        planner: MotionPlanner | Mapping[str, MotionPlanner],
        layout: PhysicalLayout,
        *,
        streams: Streams,
        regions: Mapping[str, Region] | None = None,
        execution_noise: float = 0.0,
    ) -> None:
        super().__init__(simulation, layout, regions=regions)
        self.streams = streams
        self.plan_statistics: list[dict[str, float]] = []
        self._noise = execution_noise
        self.disturbance = DisturbanceWatch(self.arms, layout.disturbance, rate=simulation.rate)
        planners = planner if isinstance(planner, Mapping) else dict.fromkeys(simulation.robot.arm_names, planner)
        for name in simulation.robot.arm_names:
            # A shallow copy: scene, recorder and labels are shared, and _become() gives each view its own arm.
            view = copy.copy(self) if self.arms else self
            view._become(name, planners[name])
            self.arms[name] = view

    def _become(self, name: str, planner: MotionPlanner) -> None:
        """Turn this object into the view of one arm."""
        self._view_arm(name)
        self.planner = planner
        self.scene = planning_scene(self.simulation, name)
        self._gripper = GripperControl(self)
        self._noise_now: FloatArray | None = None
        """(J,) noise added to the next period's execution [rad]."""
        self._plan_count = 0
        self.most_plans = 0
        """Number of plans after which the attempt is given up; 0 for no limit."""
        self._notes: dict[str, float] = {}
        self.upcoming: FloatArray = np.zeros((0, len(self.arm_joints)))
        """Remaining rows of the plan in execution."""
        self._together: ArmScheduler | None = None

    # Grasps and labels of rows

    def grasps(self, name: str, *, limit: int = 40, canonical: bool = True) -> list[Grasp]:
        """Return grasps of an object in its current pose, best first.

        Args:
            name: The object.
            limit: Largest number of grasps.
            canonical: Put the grasps nearest to the hand's heading at home first; otherwise the firmest ones.
        """
        closing = self.scene.tool_pose(np.asarray(self.robot.arm.home))[:2, 1] if canonical else None
        ranked = rank_grasps(
            grasp_axes(self.objects[name], self.robot.gripper.shape),
            self.pose(name),
            table_height=self.lowest_point(name),
            limit=limit,
            home_heading=None if closing is None else float(np.arctan2(closing[1], closing[0])),
        )
        shape = self.robot.gripper.shape
        return prefer_tried(ranked, self.model(name), self.pose(name), shape, table_height=self.lowest_point(name))

    @contextmanager
    def step(self, skill: str, target: str) -> Iterator[None]:
        """Attribute all rows recorded in the block to one skill step."""
        self._labels.begin_step(self.name, skill, target)
        yield  # a failure skips the end of the step, so that the current phase shows where it failed
        self._labels.end_step(*(self.arms if self._together is None else (self.name,)))

    def begin(self, phase: str) -> None:
        """Begin a phase of the skill."""
        self._labels.begin_phase(self.name, phase)

    def finish(self, outcome: Outcome) -> Trajectory:
        """Return the record of the attempt."""
        self._note_relations()
        return self._recorder.trajectory(outcome, self.plan_statistics)

    # Motion

    def rng(self) -> np.random.Generator:
        """Return the random generator of the next plan; each plan of the attempt has its own.

        Raises:
            GivenUp: The limit on plans is reached.
        """
        self._plan_count += 1
        if 0 < self.most_plans < self._plan_count:
            raise GivenUp(Reason.NO_PATH, f"given up after {self.most_plans} plans")
        # The first arm's stream is addressed without its name: plans of a one-armed robot do not depend on that name.
        if self.name == next(iter(self.arms)):
            return self.streams("plan", self._plan_count)
        return self.streams("plan", self.name, self._plan_count)

    def limit_plans(self, count: int) -> None:
        """Limit the number of further plans of each arm; a plan beyond the limit raises :class:`GivenUp`."""
        for arm in self.arms.values():
            arm.most_plans = arm._plan_count + count

    def break_off(self) -> None:
        """Discard the current steps and remaining motions of all arms."""
        self._labels.end_step(*self.arms)
        for arm in self.arms.values():
            arm.upcoming = arm.upcoming[:0]

    def look(self) -> PlanningScene:
        """Return the planning scene in its current state."""
        tick()
        qpos = self.simulation.data.qpos.copy()
        handled = {self.held, *self._labels.targets}
        for name in itertools.chain(*(self.contents(name) for name in handled if name in self.objects)):
            # Contents move with their container; like the container, they are not obstacles.
            if name not in self.simulation.flexible:  # grains are no obstacles in any case
                qpos[self.position_address(name) + 2] -= _FAR_BELOW
        self.scene.set_world(qpos)
        # A held part, such as a drawer, moves in its joint; only a held object is rigidly attached to the tool.
        # The rest of a held cloth or cable hangs from the hand, and is no obstacle.
        carried = self.held if self.held in self.objects and self.held not in self.simulation.flexible else None
        self.scene.hold(carried, self.tool_T_held() if carried else None)
        return self.scene

    def move_to(self, goals: Sequence[ArrayLike]) -> MotionPlan:
        """Move freely to the nearest of several tool poses, each ``world_T_tool`` (4, 4).

        Raises:
            SkillFailure: There is no motion.
        """
        return self.follow(self.planner.plan_pose(self.look(), self.arm_command, goals, rng=self.rng()))

    def move_joints(self, posture: ArrayLike) -> MotionPlan:
        """Move freely to a posture (J,) [rad or m].

        Raises:
            SkillFailure: There is no motion.
        """
        return self.follow(self.planner.plan_joints(self.look(), self.arm_command, posture, rng=self.rng()))

    def follow(self, plan: MotionPlan, *, opening: float | None = None, touching: Iterable[str] = ()) -> MotionPlan:
        """Check a plan again in the simulator's own geometry, and execute it in physics.

        Args:
            plan: The motion.
            opening: Gripper position reached in the second half of the motion [m or rad].
            touching: Objects that the motion may touch.

        Raises:
            SkillFailure: The plan failed, is in collision, or the arm did not follow.
        """
        # Recorded before any check, so that the statistics contain refused plans as well.
        self.plan_statistics.append(dict(plan.statistics) | self._notes)
        self._notes = {}
        if not plan:
            raise SkillFailure.of_plan(plan)
        if self.meter.carried and self.simulation.flexible.has_heap:
            plan = plan.slowed(_PACE_WITH_GRAINS)
        wait_for_way(self, plan.positions)
        scene = self.look()
        # Physics has moved things since the plan was made, and some planners use other geometry. Therefore the plan is
        # checked again with the simulator's own geometry in its current state.
        with scene.allow(*touching):
            collision = first_collision(scene, plan.positions)
        self.plan_statistics[-1]["recheck_depth"] = collision.depth if collision else 0.0
        if collision:
            raise SkillFailure(Reason.PLAN_REJECTED, f"{collision} of {len(plan.positions) - 1}")
        postures = plan.positions[1:]
        # The gripper opens in the second half, when the hand is clear of neighboring objects.
        half = len(postures) // 2
        openings = np.linspace(self.opening, self.opening if opening is None else opening, len(postures) - half + 1)
        noise = self._draw_noise(postures, still_gripper=opening is None)
        for step, posture in enumerate(postures):
            self.upcoming = postures[step:]
            self._noise_now = noise[step] if noise is not None else None
            self.command(posture, opening=float(openings[max(0, step + 1 - half)]))
        self.upcoming = postures[:0]
        return plan

    def _draw_noise(self, postures: FloatArray, *, still_gripper: bool) -> FloatArray | None:
        """Draw (N, J) noise for the execution of a motion [rad]; None if the motion has none, as after a grasp."""
        is_noisy = self._noise and self._together is None and still_gripper and len(postures)
        if (
            not is_noisy
            or self._labels.joined().phase not in NOISY_PHASES
            or any(arm.held for arm in self.arms.values())
        ):
            return None
        return draw_execution_noise(
            # Each motion has its own stream: its noise does not depend on the numbers drawn for earlier motions.
            self.streams("execution_noise", self.name, len(self.plan_statistics)),
            self.scene,
            postures,
            scale=noise_scale(self.simulation.model, self.robot.arm.joints, sigma=self._noise),
        )

    def note(self, **measures: float) -> None:
        """Add measures to the statistics of the next motion's plan."""
        self._notes = dict(measures)

    def follow_all(self, *plans: MotionPlan) -> MotionPlan:
        """Execute consecutive plans as one continuous motion.

        Raises:
            SkillFailure: The arm did not follow.
        """
        return self.follow(self.planner.join(self.look(), plans))

    def command(self, posture: ArrayLike | None = None, *, opening: float | None = None) -> None:
        """Advance one record period with a new command, or with the previous one.

        Args:
            posture: (J,) joint positions of the arm [rad or m].
            opening: Gripper position [m or rad].
        """
        if posture is not None:
            self._command[:-1] = posture
        if opening is not None:
            self._command[-1] = opening
        if self._together is None:
            self._advance()
        else:
            self._together.pause(self.name)

    def repeat(self, action: ArrayLike, *, executed: ArrayLike | None = None, checked: bool = True) -> None:
        """Advance one record period with a recorded action.

        Args:
            action: (A,) concatenated postures and gripper positions of all arms [rad or m].
            executed: (A,) positions that the robot executes instead [rad or m].
            checked: Treat lag or a dropped object as a failure; False for actions of a policy.

        Raises:
            SkillFailure: An arm did not follow, or dropped its object.
        """
        self._action[:] = action
        self._run_period(None if executed is None else np.asarray(executed, dtype=float), checked=checked)

    def stop(self, periods: int) -> None:
        """Bring all arms to rest at their current positions, even under contact.

        Args:
            periods: Largest number of record periods.
        """
        for _ in range(periods):
            for arm in self.arms.values():
                arm.accept_posture()
            self._run_period(self._action if self._noise else None, checked=False)

    def _advance(self) -> None:
        """Run one record period with the commands of all arms."""
        executed = self._action.copy() if self._noise else None
        if executed is not None and self._noise_now is not None:
            executed[self._arm_entries] += self._noise_now
            self._noise_now = None
        row = self._recorder.step_count
        self.disturbance.begin_row(row)
        self._run_period(executed, checked=not self.disturbance.is_active)
        self.disturbance.end_row(row)

    def _run_period(self, executed: FloatArray | None, *, checked: bool = True) -> None:
        """Run one record period with the commands of all arms, or with other positions (A,) [rad or m]."""
        skill, target, phase = self.disturbance.label(self._recorder.step_count) or self._labels.joined()
        if self._recorder.is_boundary(skill, target):
            self._note_relations()
        self._recorder.record(self._action, executed=executed, skill=skill, target=target, phase=phase)
        self.simulation.advance(self._action if executed is None else executed, observe=self._observe)
        if not self.simulation.is_stable:
            raise SkillFailure(Reason.UNSTABLE, "a position, velocity or acceleration is not finite")
        for arm in self.arms.values() if checked else ():
            arm._check()

    def _note_relations(self) -> None:
        """Record the scene graph at a boundary of two skill steps."""
        if self.simulation.is_stable:
            edges = describe_scene(self)
            self._recorder.note_relations((edge.relation, edge.object, edge.target) for edge in edges)

    def lag(self) -> float:
        """Return the largest deviation of a joint from its command [rad]."""
        actual = self.simulation.joint_positions()[self.arm_joints]
        return float(np.abs(actual - self.simulation.reference[self.arm_joints]).max())

    def _check(self) -> None:
        lag = self.lag()
        if lag > _TRACKING_LIMIT:
            raise SkillFailure(Reason.TRACKING_ERROR, f"{lag:.3f} rad off its command")
        self._gripper.check_slip()

    def wait(self, steps: int) -> None:
        """Hold still for some record periods."""
        for _ in range(steps):
            self.command()

    # Gripper

    def open(self, *, room: float | None = None, steps: int = 3) -> None:
        """Open the fingers by ``room`` [m] each, or fully, and release the held object."""
        self._gripper.open(room=room, steps=steps)

    def close_on(self, name: str, *, steps: int = 4, patience: int = 8) -> bool:
        """Close the fingers on an object; return True if all fingers hold it.

        Slanted sides push the hand away; therefore the arm's actual posture becomes its command.
        """
        return self._gripper.close_on(name, steps=steps, patience=patience)

    def expect_contact(self, name: str | None) -> None:
        """Measure contacts of the gripper with a body as if it were held; None ends the measurement."""
        self.meter.closing_on = name

    def carry(self) -> None:
        """Require from now on that the held object does not move in the hand."""
        self._gripper.carry()

    def end_transport(self) -> None:
        """End the transport: from now on the held object may be pushed in the hand."""
        self.meter.carried = False

    def regain(self) -> None:
        """Make the arm's posture its command after a failure, and release objects that slipped away."""
        self.accept_posture()
        self._gripper.check_grip()

    def accept_posture(self) -> None:
        """Command the arm to stay in its current posture."""
        self._command[:-1] = self.simulation.joint_positions()[self.arm_joints]

    # Several arms

    @property
    def others_work(self) -> bool:
        """Return True if another arm is active at the same time."""
        return self._together is not None and self._together.others_work(self.name)

    def together(self, works: Mapping[str, Callable[[], None]]) -> None:
        """Run a function for each of several arms at the same time.

        Each function moves only its own arm. The functions take turns in the given order, once per record period, so
        that the result is deterministic. An arm whose plan would come near another arm waits until that arm has moved.

        Args:
            works: Functions by name of the arm.

        Raises:
            SkillFailure: The first function's failure; the other functions are stopped.
        """
        together = ArmScheduler(works, self._advance)
        for name in works:
            self.arms[name]._together = together
        try:
            together.run()
        finally:
            for name in works:
                arm = self.arms[name]
                arm._together, arm.upcoming = None, arm.upcoming[:0]
