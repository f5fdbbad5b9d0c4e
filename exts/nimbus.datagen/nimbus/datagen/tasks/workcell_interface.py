"""Interfaces for plug-ins: a skill moves a :class:`Workcell`, a condition evaluates a :class:`World`.

Poses are (4, 4) matrices named ``a_T_b``; lengths are in meters, angles in radians. Names are those of objects, of
fixtures of the scene, of links of the robot, and ``object.part`` of the moving parts of an object.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import ArrayLike

from nimbus.datagen.arrays import FloatArray

if TYPE_CHECKING:
    from nimbus.datagen.episode.layout import PlacedObject
    from nimbus.datagen.geometry.mujoco_library import mujoco
    from nimbus.datagen.objects.model import ObjectModel
    from nimbus.datagen.plan.grasp import Grasp
    from nimbus.datagen.plan.motion import MotionPlan, MotionPlanner
    from nimbus.datagen.plan.scene import PlanningScene
    from nimbus.datagen.robots.robot import Robot
    from nimbus.datagen.tasks.task_file import Region
    from nimbus.datagen.usd.stage import Fixture, StageInfo


class Physics(Protocol):
    """Simulation of the scene, for measurements that :class:`World` does not provide."""

    @property
    def rate(self) -> float:
        """Record periods per second [Hz]."""
        ...

    @property
    def model(self) -> mujoco.MjModel:
        """Bodies, joints and geometry; read-only."""
        ...

    @property
    def data(self) -> mujoco.MjData:
        """Current state; read-only."""
        ...

    def body_speed(self, name: str) -> tuple[float, float]:
        """Return the linear [m/s] and angular [rad/s] speed of a body."""
        ...


class SceneState(Protocol):
    """Objects and fixtures of the scene in their current state: positions, shapes, joints."""

    @property
    def objects(self) -> Mapping[str, PlacedObject]:
        """Movable objects of the episode by name."""
        ...

    @property
    def regions(self) -> Mapping[str, Region]:
        """Regions of the task by name."""
        ...

    @property
    def stage(self) -> StageInfo:
        """Fixtures and surfaces of the scene, and the robot's mount."""
        ...

    @property
    def start_poses(self) -> Mapping[str, FloatArray]:
        """``world_T_body`` (4, 4) of objects and fixtures at the start of the attempt."""
        ...

    @property
    def simulation(self) -> Physics:
        """Simulation that computes the state."""
        ...

    def pose(self, name: str) -> FloatArray:
        """Return ``world_T_body`` (4, 4) of an object, a fixture, a part or a robot link."""
        ...

    def bounds(self, name: str) -> tuple[FloatArray, FloatArray]:
        """Return the lower and upper corner (3,) of an object or a fixture along the world axes [m]."""
        ...

    def lowest_point(self, name: str) -> float:
        """Return the height of an object's lowest point [m]."""
        ...

    def points(self, name: str) -> FloatArray:
        """Return the points (V, 3) of a flexible object in the world frame [m]; empty for a rigid object.

        These are the vertices of a cloth, row after row, the ends of the links of a cable, or the centers of grains.
        """
        ...

    def model(self, name: str) -> ObjectModel:
        """Return the shape and metadata of an object."""
        ...

    def fixture(self, name: str) -> Fixture:
        """Return a fixture of the scene."""
        ...

    def contents(self, name: str) -> Sequence[str]:
        """Return the names of the objects inside an open object."""
        ...

    def cavity(self, name: str) -> tuple[FloatArray, FloatArray]:
        """Return the frame ``world_T_cavity`` (4, 4) of an object's cavity, and its corners (2, 3) in the frame [m]."""
        ...

    def is_at_rest(self, name: str) -> bool:
        """Return True if an object is slower than 2 cm/s and 0.5 rad/s."""
        ...

    def has_fallen(self, name: str) -> bool:
        """Return True if an object is clearly below its initial position."""
        ...

    def joint_fraction(self, name: str, joint: str = "") -> float:
        """Return a part's fraction of its range: 0 closed or at rest, 1 fully open; the first part by default."""
        ...

    def joint_position(self, name: str, joint: str = "") -> float:
        """Return the position of a part's joint [rad or m]."""
        ...

    def largest_fraction(self, name: str, joint: str = "") -> float:
        """Return the largest fraction of its range that a part has reached at any instant so far."""
        ...

    def part_pose(self, name: str, part: str = "") -> FloatArray:
        """Return ``world_T_part`` (4, 4)."""
        ...


class ArmState(Protocol):
    """State of one arm, for conditions."""

    @property
    def robot(self) -> Robot:
        """The robot, reduced to this arm."""
        ...

    def is_gripping(self, name: str) -> bool:
        """Return True if all fingers touch an object."""
        ...


class World(SceneState, Protocol):
    """State that conditions evaluate: the scene, the arms in it, and the history of the attempt."""

    @property
    def arms(self) -> Mapping[str, ArmState]:
        """The robot's arms by name."""
        ...

    def tool_pose(self) -> FloatArray:
        """Return ``world_T_tool`` (4, 4)."""
        ...

    def path(self, name: str) -> Sequence[FloatArray]:
        """Return ``world_T_body`` (4, 4) at each record of the attempt so far."""
        ...

    def finger_gap(self) -> float:
        """Return the largest distance of any arm's finger from its open position [m]."""
        ...

    def touched_by_gripper(self) -> set[str]:
        """Return the bodies touched by the gripper, ``world`` for fixed ones, without the robot itself."""
        ...


