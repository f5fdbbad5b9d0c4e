"""State of the scene, the arms and the record of the attempt, as conditions evaluate it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Self

import numpy as np

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.episode.layout import PhysicalLayout
from nimbus.datagen.episode.trajectory import Reason
from nimbus.datagen.execute.contacts import ContactMeter
from nimbus.datagen.execute.recorder import Recorder
from nimbus.datagen.execute.scene_state import SimulatedScene
from nimbus.datagen.execute.step_labels import StepLabels
from nimbus.datagen.geometry.transforms import make_transform
from nimbus.datagen.robots.robot import Robot
from nimbus.datagen.tasks.statements import SkillFailure

if TYPE_CHECKING:
    from nimbus.datagen.simulate.newton import NewtonSimulation
    from nimbus.datagen.tasks.task_file import Region


class SimulatedWorld(SimulatedScene):
    """State of one attempt at one physical layout, in the view of one arm.

    For a robot with several arms, ``arms`` has one view of the attempt per arm; this object is the first one. The views
    share the scene. Each has its own ``robot``, ``meter`` and command.

    Args:
        simulation: Simulation loaded with the layout.
        layout: The physical layout.
        regions: The task's regions by name.
    """

    def __init__(
        self, simulation: NewtonSimulation, layout: PhysicalLayout, *, regions: Mapping[str, Region] | None = None
    ) -> None:
        super().__init__(simulation, layout, regions=regions)
        self.arms: dict[str, Self] = {}
        self.released: set[str] = set()
        self._meters: list[ContactMeter] = []
        self._recorder = Recorder(simulation, self._meters)
        self._labels = StepLabels(simulation.robot.arm_names)
        self._action = simulation.present_action()

    def _view_arm(self, name: str) -> None:
        """Turn this object into the view of one arm; earlier views are in ``arms``."""
        simulation = self.simulation
        self.name = name
        self.robot: Robot = simulation.robot.with_arm(name)
        self.meter = ContactMeter(simulation, self.robot)
        self._meters.append(self.meter)
        first = sum(len(arm._command) for arm in self.arms.values())
        self._command = self._action[first : first + len(self.robot.arm.joints) + 1]
        self._arm_entries = slice(first, first + len(self.robot.arm.joints))
        """Entries of its arm's joints in an action."""
        place = {joint: index for index, joint in enumerate(simulation.joint_names)}
        self.arm_joints = np.array([place[joint] for joint in self.robot.arm.joints])
        """Indices of its arm's joints in the simulator."""
        self._finger_joints = np.array([place[joint] for joint in self.robot.gripper.joints])

    # The arm

    def arm(self, name: str) -> Self:
        """Return the view of an arm by its name.

        Raises:
            SkillFailure: The robot has no such arm.
        """
        if name not in self.arms:
            raise SkillFailure(Reason.NO_SUCH_ARM, f"'{name}'; the robot's arms: {', '.join(self.arms)}")
        return self.arms[name]

    @property
    def arm_command(self) -> FloatArray:
        """Return the last commanded posture (J,), at which plans start [rad or m]."""
        return self._command[:-1].copy()

    def base_link(self) -> str:
        """Return the link moved by the arm's first joint."""
        model = self.simulation.model
        return model.body(int(model.jnt_bodyid[model.joint(self.robot.arm.joints[0]).id])).name

    def tool_pose(self) -> FloatArray:
        """Return ``world_T_tool`` (4, 4)."""
        tool = self.robot.tool
        return self.pose(tool.link) @ make_transform(tool.position, tool.wxyz)

    # The gripper

    @property
    def opening(self) -> float:
        """Commanded position of the gripper's first joint [m or rad]."""
        return float(self._command[-1])

    @property
    def held(self) -> str | None:
        """Name of the object in the gripper."""
        return self.meter.held

    def tool_T_held(self) -> FloatArray:
        """Return the pose (4, 4) of the held object in the tool frame."""
        assert self.held is not None
        return np.linalg.inv(self.tool_pose()) @ self.pose(self.held)

    def is_gripping(self, name: str) -> bool:
        """Return True if all fingers touch an object."""
        return self.meter.touching(name, self.robot.gripper.fingers)

    def touched_by_gripper(self) -> set[str]:
        """Return the names of the bodies that the gripper touches, without the robot's; fixed bodies are ``world``."""
        return self.meter.touched_by_gripper()

    def finger_positions(self) -> FloatArray:
        """Return the position of each gripper joint, converted to the first joint [m or rad]."""
        return self.robot.gripper.command_of(self.simulation.joint_positions()[self._finger_joints])

    def finger_speed(self) -> float:
        """Return the speed of the fastest gripper joint [m/s or rad/s]."""
        return float(np.abs(self.simulation.joint_velocities()[self._finger_joints]).max())

    def finger_gap(self) -> float:
        """Return the largest distance of any finger from its open position, over all arms [m]."""
        return max(
            float(np.abs(arm.finger_positions() - arm.robot.gripper.open).max())
            / abs(arm.robot.gripper.travel_per_metre)
            for arm in self.arms.values()
        )

    # The record

    @property
    def phase(self) -> str:
        """Step and phase of the robot, for messages."""
        return " ".join(filter(None, self._labels.joined()))

    def path(self, name: str) -> list[FloatArray]:
        """Return ``world_T_body`` (4, 4) of an object, a fixture or a robot link at each record so far."""
        return self._recorder.path(name)

    def contact_extremes(self) -> dict[str, float]:
        """Return the largest contact depths so far [m], and the largest ``held_creep`` of a transport [m/s]."""
        depths = {name: self._recorder.largest(name) for name in ("held_penetration", "table_penetration")}
        return depths | {"held_creep": self._recorder.largest_creep()}

    def _observe(self) -> None:
        """Record this instant of physics."""
        self._furthest.observe()
        for meter in self._meters:
            meter.observe()
