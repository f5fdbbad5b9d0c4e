"""Recorder of an attempt, row by row at the record rate."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.episode.trajectory import DISTURBED, Outcome, RelationSpan, SkillSegment, Trajectory
from nimbus.datagen.execute.contacts import ContactMeter
from nimbus.datagen.geometry.transforms import make_transform

if TYPE_CHECKING:
    from nimbus.datagen.simulate.newton import NewtonSimulation


class Recorder:
    """Rows of state and action, each with its skill step and phase.

    A contact measure of a row is the largest value of all hands; creep is evaluated for each hand separately.
    """

    def __init__(self, simulation: NewtonSimulation, meters: Sequence[ContactMeter]) -> None:
        self._simulation, self._meters = simulation, meters
        self._start = simulation.state()
        self._rows: dict[str, list[FloatArray]] = defaultdict(list)
        self._labels: list[tuple[str, str, str]] = []
        self._relations: dict[tuple[str, str, str], int] = {}
        """Row of the boundary since which each relation has held."""
        self._spans: list[RelationSpan] = []

    @property
    def step_count(self) -> int:
        """Number of rows so far."""
        return len(self._labels)

    def record(
        self, action: FloatArray, *, skill: str, target: str, phase: str, executed: FloatArray | None = None
    ) -> None:
        """Record the current state and the action commanded from it.

        Args:
            action: (A,) commanded joint positions [rad or m].
            executed: (A,) positions that the robot executes instead, under execution noise [rad or m].
            skill: Name of the skill of this step.
            target: Name of the object that the skill manipulates.
            phase: Phase of the skill.
        """
        simulation, rows = self._simulation, self._rows
        rows["joint_positions"].append(simulation.joint_positions())
        rows["joint_velocities"].append(simulation.joint_velocities())
        rows["actions"].append(np.array(action, dtype=float))
        if executed is not None:
            rows["executed_actions"].append(np.array(executed, dtype=float))
        rows["body_positions"].append(simulation.body_positions())
        rows["body_wxyz"].append(simulation.body_wxyz())
        readings = [meter.read() for meter in self._meters]
        for name in readings[0]:
            # The largest value of all hands: if it is below a limit, every hand is.
            rows[f"contacts/{name}"].append(np.asarray(max(reading[name] for reading in readings), dtype=float))
        for arm, reading in enumerate(readings):
            rows[f"slip/{arm}"].append(np.asarray(reading["held_slip"], dtype=float))
        self._labels.append((skill, target, phase))

    def is_boundary(self, skill: str, target: str) -> bool:
        """Return True if a row with this label begins another skill step."""
        return not self._labels or self._labels[-1][:2] != (skill, target)

    def note_relations(self, relations: Iterable[tuple[str, str, str]]) -> None:
        """Record the relations (name, object, target) that hold at the boundary of skill steps before the next row."""
        now, row = set(relations), self.step_count
        for relation in self._relations.keys() - now:
            self._end_relation(relation, stop=row)
        for relation in now:
            self._relations.setdefault(relation, row)

    def _end_relation(self, relation: tuple[str, str, str], *, stop: int) -> None:
        start, (name, one, other) = self._relations.pop(relation), relation
        # A relation that began and ended at the same boundary has no rows.
        if start < stop:
            self._spans.append(RelationSpan(start=start, stop=stop, relation=name, object=one, target=other))

    def truncate(self, row_count: int) -> None:
        """Keep the first ``row_count`` rows only; the record must not contain relations."""
        for values in self._rows.values():
            del values[row_count:]
        del self._labels[row_count:]

    def path(self, body: str) -> list[FloatArray]:
        """Return ``world_T_body`` (4, 4) of a body in each row so far."""
        place = self._simulation.body_names.index(body)
        rows = zip(self._rows["body_positions"], self._rows["body_wxyz"], strict=True)
        return [make_transform(positions[place], wxyz[place]) for positions, wxyz in rows]

    def largest(self, measure: str) -> float:
        """Return the largest value of a contact measure so far."""
        rows = zip(self._rows[f"contacts/{measure}"], self._calm_rows(), strict=True)
        return float(max((value for value, is_calm in rows if is_calm), default=0.0))

    def largest_creep(self) -> float:
        """Return the largest mean speed of a carried object in the hand, over the transports so far [m/s]."""
        slips = (np.array(self._rows[f"slip/{arm}"]) * self._calm_rows() for arm in range(len(self._meters)))
        return max(largest_creep(slip, rate=self._simulation.rate) for slip in slips)

    def _calm_rows(self) -> NDArray[np.bool_]:
        """Return (T,) False for rows of a disturbance and for the next row, whose measures cover part of it."""
        disturbed = np.array([skill == DISTURBED for skill, _, _ in self._labels], dtype=bool)
        return ~disturbed & ~np.append(False, disturbed[:-1])[: len(disturbed)]

    def trajectory(self, outcome: Outcome, plan_statistics: list[dict[str, float]]) -> Trajectory:
        """Build the trajectory of all rows, with its outcome."""
        simulation, count = self._simulation, self.step_count
        rows = {name: np.array(values) for name, values in self._rows.items()}
        # Plans have different statistics; a missing value becomes NaN in the common columns.
        names = sorted({name for plan in plan_statistics for name in plan})
        # The state after the last row has the number ``count``: relations that hold there end one later.
        for relation in tuple(self._relations):
            self._end_relation(relation, stop=count + 1)
        return Trajectory(
            rate=simulation.rate,
            time=np.arange(count) / simulation.rate,
            joint_names=simulation.joint_names,
            joint_positions=rows.get("joint_positions", np.zeros((0, len(simulation.joint_names)))),
            joint_velocities=rows.get("joint_velocities", np.zeros((0, len(simulation.joint_names)))),
            action_names=simulation.action_names,
            actions=rows.get("actions", np.zeros((0, len(simulation.action_names)))),
            executed_actions=rows.get("executed_actions"),
            body_names=simulation.body_names,
            body_positions=rows.get("body_positions", np.zeros((0, len(simulation.body_names), 3))),
            body_wxyz=rows.get("body_wxyz", np.zeros((0, len(simulation.body_names), 4))),
            segments=_segments(self._labels),
            outcome=outcome,
            start=self._start,
            scene_graph=tuple(sorted(self._spans)),
            contacts={name[9:]: values for name, values in rows.items() if name.startswith("contacts/")},
            plan_statistics={
                name: np.array([plan.get(name, np.nan) for plan in plan_statistics], dtype=float) for name in names
            },
        )


def largest_creep(held_slip: FloatArray, *, rate: float) -> float:
    """Return the largest ratio of an object's displacement in the hand to the duration of its transport [m/s].

    Args:
        held_slip: (T,) displacement of the held object in the hand since its transport began [m], 0 between transports.
        rate: Rate of rows [Hz].
    """
    carried = np.flatnonzero(held_slip > 0)
    carries = np.split(carried, np.flatnonzero(np.diff(carried) > 1) + 1) if len(carried) else []
    return max((float(held_slip[carry[-1]]) / (len(carry) / rate) for carry in carries), default=0.0)


def _segments(labels: list[tuple[str, str, str]]) -> tuple[SkillSegment, ...]:
    """Group runs of equal labels."""
    segments: list[SkillSegment] = []
    start = 0
    for index in range(1, len(labels) + 1):
        if index == len(labels) or labels[index] != labels[start]:
            skill, target, phase = labels[start]
            segments.append(SkillSegment(start=start, stop=index, skill=skill, target=target, phase=phase))
            start = index
    return tuple(segments)
