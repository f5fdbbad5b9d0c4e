"""A scene in which something else than a skill commands the robot: it is observed, judged and recorded."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import TYPE_CHECKING

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.episode.layout import PhysicalLayout
from nimbus.datagen.episode.trajectory import Outcome, Trajectory
from nimbus.datagen.execute.world_state import SimulatedWorld

if TYPE_CHECKING:
    from nimbus.datagen.simulate.newton import NewtonSimulation
    from nimbus.datagen.tasks.task_file import Region


class ObservedScene(SimulatedWorld):
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
        for name in simulation.robot.arm_names:
            view = copy.copy(self) if self.arms else self
            view._view_arm(name)
            self.arms[name] = view

    @property
    def step_count(self) -> int:
        """Record periods so far."""
        return self._recorder.step_count

    def find_held(self) -> dict[str, str]:
        """Find the object that all fingers of an arm touch, by name of the arm; empty hands are left out."""
        found: dict[str, str] = {}
        for name, arm in self.arms.items():
            touched = sorted(arm.touched_by_gripper() & set(self.objects))
            if held := next(filter(arm.is_gripping, touched), None):
                found[name] = held
        return found

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
        held = self.find_held()
        for name, arm in self.arms.items():  # the contact measures follow what the hands hold
            arm.meter.held = arm.meter.closing_on = held.get(name)
            arm.meter.carried = name in held

    def finish(self, outcome: Outcome) -> Trajectory:
        """The record of the attempt."""
        return self._recorder.trajectory(outcome, [])
