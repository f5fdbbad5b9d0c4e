"""Interfaces that plug-ins see: a skill moves a :class:`Workcell`, a condition judges a :class:`World`.

Poses are (4, 4) matrices named ``a_T_b``; lengths are in metres, angles in radians. Names are those of objects, of
fixtures of the scene, of links of the robot, and ``object.part`` of the moving parts of an object.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import ArrayLike

from nimbus.datagen.arrays import FloatArray

if TYPE_CHECKING:
    import mujoco

    from nimbus.datagen.episode.layout import PlacedObject
    from nimbus.datagen.objects.model import ObjectModel
    from nimbus.datagen.plan.grasp import Grasp
    from nimbus.datagen.plan.motion import MotionPlan, MotionPlanner
    from nimbus.datagen.plan.scene import PlanningScene
    from nimbus.datagen.robots.robot import Robot
    from nimbus.datagen.tasks.task_file import Region
    from nimbus.datagen.usd.stage import Fixture, StageInfo


class Physics(Protocol):
    """Simulation of the scene, for measurements that a :class:`World` has no method for."""

    @property
    def rate(self) -> float:
        """Record periods a second [Hz]."""
        ...

    @property
    def model(self) -> mujoco.MjModel:
        """Bodies, joints and geometry; not to be changed."""
        ...

    @property
    def data(self) -> mujoco.MjData:
        """Present state; not to be changed."""
        ...

    def body_speed(self, name: str) -> tuple[float, float]:
        """Linear [m/s] and angular [rad/s] speed of a body."""
        ...


class SceneState(Protocol):
    """Objects and fixtures of the scene at this moment: positions, shapes, joints."""

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
        """Fixtures and surfaces of the scene, and the place of the robot in it."""
        ...

    @property
    def start_poses(self) -> Mapping[str, FloatArray]:
        """``world_T_body`` (4, 4) of objects and fixtures at the start of the attempt."""
        ...

    @property
    def simulation(self) -> Physics:
        """Simulation behind it."""
        ...

    def pose(self, name: str) -> FloatArray:
        """``world_T_body`` (4, 4) of an object, a fixture, a part or a robot link."""
        ...

    def bounds(self, name: str) -> tuple[FloatArray, FloatArray]:
        """Lower and upper corner (3,) of an object or a fixture along the axes of the world [m]."""
        ...

    def lowest_point(self, name: str) -> float:
        """Height of an object's lowest point [m]."""
        ...

    def model(self, name: str) -> ObjectModel:
        """Shape and metadata of an object."""
        ...

    def fixture(self, name: str) -> Fixture:
        """A fixture of the scene."""
        ...

    def contents(self, name: str) -> Sequence[str]:
        """Names of the objects inside an open object."""
        ...

    def cavity(self, name: str) -> tuple[FloatArray, FloatArray]:
        """Frame ``world_T_cavity`` (4, 4), and corners (2, 3) [m] in it, of the room inside an object."""
        ...

    def is_at_rest(self, name: str) -> bool:
        """An object is slower than 2 cm/s and 0.5 rad/s."""
        ...

    def has_fallen(self, name: str) -> bool:
        """An object is clearly below the place where it started."""
        ...

    def joint_fraction(self, name: str, joint: str = "") -> float:
        """Position of a part in its range: 0 closed or at rest, 1 fully open; the first part when none is named."""
        ...

    def joint_position(self, name: str, joint: str = "") -> float:
        """Position of a part's joint [rad or m]."""
        ...

    def largest_fraction(self, name: str, joint: str = "") -> float:
        """Largest fraction of its range that a part has reached at any instant so far."""
        ...

    def part_pose(self, name: str, part: str = "") -> FloatArray:
        """``world_T_part`` (4, 4)."""
        ...


class ArmState(Protocol):
    """One arm at this moment, as a condition sees it."""

    @property
    def robot(self) -> Robot:
        """The robot, reduced to this arm."""
        ...

    def is_gripping(self, name: str) -> bool:
        """All fingers touch an object."""
        ...


