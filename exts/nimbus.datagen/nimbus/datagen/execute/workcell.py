"""The robot in its scene, as a skill sees it: look where things are, plan a motion, run it in physics."""

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
from nimbus.datagen.execute.contacts import ContactMeter
from nimbus.datagen.execute.motions.grasps import grasp_axes
from nimbus.datagen.execute.multi_arm.arm_scheduler import ArmScheduler, paths_conflict
from nimbus.datagen.execute.planning_scenes import planning_scene
from nimbus.datagen.execute.recorder import Recorder
from nimbus.datagen.execute.scene_state import SimulatedScene
from nimbus.datagen.geometry.transforms import make_transform
from nimbus.datagen.plan.grasp import Grasp, rank_grasps
from nimbus.datagen.plan.motion import MotionPlan, MotionPlanner
from nimbus.datagen.plan.scene import PlanningScene
from nimbus.datagen.plan.verify import first_collision
from nimbus.datagen.progress import tick
from nimbus.datagen.random_streams import Streams
from nimbus.datagen.robots.robot import Robot
from nimbus.datagen.tasks.statements import SkillFailure

if TYPE_CHECKING:
    from nimbus.datagen.simulate.newton import NewtonSimulation
    from nimbus.datagen.tasks.task_file import Region


_TRACKING_LIMIT = 0.03
"""[rad] More than this behind its command, and the arm pushes against something."""

_FAR_BELOW = 10.0
"""[m] Where the planning scene has what it is to ignore."""
_SLIP_LIMIT = 0.03
"""[m] A held object that moved further in the hand is being lost."""

_PATIENCE = 300
"""Record periods that an arm waits at most for another one that is in its way."""


