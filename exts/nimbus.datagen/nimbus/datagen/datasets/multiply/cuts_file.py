"""Cuts file: the subtasks of each demonstration with their times, in YAML that people read and edit.

A cuts file belongs to one dataset: each demonstration is named together with a hash of its states.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Literal, get_args

import numpy as np
from pydantic import Field

from nimbus.datagen.datasets.multiply.contact_rows import WORLD
from nimbus.datagen.datasets.multiply.cuts import LEAST_ROWS, SubtaskCut
from nimbus.datagen.datasets.multiply.source import Demonstration
from nimbus.datagen.errors import suggest
from nimbus.datagen.files.strict_yaml import Document, Keys, StrictModel, read
from nimbus.datagen.files.yaml_write import write_flow

CUTS_NAME = "cuts.yaml"
"""Name of a cuts file, unless the user chooses another one."""
Kind = Literal["take", "put", "move", "work on", "work with", "take together", "hand over"]
KINDS: tuple[str, ...] = get_args(Kind)
"""Kinds of subtasks; takes of one kind are compared and named alike."""
_MOST_SECONDS = 1e6
_FINE_RATE = 200.0
"""Rate above which a millisecond does not identify a row [Hz]."""


class WrittenCut(StrictModel):
    """One subtask in the file."""

    arms: tuple[str, ...] = Field(min_length=1, description="arms that work; several arms move in step")
    kind: Kind
    frame: str = Field(description="object, or part as OBJECT.PART, with which the motion is moved; or world")
    first: float = Field(ge=0, le=_MOST_SECONDS, description="time of the first row [s]")
    last: float = Field(ge=0, le=_MOST_SECONDS, description="time of the last row [s]")


class WrittenDemonstration(StrictModel):
    """One demonstration in the file."""

    states: str = Field(description="hash of the demonstration's states")
    use: bool = Field(default=True, description="false leaves the demonstration out")
    subtasks: tuple[WrittenCut, ...] = ()


class CutsFile(StrictModel):
    """Content of a cuts file."""

    nimbus_cuts: Literal[1]
    task: str
    robot: str
    demonstrations: dict[str, WrittenDemonstration] = Field(min_length=1)


@dataclass(frozen=True, kw_only=True)
class DemonstrationCuts:
    """Cuts of one demonstration."""

    cuts: tuple[SubtaskCut, ...]
    """Subtasks in order of time."""
    use: bool = True
    reason: str = field(default="", compare=False)
    """Reason why the demonstration is not used, for readers."""


@dataclass(frozen=True, kw_only=True)
class CutsScope:
    """Names to which cuts may refer."""

    task: str
    robot: str
    arms: tuple[str, ...]
    fixtures: frozenset[str]
    """Bodies of the scene that do not belong to an object."""

    def frames_of(self, demonstration: Demonstration) -> tuple[str, ...]:
        """Return the objects of a demonstration, their parts, and the fixtures."""
        objects = tuple(item.name for item in demonstration.layout.objects)
        owners = {*objects, *self.fixtures}
        parts = [name for name in demonstration.bodies if "." in name and name.partition(".")[0] in owners]
        return (*objects, *sorted(parts), *sorted(self.fixtures))


def states_hash(demonstration: Demonstration) -> str:
    """Return a hash of a demonstration's states, which identifies it."""
    digest = hashlib.sha256(repr(float(demonstration.rate)).encode())
    openings = [rows for _, rows in sorted(demonstration.openings.items())]
    items = sorted(item.name for item in demonstration.layout.objects)
    places = [demonstration.bodies[name][:, :3, 3] for name in items if name in demonstration.bodies]
    for rows in (demonstration.joint_positions, *openings, *places):
        digest.update(repr(rows.shape).encode())
        digest.update(np.ascontiguousarray(rows, dtype="<f8").tobytes())
    return digest.hexdigest()[:16]


def seconds_of(row: int, rate: float) -> float:
    """Return the time of a row, rounded as in a cuts file [s]."""
    return round(row / rate, 3 if rate <= _FINE_RATE else 5)


def row_at(seconds: float, rate: float) -> int:
    """Return the row that is nearest to a time [s]."""
    return round(seconds * rate)


def write_cuts(
    entries: Mapping[str, DemonstrationCuts], demonstrations: Sequence[Demonstration], *, task: str, robot: str
) -> str:
    """Return the text of a cuts file.

    Args:
        entries: Cuts by the name of their demonstration.
        demonstrations: Demonstrations of the dataset.
        task: Name of their task.
        robot: Name of its robot.
    """
    flow = cache(write_flow)  # arms and frames recur in every demonstration
    lines = [
        f"# Subtasks of demonstrations of {task}, for nimbus multiply --cuts; times in seconds.",
        "nimbus_cuts: 1",
        f"task: {flow(task)}",
        f"robot: {flow(robot)}",
        "demonstrations:",
    ]
    for one in demonstrations:
        if (entry := entries.get(one.name)) is None:
            continue
        end = seconds_of(one.row_count - 1, one.rate)
        lines.append(f"  {flow(one.name)}:  # {one.rate:g} rows per second, until {end:g}")
        lines.append(f"    states: {flow(states_hash(one))}")
        if not entry.use:
            reason = " ".join(entry.reason.split())
            lines.append("    use: false" + (f"  # {reason}" if reason.isprintable() and reason else ""))
        lines.append("    subtasks:" + (" []" if not entry.cuts else ""))
        for cut in entry.cuts:
            first, last = seconds_of(cut.start, one.rate), seconds_of(cut.stop - 1, one.rate)
            arms = ", ".join(flow(arm) for arm in cut.arms)
            name = f"arms: [{arms}], kind: {cut.verb}, frame: {flow(cut.frame or WORLD)}"
            lines.append(f"      - {{{name}, first: {first!r}, last: {last!r}}}")
    return "\n".join(lines) + "\n"