class Workcell(World, Protocol):
    """One arm in its scene, with which a skill observes, plans, moves and grasps.

    A robot with several arms has one such view for each, see :meth:`World.arms`; they share the scene.
    """

    @property
    def arms(self) -> Mapping[str, Workcell]:
        """Views of the robot's arms by name."""
        ...

    @property
    def name(self) -> str:
        """Name of the arm."""
        ...

    @property
    def robot(self) -> Robot:
        """The robot, reduced to this arm."""
        ...

    @property
    def planner(self) -> MotionPlanner:
        """Motion planner of the arm; its motions are executed by :meth:`follow`."""
        ...

    @property
    def scene(self) -> PlanningScene:
        """Planning scene as of the last :meth:`look`."""
        ...

    @property
    def held(self) -> str | None:
        """Name of the object in the gripper."""
        ...

    @property
    def released(self) -> set[str]:
        """Names of the objects released in this attempt."""
        ...

    @property
    def arm_command(self) -> FloatArray:
        """Last commanded posture (J,) [rad], from which plans start."""
        ...

    @property
    def opening(self) -> float:
        """Commanded position of the gripper's first joint [m or rad]."""
        ...

    @property
    def others_work(self) -> bool:
        """True if another arm is active at the same time."""
        ...

    def tool_T_held(self) -> FloatArray:
        """Return the pose (4, 4) of the held object in the tool frame."""
        ...

    def grasps(self, name: str, *, limit: int = 40, canonical: bool = True) -> list[Grasp]:
        """Return grasps of an object in its current pose, either nearest to the canonical one or firmest first."""
        ...

    def rng(self) -> np.random.Generator:
        """Return a new random stream; each call returns another stream, and the streams are the same in every run."""
        ...

    def look(self) -> PlanningScene:
        """Return the planning scene in its current state."""
        ...

    def begin(self, phase: str) -> None:
        """Begin a phase of the skill, which labels the rows of the episode and locates a failure."""
        ...

    def note(self, **measures: float) -> None:
        """Store measures with the statistics of the next plan."""
        ...

    def move_to(self, goals: Sequence[ArrayLike]) -> MotionPlan:
        """Move freely to the nearest of several poses of the tool, each ``world_T_tool`` (4, 4).

        Raises:
            SkillFailure: There is no motion, or the arm did not follow.
        """
        ...

    def move_joints(self, posture: ArrayLike) -> MotionPlan:
        """Move freely to a posture (J,) [rad].

        Raises:
            SkillFailure: There is no motion, or the arm did not follow.
        """
        ...

    def follow(self, plan: MotionPlan, *, opening: float | None = None, touching: Iterable[str] = ()) -> MotionPlan:
        """Check a plan again, and execute it in physics.

        Args:
            plan: The motion; a failed plan raises its reason.
            opening: Gripper position reached in the second half of the motion [m or rad].
            touching: Objects that the motion may touch.

        Raises:
            SkillFailure: The plan failed, is in collision, or the arm did not follow.
        """
        ...

    def follow_all(self, *plans: MotionPlan) -> MotionPlan:
        """Execute consecutive plans as one continuous motion.

        Raises:
            SkillFailure: The arm did not follow.
        """
        ...

    def command(self, posture: ArrayLike | None = None, *, opening: float | None = None) -> None:
        """Advance one record period with a posture (J,) [rad], a gripper position [m or rad], or the last command."""
        ...

    def wait(self, steps: int) -> None:
        """Hold still for some record periods."""
        ...

    def open(self, *, room: float | None = None, steps: int = 3) -> None:
        """Open the fingers by ``room`` [m] each, or fully, over some record periods; this releases the held object."""
        ...

    def close_on(self, name: str, *, steps: int = 4, patience: int = 8) -> bool:
        """Close the fingers on an object; return True if all of them hold it."""
        ...

    def is_gripping(self, name: str) -> bool:
        """Return True if all fingers touch an object."""
        ...

    def expect_contact(self, name: str | None) -> None:
        """Measure contact with a body from now on, as with a held object; None ends the measurement."""
        ...

    def carry(self) -> None:
        """Begin transport, during which the held object must not move in the hand."""
        ...

    def end_transport(self) -> None:
        """End transport; afterwards, contact may push the held object in the hand."""
        ...

    def arm(self, name: str) -> Workcell:
        """Return the view of another arm.

        Raises:
            SkillFailure: The robot has no such arm.
        """
        ...

    def base_link(self) -> str:
        """Return the link moved by the arm's first joint."""
        ...

    def together(self, works: Mapping[str, Callable[[], None]]) -> None:
        """Run a function for each of several arms, by name, at the same time; each moves only its own arm.

        Raises:
            SkillFailure: The first function's failure; the other functions are stopped.
        """
        ...
