"""The robot in its scene, as a skill sees it: look where things are, plan a motion, run it in physics."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nimbus.datagen.execute.contacts import ContactMeter
from nimbus.datagen.execute.failure import SkillFailure
from nimbus.datagen.execute.grasps import grasp_axes
from nimbus.datagen.execute.recorder import Recorder
from nimbus.datagen.layout import PhysicalLayout, PlacedObject
from nimbus.datagen.liveness import progress
from nimbus.datagen.objects.library import ObjectLibrary
from nimbus.datagen.objects.model import ObjectModel
from nimbus.datagen.plan.grasp import Grasp, rank_grasps
from nimbus.datagen.plan.motion import MotionPlan, MotionPlanner
from nimbus.datagen.plan.scene import PlanningScene
from nimbus.datagen.plan.verify import first_collision
from nimbus.datagen.robot import Robot
from nimbus.datagen.rotations import pose
from nimbus.datagen.streams import Streams
from nimbus.datagen.trajectory import Outcome, Reason, Trajectory
from nimbus.datagen.usd.stage import Fixture, StageInfo

if TYPE_CHECKING:
    from nimbus.datagen.simulate.newton import NewtonSimulation
    from nimbus.datagen.task_file import Region

Float = NDArray[np.float64]

_TRACKING_LIMIT = 0.03
"""[rad] More than this behind its command, and the arm pushes against something."""

_SLIP_LIMIT = 0.03
"""[m] A held object that moved further in the hand is being lost."""


class Workcell:
    """One attempt at one physical layout.

    Args:
        simulation: Loaded with the layout.
        planner: The motion planner.
        layout: The physical layout.
        streams: Random streams of this attempt by address.
        regions: The task's regions by name.
    """

    def __init__(
        self,
        simulation: NewtonSimulation,
        planner: MotionPlanner,
        layout: PhysicalLayout,
        *,
        streams: Streams,
        regions: Mapping[str, Region] | None = None,
    ) -> None:
        self.simulation, self.planner, self.streams = simulation, planner, streams
        self.regions = regions or {}
        self.robot: Robot = simulation.robot
        self.stage: StageInfo = simulation.stage
        self.objects: dict[str, PlacedObject] = {item.name: item for item in layout.objects}
        self.scene = planning_scene(simulation)
        self.meter = ContactMeter(simulation, self.robot)
        self.plan_statistics: list[dict[str, float]] = []
        self.released: set[str] = set()
        self._recorder = Recorder(simulation, self.meter)
        self._skill, self._target, self._phase = "", "", ""
        self._command = simulation.joint_positions()[:-1].copy()
        self._plan_count = 0
        self._start_heights = {name: self.lowest_point(name) for name in self.objects}
        self.start_poses = {name: self.pose(name) for name in (*self.objects, *self.stage.fixtures)}

    # Where things are

    @property
    def arm_command(self) -> Float:
        """(J,) the posture last commanded [rad]; plans start from it."""
        return self._command[:-1].copy()

    @property
    def opening(self) -> float:
        """Commanded position of each finger [m]."""
        return float(self._command[-1])

    @property
    def held(self) -> str | None:
        """Name of the object in the gripper."""
        return self.meter.held

    @property
    def phase(self) -> str:
        """The step and phase that the robot is in, for people."""
        return " ".join(part for part in (self._skill, self._target, self._phase) if part)

    def pose(self, name: str) -> Float:
        """``world_T_body`` (4, 4) of an object, a fixture or a robot link."""
        return self.simulation.body_pose(name)

    def tool_pose(self) -> Float:
        """``world_T_tool`` (4, 4)."""
        tool = self.robot.tool
        return self.pose(tool.link) @ pose(tool.position, tool.wxyz)

    def tool_T_held(self) -> Float:
        """Pose (4, 4) of the held object in the tool frame."""
        assert self.held is not None
        return np.linalg.inv(self.tool_pose()) @ self.pose(self.held)

    def is_at_rest(self, name: str) -> bool:
        """Slower than 2 cm/s and 0.5 rad/s."""
        linear, angular = self.simulation.body_speed(name)
        return linear < 0.02 and angular < 0.5

    def model(self, name: str) -> ObjectModel:
        """Shape and metadata of an object."""
        item = self.objects[name]
        return ObjectLibrary.open(item.library).model(item.kind, item.variant)

    def fixture(self, name: str) -> Fixture:
        """A fixture of the scene."""
        return self.stage.fixtures[name]

    def lowest_point(self, name: str) -> float:
        """Height of an object's lowest point: of what it lies on, when it lies [m]."""
        pose = self.pose(name)
        return float((self.model(name).vertices @ pose[2, :3]).min() + pose[2, 3])

    def bounds(self, name: str) -> tuple[Float, Float]:
        """Lower and upper corner (3,) of an object or a fixture where it is, along the axes of the world [m]."""
        pose = self.pose(name)
        if name in self.objects:
            points = self.model(name).vertices
        else:
            points = np.array(list(itertools.product(*np.transpose(self.fixture(name).bounds))))
        points = points @ pose[:3, :3].T + pose[:3, 3]
        return points.min(axis=0), points.max(axis=0)

    def has_fallen(self, name: str) -> bool:
        """Whether an object is clearly below what it lay on at the start."""
        return self.lowest_point(name) < self._start_heights[name] - 0.1

    def grasps(self, name: str) -> list[Grasp]:
        """Ways to grasp an object where it is now, best first."""
        return rank_grasps(
            grasp_axes(self.objects[name], self.robot.gripper.shape),
            self.pose(name),
            table_height=self.lowest_point(name),
        )

    # Motion

    @contextmanager
    def step(self, skill: str, target: str) -> Iterator[None]:
        """Inside, everything that is recorded belongs to one skill step."""
        self._skill, self._target, self._phase = skill, target, ""
        yield  # after a failure the phase stays, it says where that happened
        self._skill, self._target, self._phase = "", "", ""

    def begin(self, phase: str) -> None:
        """Name the part of the skill that follows."""
        self._phase = phase

    def rng(self) -> np.random.Generator:
        """A fresh stream for each plan of the attempt."""
        self._plan_count += 1
        return self.streams("plan", self._plan_count)

    def look(self) -> PlanningScene:
        """The planning scene with everything where it is now."""
        progress()
        self.scene.set_world(self.simulation.data.qpos)
        self.scene.hold(self.held, self.tool_T_held() if self.held else None)
        return self.scene

    def move_to(self, goals: Sequence[ArrayLike]) -> MotionPlan:
        """Move freely to the nearest of some poses of the tool, each ``world_T_tool`` (4, 4).

        Raises:
            SkillFailure: There is no motion.
        """
        return self.follow(self.planner.plan_pose(self.look(), self.arm_command, goals, rng=self.rng()))

    def move_joints(self, posture: ArrayLike) -> MotionPlan:
        """Move freely to a posture.

        Raises:
            SkillFailure: There is no motion.
        """
        return self.follow(self.planner.plan_joints(self.look(), self.arm_command, posture, rng=self.rng()))

    def follow(self, plan: MotionPlan, *, opening: float | None = None, touching: Iterable[str] = ()) -> MotionPlan:
        """Check a plan once more in the simulator's own geometry, and run it in physics.

        Args:
            plan: The motion.
            opening: Bring the fingers to this position [m] in the second half of the motion.
            touching: Objects that the motion may touch.

        Raises:
            SkillFailure: It is no success, or the arm did not follow.
        """
        self.plan_statistics.append(dict(plan.statistics))
        if not plan:
            raise SkillFailure.of_plan(plan)
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
            self.command(posture, opening=float(openings[max(0, step + 1 - half)]))
        return plan

    def follow_all(self, *plans: MotionPlan) -> MotionPlan:
        """Run plans, each of which starts where the one before ends, as one flowing motion.

        Raises:
            SkillFailure: The arm did not follow.
        """
        return self.follow(self.planner.join(self.look(), plans))

    def command(self, posture: ArrayLike | None = None, *, opening: float | None = None) -> None:
        """One record period: command a posture of the arm, a finger position [m], or hold what was commanded."""
        if posture is not None:
            self._command[:-1] = posture
        if opening is not None:
            self._command[-1] = opening
        self._recorder.record(self._command, skill=self._skill, target=self._target, phase=self._phase)
        self.simulation.advance(self._command, observe=self.meter.observe)
        self._check()

    def _check(self) -> None:
        if not self.simulation.is_stable:
            raise SkillFailure(Reason.UNSTABLE, "a position, velocity or acceleration is not finite")
        actual = self.simulation.joint_positions()[: len(self.robot.arm.joints)]
        lag = np.abs(actual - self.simulation.reference[: len(actual)]).max()
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
        target = self.robot.gripper.open
        if room is not None:
            target = min(target, float(self.simulation.joint_positions()[-2:].max()) + room)
        if self.held:
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
            speed = np.abs(self.simulation.joint_velocities()[-2:]).max()
            if speed < 2e-3:
                break
            self.command()
        self._command[:-1] = self.simulation.joint_positions()[: len(self.robot.arm.joints)]
        if not self.meter.touching(name, self.robot.gripper.fingers):
            return False
        self.meter.held = name
        return True

    def carry(self) -> None:
        """From now on the held object should stay where it is in the hand."""
        self.meter.carried = True
        self._carried_at = self.tool_T_held()

    def contact_extremes(self) -> dict[str, float]:
        """Largest contact depths so far [m], and the largest ``held_creep`` of a carry [m/s]."""
        depths = {name: self._recorder.largest(name) for name in ("held_penetration", "table_penetration")}
        return depths | {"held_creep": self._recorder.largest_creep()}

    def finish(self, outcome: Outcome) -> Trajectory:
        """The record of the attempt."""
        return self._recorder.trajectory(outcome, self.plan_statistics)


def planning_scene(simulation: NewtonSimulation) -> PlanningScene:
    """The planning scene of a loaded simulation."""
    robot, model = simulation.robot, simulation.model
    hand = model.body(robot.tool.link).id
    base = model.body_rootid[hand]
    links = [model.body(index).name for index in range(1, model.nbody) if model.body_rootid[index] == base]
    return PlanningScene(
        model,
        arm_joints=robot.arm.joints,
        tool_body=robot.tool.link,
        body_T_tool=pose(robot.tool.position, robot.tool.wxyz),
        robot_bodies=links,
        gripper_bodies=robot.gripper.links,
        home=robot.arm.home,
    )
