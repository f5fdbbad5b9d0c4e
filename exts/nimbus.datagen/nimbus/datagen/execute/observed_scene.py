"""A scene in which something else than a skill commands the robot: it is observed, judged and recorded."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.episode.layout import PhysicalLayout
from nimbus.datagen.episode.trajectory import Outcome, Trajectory
from nimbus.datagen.execute.contacts import ContactMeter
from nimbus.datagen.execute.recorder import Recorder
from nimbus.datagen.execute.scene_state import SimulatedScene
from nimbus.datagen.geometry.transforms import make_transform
from nimbus.datagen.robots.robot import Robot

if TYPE_CHECKING:
    from nimbus.datagen.simulate.newton import NewtonSimulation
    from nimbus.datagen.tasks.task_file import Region


class ObservedArm:
    """One arm of the robot: its tool, its fingers, and what they touch.

    Args:
        simulation: Loaded with a layout.
        name: Name of the arm.
    """

    def __init__(self, simulation: NewtonSimulation, name: str) -> None:
        self._simulation, self.name = simulation, name
        self.robot: Robot = simulation.robot.with_arm(name)
        self.meter = ContactMeter(simulation, self.robot)
        place = {joint: index for index, joint in enumerate(simulation.joint_names)}
        self._joints = np.array([place[joint] for joint in self.robot.arm.joints])
        self._fingers = np.array([place[joint] for joint in self.robot.gripper.joints])

    def tool_pose(self) -> FloatArray:
        """``world_T_tool`` (4, 4)."""
        tool = self.robot.tool
        return self._simulation.body_pose(tool.link) @ make_transform(tool.position, tool.wxyz)

    def is_gripping(self, name: str) -> bool:
        """All fingers touch an object."""
        return self.meter.touching(name, self.robot.gripper.fingers)

    def finger_gap(self) -> float:
        """Largest distance of a finger from its open position [m]."""
        gripper = self.robot.gripper
        positions = self._simulation.joint_positions()[self._fingers] / gripper.ratios
        return float(np.abs(positions - gripper.open).max()) / abs(gripper.travel_per_metre)

    def lag(self) -> float:
        """Largest distance of an arm joint from its reference [rad or m]."""
        behind = self._simulation.joint_positions() - self._simulation.reference
        return float(np.abs(behind[self._joints]).max())


class ObservedScene(SimulatedScene):
    """One attempt at a physical layout, by whatever commands the robot.

    Lag and slip are measures here and end nothing: a policy pushes, slips and goes on.

    Args:
        simulation: Loaded with the layout, at rest.
        layout: The physical layout.
        regions: The task's regions by name.
    """

    def __init__(
        self, simulation: NewtonSimulation, layout: PhysicalLayout, *, regions: Mapping[str, Region] | None = None
    ) -> None:
        super().__init__(simulation, layout, regions=regions)
        self.arms = {name: ObservedArm(simulation, name) for name in simulation.robot.arm_names}
        self._meters = [arm.meter for arm in self.arms.values()]
        self._recorder = Recorder(simulation, self._meters)
        self.largest_lag = 0.0
        """Largest distance so far of an arm joint from its reference [rad or m]."""

    @property
    def step_count(self) -> int:
        """Record periods so far."""
        return self._recorder.step_count

    def tool_pose(self) -> FloatArray:
        """``world_T_tool`` (4, 4) of the first arm."""
        return next(iter(self.arms.values())).tool_pose()

    def path(self, name: str) -> list[FloatArray]:
        """``world_T_body`` (4, 4) of an object, a fixture or a robot link at each record so far."""
        return self._recorder.path(name)

    def finger_gap(self) -> float:
        """Largest distance of any arm's finger from its open position [m]."""
        return max(arm.finger_gap() for arm in self.arms.values())

    def touched_by_gripper(self) -> set[str]:
        """Names of the bodies that the first arm's gripper touches; not the robot itself."""
        return self._meters[0].touched_by_gripper()

    def held(self) -> dict[str, str]:
        """The object that all fingers of an arm touch, by name of the arm; arms that hold nothing are left out."""
        found: dict[str, str] = {}
        for name, arm in self.arms.items():
            touched = arm.meter.touched_by_gripper()
            held = next((item for item in self._movable if item in touched and arm.is_gripping(item)), None)
            if held is not None:
                found[name] = held
        return found

    @cached_property
    def _movable(self) -> tuple[str, ...]:
        return tuple(sorted(self.objects))

    def advance(self, action: FloatArray, *, skill: str = "", target: str = "", phase: str = "") -> None:
        """Record the present state with a command, and run physics for one record period.

        Args:
            action: (A,) commanded positions of all arms and grippers [rad or m].
            skill: Label of the row.
            target: Label of the row: what is being worked on.
            phase: Label of the row.
        """
        self._recorder.record(action, skill=skill, target=target, phase=phase)
        self.simulation.advance(action, observe=self._observe)
        self.largest_lag = max(self.largest_lag, *(arm.lag() for arm in self.arms.values()))
        self._follow_hands()

    def _follow_hands(self) -> None:
        """Let the contact measures follow what the hands hold; a skill would say so."""
        held = self.held()
        for name, arm in self.arms.items():
            arm.meter.held = arm.meter.closing_on = held.get(name)
            arm.meter.carried = name in held

    def _observe(self) -> None:
        self._furthest.observe()
        for meter in self._meters:
            meter.observe()

    def finish(self, outcome: Outcome) -> Trajectory:
        """The record of the attempt."""
        return self._recorder.trajectory(outcome, [])