def read_cuts(path: Path) -> Document:
    """Read a cuts file; :func:`parse_cuts` compares it with the demonstrations.

    Raises:
        InputError: The file cannot be read, or its form is wrong.
    """
    document = read(path)
    _validate(document)
    return document


def parse_cuts(
    document: Document, demonstrations: Sequence[Demonstration], scope: CutsScope
) -> dict[str, DemonstrationCuts]:
    """Check a cuts file against the demonstrations of a dataset.

    Args:
        document: Parsed file.
        demonstrations: Demonstrations of the dataset.
        scope: Names to which the cuts may refer.

    Returns:
        Cuts by the name of their demonstration; demonstrations that are not in the file are absent.

    Raises:
        InputError: The file has an error, or belongs to other demonstrations.
    """
    file = _validate(document)
    for name, own in (("task", scope.task), ("robot", scope.robot)):
        if (found := getattr(file, name)) != own:
            what = f"these are cuts for the {name} '{found}', not for '{own}'"
            raise document.error((name,), what, instead="give the cuts of these demonstrations")
    known = {one.name: one for one in demonstrations}
    entries = {}
    for name, written in file.demonstrations.items():
        keys: Keys = ("demonstrations", name)
        if name not in known:
            what = f"the dataset has no demonstration '{name}'"
            raise document.error(keys, what, instead=f"{suggest(name, known)}; or remove it", at_key=True)
        if written.states != states_hash(known[name]):
            what = f"these are cuts of another recording of the same name; its states have the hash {written.states}"
            instead = "give the cuts of this dataset, or cut it again with --cut-only"
            raise document.error((*keys, "states"), what, instead=instead)
        cuts = tuple(_checked(document, (*keys, "subtasks"), written.subtasks, known[name], scope))
        if written.use and not cuts:
            instead = "add one, or write use: false"
            raise document.error((*keys, "subtasks"), "this demonstration has no subtasks", instead=instead)
        entries[name] = DemonstrationCuts(cuts=cuts, use=written.use)
    if not any(entry.use for entry in entries.values()):
        what = "no demonstration is used"
        raise document.error(("demonstrations",), what, instead="remove use: false from at least one")
    return entries


def _validate(document: Document) -> CutsFile:
    if not isinstance(document.data, Mapping) or "nimbus_cuts" not in document.data:
        instead = "make one with nimbus multiply --cut-only, or in the studio"
        raise document.error((), "is not a cuts file: it has no nimbus_cuts: 1", instead=instead)
    return document.validate(CutsFile)


def _checked(
    document: Document, keys: Keys, written: Sequence[WrittenCut], one: Demonstration, scope: CutsScope
) -> Iterator[SubtaskCut]:
    """Yield the cuts of a demonstration after checking each one."""
    frames, end = scope.frames_of(one), seconds_of(one.row_count - 1, one.rate)
    free: dict[str, tuple[int, int]] = {}  # by arm: number of its last subtask, and the row after it
    before = 0
    for index, cut in enumerate(written):
        at: Keys = (*keys, index)
        if wrong := next((arm for arm in cut.arms if arm not in scope.arms), None):
            raise document.error((*at, "arms"), f"the robot has no arm '{wrong}'", instead=suggest(wrong, scope.arms))
        if len(set(cut.arms)) != len(cut.arms):
            raise document.error((*at, "arms"), "an arm is given twice", instead="remove one of them")
        if cut.frame != WORLD and cut.frame not in frames:
            what = f"the demonstration has no object '{cut.frame}'"
            raise document.error((*at, "frame"), what, instead=suggest(cut.frame, (WORLD, *frames)))
        start, stop = row_at(cut.first, one.rate), row_at(cut.last, one.rate) + 1
        if stop > one.row_count:
            what = f"{cut.last:g} s is after the end of the demonstration"
            raise document.error((*at, "last"), what, instead=f"it ends at {end:g} s")
        if stop - start < LEAST_ROWS:
            what = f"the subtask has {max(0, stop - start)} rows, from {cut.first:g} s to {cut.last:g} s"
            instead = f"last must be at least {(LEAST_ROWS - 1) / one.rate:.3g} s after first"
            raise document.error((*at, "last"), what, instead=instead)
        if start < before:
            what = f"{cut.first:g} s is before the start of subtask {index}"
            raise document.error((*at, "first"), what, instead="list the subtasks in the order of their first times")
        for arm in cut.arms:
            number, taken = free.get(arm, (0, 0))
            if start < taken:
                what = f"the arm '{arm}' is still in subtask {number}"
                instead = f"begin at {seconds_of(taken, one.rate):g} s or later, or end subtask {number} earlier"
                raise document.error((*at, "first"), what, instead=instead)
            free[arm] = index + 1, stop
        before = start
        # The order of the robot's arms decides the order of the tracks in a take.
        arms = tuple(sorted(cut.arms, key=scope.arms.index))
        yield SubtaskCut(
            arms=arms, verb=cut.kind, frame="" if cut.frame == WORLD else cut.frame, start=start, stop=stop
        )