class SimulatedWorkcell(SimulatedScene):
    """One attempt at one physical layout, seen by one arm.

    A robot with several arms has as many views of the same attempt: ``arms`` by name, of which this is the first.
    What is in the scene they share; ``robot``, ``planner``, ``scene``, ``held``, commands and plans are each arm's own.

    Args:
        simulation: Loaded with the layout.
        planner: The motion planner, or one for each arm by name.
        layout: The physical layout.
        streams: Random streams of this attempt by address.
        regions: The task's regions by name.
    """

    def __init__(
        self,
        simulation: NewtonSimulation,
        planner: MotionPlanner | Mapping[str, MotionPlanner],
        layout: PhysicalLayout,
        *,
        streams: Streams,
        regions: Mapping[str, Region] | None = None,
    ) -> None:
        super().__init__(simulation, layout, regions=regions)
        self.streams = streams
        self.plan_statistics: list[dict[str, float]] = []
        self.released: set[str] = set()
        self._meters: list[ContactMeter] = []
        self._recorder = Recorder(simulation, self._meters)
        self._labels: dict[str, tuple[str, str, str]] = {}
        self._action = simulation.present_action()
        self.arms: dict[str, SimulatedWorkcell] = {}
        planners = planner if isinstance(planner, Mapping) else dict.fromkeys(simulation.robot.arm_names, planner)
        for name in simulation.robot.arm_names:
            view = copy.copy(self) if self.arms else self
            view._become(name, planners[name])
            self.arms[name] = view

    def _become(self, name: str, planner: MotionPlanner) -> None:
        """Make this the view of one arm."""
        simulation = self.simulation
        self.name, self.planner = name, planner
        self.robot: Robot = simulation.robot.with_arm(name)
        self.scene = planning_scene(simulation, name)
        self.meter = ContactMeter(simulation, self.robot)
        self._meters.append(self.meter)
        first = sum(len(arm._command) for arm in self.arms.values())
        self._command = self._action[first : first + len(self.robot.arm.joints) + 1]
        place = {joint: index for index, joint in enumerate(simulation.joint_names)}
        self.arm_joints = np.array([place[joint] for joint in self.robot.arm.joints])
        """Rows of its arm among the simulator's joints."""
        self._finger_joints = np.array([place[joint] for joint in self.robot.gripper.joints])
        self._plan_count = 0
        self._notes: dict[str, float] = {}
        self.upcoming: FloatArray = np.zeros((0, len(self.arm_joints)))
        """What is left of the plan that it follows."""
        self._together: ArmScheduler | None = None

    # Where things are

    @property
    def arm_command(self) -> FloatArray:
        """(J,) the posture last commanded [rad]; plans start from it."""
        return self._command[:-1].copy()

    @property
    def opening(self) -> float:
        """Commanded position of the gripper's first joint [m, rad]."""
        return float(self._command[-1])

    @property
    def held(self) -> str | None:
        """Name of the object in the gripper."""
        return self.meter.held

    @property
    def phase(self) -> str:
        """The step and phase that the robot is in, for people."""
        return " ".join(part for part in self._label() if part)

    def path(self, name: str) -> list[FloatArray]:
        """``world_T_body`` (4, 4) of an object, a fixture or a robot link at each record of the attempt so far."""
        return self._recorder.path(name)

    def tool_pose(self) -> FloatArray:
        """``world_T_tool`` (4, 4)."""
        tool = self.robot.tool
        return self.pose(tool.link) @ make_transform(tool.position, tool.wxyz)

    def tool_T_held(self) -> FloatArray:
        """Pose (4, 4) of the held object in the tool frame."""
        assert self.held is not None
        return np.linalg.inv(self.tool_pose()) @ self.pose(self.held)

    def grasps(self, name: str, *, limit: int = 40) -> list[Grasp]:
        """Ways to grasp an object where it is now, best first."""
        return rank_grasps(
            grasp_axes(self.objects[name], self.robot.gripper.shape),
            self.pose(name),
            table_height=self.lowest_point(name),
            limit=limit,
        )

    # Motion

    @contextmanager
    def step(self, skill: str, target: str) -> Iterator[None]:
        """Inside, everything that is recorded belongs to one skill step."""
        self._labels[self.name] = skill, target, ""
        yield  # after a failure the phase stays, it says where that happened
        for name in self.arms if self._together is None else (self.name,):
            self._labels.pop(name, None)

    def begin(self, phase: str) -> None:
        """Name the part of the skill that follows."""
        skill, target, _ = self._labels.get(self.name, ("", "", ""))
        self._labels[self.name] = skill, target, phase

    def _label(self) -> tuple[str, str, str]:
        """Skill, target and phase of this moment, of all arms that do something."""
        labels = [self._labels[name] for name in self.arms if name in self._labels]
        skill, target, phase = (
            ("+".join(dict.fromkeys(filter(None, parts))) for parts in zip(*labels, strict=True))
            if labels
            else ("", "", "")
        )
        return skill, target, phase

    def rng(self) -> np.random.Generator:
        """A fresh stream for each plan of the attempt."""
        self._plan_count += 1
        if self.name == next(iter(self.arms)):
            return self.streams("plan", self._plan_count)
        return self.streams("plan", self.name, self._plan_count)

    def look(self) -> PlanningScene:
        """The planning scene with everything where it is now."""
        tick()
        qpos = self.simulation.data.qpos.copy()
        handled = {self.held, *(target for _, target, _ in self._labels.values())}
        for name in itertools.chain(*(self.contents(name) for name in handled if name in self.objects)):
            # What is inside goes along: it is in nobody's way.
            qpos[self.position_address(name) + 2] -= _FAR_BELOW
        self.scene.set_world(qpos)
        # A part that is held stays in its joint: it does not move with the hand as it likes.
        carried = self.held if self.held in self.objects else None
        self.scene.hold(carried, self.tool_T_held() if carried else None)
        return self.scene

    def move_to(self, goals: Sequence[ArrayLike]) -> MotionPlan:
        """Move freely to the nearest of some poses of the tool, each ``world_T_tool`` (4, 4).

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
        """Check a plan once more in the simulator's own geometry, and run it in physics.

        Args:
            plan: The motion.
            opening: Bring the gripper to this position [m, rad] in the second half of the motion.
            touching: Objects that the motion may touch.

        Raises:
            SkillFailure: It is no success, or the arm did not follow.
        """
        self.plan_statistics.append(dict(plan.statistics) | self._notes)
        self._notes = {}
        if not plan:
            raise SkillFailure.of_plan(plan)
        self._wait_for_way(plan.positions)
        scene = self.look()
        with scene.allow(*touching):
            collision = first_collision(scene, plan.positions)
        self.plan_statistics[-1]["recheck_depth"] = collision.depth if collision else 0.0
        if collision:
            raise SkillFailure(Reason.PLAN_REJECTED, f"{collision} of {len(plan.positions) - 1}")
        postures = plan.positions[1:]
        half = len(postures) // 2
        openings = np.linspace(self.opening, self.opening if opening is None else opening, len(postures) - half + 1)
        for step, posture in enumerate(postures):
            self.upcoming = postures[step:]
            self.command(posture, opening=float(openings[max(0, step + 1 - half)]))
        self.upcoming = postures[:0]
        return plan

    def note(self, **measures: float) -> None:
        """Measures that belong to the next motion, beside the statistics of its plan."""
        self._notes = dict(measures)

    def follow_all(self, *plans: MotionPlan) -> MotionPlan:
        """Run plans, each of which starts where the one before ends, as one flowing motion.

        Raises:
            SkillFailure: The arm did not follow.
        """
        return self.follow(self.planner.join(self.look(), plans))

    def command(self, posture: ArrayLike | None = None, *, opening: float | None = None) -> None:
        """Advance one record period with a new command, or hold what was commanded.

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

    def repeat(self, action: ArrayLike) -> None:
        """Advance one record period with what was once recorded.

        Args:
            action: (A,) postures and grippers of all arms, one after the other [rad or m].

        Raises:
            SkillFailure: An arm did not follow, or dropped what it held.
        """
        self._action[:] = action
        self._advance()

    def _advance(self) -> None:
        """One record period with what all arms command."""
        skill, target, phase = self._label()
        self._recorder.record(self._action, skill=skill, target=target, phase=phase)
        self.simulation.advance(self._action, observe=self._observe)
        if not self.simulation.is_stable:
            raise SkillFailure(Reason.UNSTABLE, "a position, velocity or acceleration is not finite")
        for arm in self.arms.values():
            arm._check()

    def _observe(self) -> None:
        self._furthest.observe()
        for meter in self._meters:
            meter.observe()

    def _check(self) -> None:
        actual = self.simulation.joint_positions()[self.arm_joints]
        lag = np.abs(actual - self.simulation.reference[self.arm_joints]).max()
        if lag > _TRACKING_LIMIT:
            raise SkillFailure(Reason.TRACKING_ERROR, f"{lag:.3f} rad off its command")
        if self.meter.carried:
            slip = float(np.linalg.norm((self.tool_T_held() - self._carried_at)[:3, 3]))
            if slip > _SLIP_LIMIT:
                raise SkillFailure(Reason.SLIPPED_IN_TRANSIT, f"{self.held} slid {slip * 100:.0f} cm in the hand")

    def wait(self, steps: int) -> None:
        """Hold still for some record periods."""
        for _ in range(steps):
            self.command()

    # Gripper

    def open(self, *, room: float | None = None, steps: int = 3) -> None:
        """Open the fingers by some room [m] each, or all the way, and let go of what is held."""
        gripper = self.robot.gripper
        target = gripper.open
        if room is not None:
            way = np.sign(gripper.travel_per_metre)
            widest = float((way * self._finger_positions()).max())
            target = float(way * min(way * target, widest + room * abs(gripper.travel_per_metre)))
        if self.held in self.objects:
            self.released.add(self.held)
        self.meter.held, self.meter.carried, self.meter.closing_on = None, False, None
        for value in np.linspace(self.opening, target, steps + 1)[1:]:
            self.command(opening=float(value))

    def close_on(self, name: str, *, steps: int = 4, patience: int = 8) -> bool:
        """Close the fingers on an object; True when both hold it.

        On slanted sides they push the hand away: the arm's command is afterwards the posture in which it really is.
        """
        self.meter.closing_on = name
        for value in np.linspace(self.opening, self.robot.gripper.closed, steps + 1)[1:]:
            self.command(opening=float(value))
        for _ in range(patience):
            speed = np.abs(self.simulation.joint_velocities()[self._finger_joints]).max()
            if speed < 2e-3 * abs(self.robot.gripper.travel_per_metre):
                break
            self.command()
        self._command[:-1] = self.simulation.joint_positions()[self.arm_joints]
        if not self.is_gripping(name):
            return False
        self.meter.held = name
        return True

    def _finger_positions(self) -> FloatArray:
        """Where each joint of the gripper is, as the first joint counts [m, rad]."""
        return self.simulation.joint_positions()[self._finger_joints] / self.robot.gripper.ratios

    def is_gripping(self, name: str) -> bool:
        """All fingers touch an object."""
        return self.meter.touching(name, self.robot.gripper.fingers)

    def expect_contact(self, name: str | None) -> None:
        """Measure contact with this body as with a held object, from now on; None ends that."""
        self.meter.closing_on = name

    def touched_by_gripper(self) -> set[str]:
        """Names of the bodies that the gripper touches, ``world`` for what stands still; not the robot itself."""
        return self.meter.touched_by_gripper()

    def finger_gap(self) -> float:
        """How far a finger of any arm is at most from its open position [m]."""
        return max(
            float(np.abs(arm._finger_positions() - arm.robot.gripper.open).max())
            / abs(arm.robot.gripper.travel_per_metre)
            for arm in self.arms.values()
        )

    # Several arms

    def arm(self, name: str) -> SimulatedWorkcell:
        """The view of the arm of that name.

        Raises:
            SkillFailure: The robot has no such arm.
        """
        if name not in self.arms:
            raise SkillFailure(Reason.NO_SUCH_ARM, f"'{name}'; the robot's arms: {', '.join(self.arms)}")
        return self.arms[name]

    def base_link(self) -> str:
        """The link that the arm's first joint moves."""
        model = self.simulation.model
        return model.body(int(model.jnt_bodyid[model.joint(self.robot.arm.joints[0]).id])).name

    @property
    def others_work(self) -> bool:
        """Whether another arm does something at the same time."""
        return self._together is not None and self._together.others_work(self.name)

    def together(self, works: Mapping[str, Callable[[], None]]) -> None:
        """Run a function for each of several arms at the same time.

        Each moves only its own arm. They have their turns in the order given, once a record period, so that the result
        depends on nothing else; an arm whose plan would come near another's waits until that has moved on.

        Args:
            works: By name of the arm.

        Raises:
            SkillFailure: Of the first function that fails; the others end there.
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

    def _wait_for_way(self, positions: FloatArray) -> None:
        """Hold still while the plans that other arms are following come near this one."""
        for _ in range(_PATIENCE):
            if not any(paths_conflict(self, positions, arm) for arm in self.arms.values() if len(arm.upcoming)):
                return
            self.command()

    # The record

    def carry(self) -> None:
        """From now on the held object should stay where it is in the hand."""
        self.meter.carried = True
        self._carried_at = self.tool_T_held()

    def end_transport(self) -> None:
        """End transport: from now on something may push the held object in the hand."""
        self.meter.carried = False

    def regain(self) -> None:
        """After a failure: the posture of the arm becomes its command, and what has slipped away is not held."""
        self._command[:-1] = self.simulation.joint_positions()[self.arm_joints]
        if self.held is not None and not self.is_gripping(self.held):
            self.meter.held = self.meter.closing_on = None
            self.meter.carried = False
        elif self.meter.carried:
            self.carry()

    def contact_extremes(self) -> dict[str, float]:
        """Largest contact depths so far [m], and the largest ``held_creep`` of a carry [m/s]."""
        depths = {name: self._recorder.largest(name) for name in ("held_penetration", "table_penetration")}
        return depths | {"held_creep": self._recorder.largest_creep()}

    def finish(self, outcome: Outcome) -> Trajectory:
        """The record of the attempt."""
        return self._recorder.trajectory(outcome, self.plan_statistics)
