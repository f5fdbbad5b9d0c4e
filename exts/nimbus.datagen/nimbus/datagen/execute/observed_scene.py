"""Scene in which an external source, such as a policy, commands the robot; it is observed, evaluated and recorded."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.episode.layout import PhysicalLayout
from nimbus.datagen.episode.trajectory import Outcome, Trajectory
from nimbus.datagen.execute.contacts import MeterMemory
from nimbus.datagen.execute.world_state import SimulatedWorld

if TYPE_CHECKING:
    from nimbus.datagen.simulate.newton import NewtonSimulation, PhysicsSnapshot
    from nimbus.datagen.tasks.task_file import Region


@dataclass(frozen=True, kw_only=True)
class SceneSnapshot:
    """Scene, its measures and the length of its record at one instant."""

    physics: PhysicsSnapshot
    row_count: int
    meters: tuple[MeterMemory, ...]
    furthest: FloatArray
    """(P,) largest fraction that each moving part has reached."""


class ObservedScene(SimulatedWorld):
    """Attempt at a physical layout with external commands.

    Lag and slip are measured but do not end the attempt, because a policy may push, slip and continue.

    Args:
        simulation: Simulation loaded with the layout, at rest.
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
        """Number of record periods so far."""
        return self._recorder.step_count

    def find_held(self) -> dict[str, str]:
        """Find the object that all fingers of an arm touch, for each arm by name; empty hands are omitted."""
        found: dict[str, str] = {}
        for name, arm in self.arms.items():
            touched = sorted(arm.touched_by_gripper() & set(self.objects))
            if held := next(filter(arm.is_gripping, touched), None):
                found[name] = held
        return found

    def advance(self, action: FloatArray, *, skill: str = "", target: str = "", phase: str = "") -> None:
        """Record the current state with a command, and run physics for one record period.

        Args:
            action: (A,) commanded positions of all arms and grippers [rad or m].
            skill: Label of the row.
            target: Label of the row: object that is being manipulated.
            phase: Label of the row.
        """
        self._recorder.record(action, skill=skill, target=target, phase=phase)
        self.simulation.advance(action, observe=self._observe)
        held = self.find_held()
        for name, arm in self.arms.items():  # each meter measures the contacts of the object in its hand
            arm.meter.held = arm.meter.closing_on = held.get(name)
            # Closing fingers move an object, and so does a second hand that holds it; neither motion is creep.
            arm.meter.carried = name in held and arm.meter.holds_alone(held[name])

    def snapshot(self) -> SceneSnapshot:
        """Return a copy of the current state for :meth:`rewind`."""
        return SceneSnapshot(
            physics=self.simulation.snapshot(),
            row_count=self.step_count,
            meters=tuple(meter.memory for meter in self._meters),
            furthest=self._furthest.reached,
        )

    def rewind(self, snapshot: SceneSnapshot) -> None:
        """Restore an earlier state, and remove the later rows of the record."""
        self.simulation.rewind(snapshot.physics)
        self._recorder.truncate(snapshot.row_count)
        for meter, memory in zip(self._meters, snapshot.meters, strict=True):
            meter.memory = memory
        self._furthest.reached = snapshot.furthest

    def finish(self, outcome: Outcome) -> Trajectory:
        """Return the record of the attempt."""
        return self._recorder.trajectory(outcome, [])