class World(SceneState, Protocol):
    """State that conditions judge: the scene, the arms in it, and the history of the attempt."""

    @property
    def arms(self) -> Mapping[str, ArmState]:
        """The robot's arms by name."""
        ...

    def tool_pose(self) -> FloatArray:
        """``world_T_tool`` (4, 4)."""
        ...

    def path(self, name: str) -> Sequence[FloatArray]:
        """``world_T_body`` (4, 4) at each record of the attempt so far."""
        ...

    def finger_gap(self) -> float:
        """Largest distance of any arm's finger from its open position [m]."""
        ...

    def touched_by_gripper(self) -> set[str]:
        """Names of the bodies that the gripper touches, ``world`` for what stands still; not the robot itself."""
        ...


class Workcell(World, Protocol):
    """One arm in its scene: look, plan, move, grasp.

    A robot with several arms has one such view for each, see :meth:`World.arms`; the scene is common to them.
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
        """Motion planner of the arm; its motions are run by :meth:`follow`."""
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
        """Names of the objects that were let go in this attempt."""
        ...

    @property
    def arm_command(self) -> FloatArray:
        """(J,) posture last commanded [rad]; plans start from it."""
        ...

    @property
    def opening(self) -> float:
        """Commanded position of the gripper's first joint [m or rad]."""
        ...

    @property
    def others_work(self) -> bool:
        """Another arm does something at the same time."""
        ...

    def tool_T_held(self) -> FloatArray:
        """Pose (4, 4) of the held object in the tool frame."""
        ...

    def grasps(self, name: str, *, limit: int = 40, canonical: bool = True) -> list[Grasp]:
        """Grasps of an object where it is now: those nearest to the canonical one first, or the firmest."""
        ...

    def rng(self) -> np.random.Generator:
        """A new random stream; each call gives another one, the same in every run of the episode."""
        ...

    def look(self) -> PlanningScene:
        """The planning scene with everything where it is now."""
        ...

    def begin(self, phase: str) -> None:
        """Name the phase of the skill that follows; it labels the rows of the episode and the place of a failure."""
        ...

    def note(self, **measures: float) -> None:
        """Store measures with the statistics of the next plan."""
        ...

    def move_to(self, goals: Sequence[ArrayLike]) -> MotionPlan:
        """Move freely to the nearest of some poses of the tool, each ``world_T_tool`` (4, 4).

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
        """Check a plan once more, and run it in physics.

        Args:
            plan: The motion; one that failed raises its reason.
            opening: Bring the gripper to this position [m or rad] in the second half of the motion.
            touching: Objects that the motion may touch.

        Raises:
            SkillFailure: It is no success, or the arm did not follow.
        """
        ...

    def follow_all(self, *plans: MotionPlan) -> MotionPlan:
        """Run plans, each of which starts where the one before ends, as one flowing motion.

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
        """Open the fingers by some room [m] each, or all the way, in some record periods; release the held object."""
        ...

    def close_on(self, name: str, *, steps: int = 4, patience: int = 8) -> bool:
        """Close the fingers on an object; True when all of them hold it."""
        ...

    def is_gripping(self, name: str) -> bool:
        """All fingers touch an object."""
        ...

    def expect_contact(self, name: str | None) -> None:
        """Measure contact with this body as with a held object, from now on; None ends that."""
        ...

    def carry(self) -> None:
        """Begin transport: from now on the held object must stay where it is in the hand."""
        ...

    def end_transport(self) -> None:
        """End transport: from now on something may push the held object in the hand."""
        ...

    def arm(self, name: str) -> Workcell:
        """The view of another arm.

        Raises:
            SkillFailure: The robot has no such arm.
        """
        ...

    def base_link(self) -> str:
        """The link that the arm's first joint moves."""
        ...

    def together(self, works: Mapping[str, Callable[[], None]]) -> None:
        """Run a function for each of several arms, by name, at the same time; each moves only its own arm.

        Raises:
            SkillFailure: Of the first function that fails; the others end there.
        """
        ...
