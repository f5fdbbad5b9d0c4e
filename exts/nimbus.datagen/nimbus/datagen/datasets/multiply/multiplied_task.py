"""Task that repeats demonstrations: the original task, with its steps replaced by ``do:``."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from nimbus.datagen.datasets.multiply.axes import agree_on_axes
from nimbus.datagen.datasets.multiply.contact_rows import find_contact_rows
from nimbus.datagen.datasets.multiply.source import Demonstration
from nimbus.datagen.datasets.multiply.subtasks import Subtask, cut_demonstration
from nimbus.datagen.episode.layout import PhysicalLayout
from nimbus.datagen.errors import InputError
from nimbus.datagen.execute.demonstrations.demonstration_file import SUFFIX, DemonstrationFile
from nimbus.datagen.files.atomic import write_atomic
from nimbus.datagen.files.own_files import make_subfolder, refuse_other_owner
from nimbus.datagen.files.scene_files import is_path
from nimbus.datagen.files.yaml_write import write_flow
from nimbus.datagen.robots.robot import Robot
from nimbus.datagen.simulate.newton import NewtonSimulation
from nimbus.datagen.tasks.checks.references import references_of
from nimbus.datagen.tasks.references import GroupRef, RegionRef, build_environment, evaluate
from nimbus.datagen.tasks.steps import Scope, Step, Steps, stored_choices
from nimbus.datagen.tasks.task import Task
from nimbus.datagen.usd.stage import StageInfo

Key = tuple[tuple[str, ...], int]
"""Arms of a subtask, and its index among the subtasks of the same arms."""
_SAME_VERB = {"work on": "move"}
"""Verbs that count as another verb when demonstrations are compared: a drawer may be pulled with all fingers on the
handle, or with one."""


@dataclass(frozen=True, kw_only=True)
class CutDemonstrations:
    """Demonstrations of the same procedure, cut into subtasks."""

    columns: Mapping[Key, tuple[Subtask, ...]]
    """Subtasks in order, each with one take per used demonstration."""
    used: tuple[str, ...]
    """Names of the demonstrations that are used."""
    left_out: Mapping[str, str]
    """Reasons why demonstrations are not used, by their name."""


def cut_all(
    demonstrations: Sequence[Demonstration], *, task: Task, stage: StageInfo, robot: Robot
) -> CutDemonstrations:
    """Cut demonstrations into subtasks, and keep the demonstrations with the most common sequence.

    Args:
        demonstrations: Demonstrations of the task.
        task: Task of all demonstrations.
        stage: Scene of the task.
        robot: Robot of the task.

    Raises:
        InputError: No demonstration can be used; the message gives the reason for the first one.
    """
    simulation = NewtonSimulation(stage, robot, rate=task.rate)
    cut: dict[str, dict[Key, Subtask]] = {}
    left_out: dict[str, str] = {}
    first: InputError | None = None
    for one in demonstrations:
        try:
            one.check()
            rows = find_contact_rows(one, simulation)
            fixtures = stage.fixtures.keys() & set(simulation.body_names)
            still = {name: np.tile(simulation.body_pose(name), (one.row_count, 1, 1)) for name in sorted(fixtures)}
            whole = replace(one, bodies=still | dict(one.bodies))  # third-party sets contain no fixtures
            cut[one.name] = _numbered(cut_demonstration(whole, rows, related=find_related(task, one.layout, stage)))
        except InputError as error:
            left_out[one.name] = error.what
            first = first or error
    if first and not cut:
        raise first
    if not cut:
        raise InputError("there are no demonstrations", where="DEMOS", instead="give a dataset with episodes")
    forms = {
        name: tuple((key, one.frame, _SAME_VERB.get(one.verb, one.verb)) for key, one in sorted(parts.items()))
        for name, parts in cut.items()
    }
    usual = Counter(forms.values()).most_common(1)[0][0]
    used = tuple(name for name in cut if forms[name] == usual)
    for name in cut:
        if name not in used:
            left_out[name] = f"has another sequence: {describe(cut[name].values())}"
    columns = {key: agree_on_axes(tuple(cut[name][key] for name in used)) for key, _, _ in usual}
    order = sorted(columns, key=lambda key: (median(one.start for one in columns[key]), key))
    return CutDemonstrations(columns={key: columns[key] for key in order}, used=used, left_out=left_out)


def describe(subtasks: Any) -> str:
    """Describe subtasks in order, such as ``take peg_0, put board_0``."""
    ordered = sorted(subtasks, key=lambda one: one.start)
    return ", ".join(f"{one.verb} {one.frame or 'in the world'}" for one in ordered)


def write_task(cut: CutDemonstrations, *, task: Task, robot: Robot, stage: StageInfo, folder: Path) -> Path:
    """Write the subtasks and the task that repeats them; return the path of the task file.

    Args:
        cut: Subtasks of the demonstrations.
        task: Task of the demonstrations.
        robot: Robot of the task.
        stage: Scene of the task.
        folder: Folder for the files; created if missing.

    Raises:
        InputError: The folder is a link, or belongs to another user.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    make_subfolder(folder)
    refuse_other_owner(folder)  # another owner could change the task file, which is trusted
    names: dict[Key, str] = {}
    for number, (key, subtasks) in enumerate(cut.columns.items(), start=1):
        first = subtasks[0]
        thing, _, part = first.frame.partition(".")
        label = re.sub("[^a-z0-9]+", "_", f"{first.verb} {_group(thing) or 'world'}".lower())
        names[key] = f"{number}_{label}"
        file = DemonstrationFile(
            robot=robot.name,
            task=task.name,
            subtask=f"{first.verb} {_group(thing)}".strip(),
            axes=first.axes,
            part=part,
            takes=tuple(one.take for one in subtasks),
        )
        file.write(folder / f"{names[key]}{SUFFIX}")
    steps = "".join(f"  - {line}\n" for line in _steps(cut, names, task))
    path = folder / f"{task.name}.yaml"
    count = len(cut.used)
    plural = "s" if count > 1 else ""
    head = f"# {task.name}, as shown by {count} demonstration{plural}. Written by nimbus multiply.\n"
    write_atomic(path, head + _text(task, steps), durable=False, shared=True)
    return path


def _numbered(subtasks: Sequence[Subtask]) -> dict[Key, Subtask]:
    counts: Counter[tuple[str, ...]] = Counter()
    numbered: dict[Key, Subtask] = {}
    for one in subtasks:
        numbered[one.arms, counts[one.arms]] = one
        counts[one.arms] += 1
    return numbered


def find_related(task: Task, layout: PhysicalLayout, stage: StageInfo) -> dict[str, list[str]]:
    """Return, for each object, the other objects that the conditions of success relate to it; regions are omitted."""
    names = build_environment(objects=layout.objects, fixtures=stage.fixtures.values(), regions=task.regions)
    objects = {item.name for item in layout.objects}
    related: dict[str, list[str]] = {name: [] for name in objects}
    for step, scope in _conditions(task.success, Scope(names, stored_choices(layout.drawn))):
        things: list[str] = []
        for _, _, expression in references_of(task, step):
            found = evaluate(expression, scope.names)
            members = found.members if isinstance(found, GroupRef) else (found,)
            things += [one.name for one in members if not isinstance(one, (RegionRef, str))]
        for name in objects.intersection(things):
            related[name] += [other for other in things if other != name and other not in related[name]]
    return related


def _conditions(steps: Steps, scope: Scope) -> Iterator[tuple[Step, Scope]]:
    """Yield every condition with its scope; a loop yields it once per member."""
    for step in steps:
        if isinstance(step, Step):
            yield step, scope
            continue
        if (draw := step.draws(scope)) and draw[0] not in scope.choices:
            continue  # third-party datasets do not record drawn values
        for inner in step.scopes(scope):
            for block in step.blocks():
                yield from _conditions(block, inner)


def _steps(cut: CutDemonstrations, names: Mapping[Key, str], task: Task) -> list[str]:
    """Return the lines of the steps. Subtasks of different arms that overlap in time run in parallel."""
    lines: list[str] = []
    batch: list[Key] = []

    def flush() -> None:
        """Write the subtasks that are collected in ``batch``."""
        entries = {key: {"do": _parameters(cut.columns[key][0], names[key], task)} for key in batch}
        arms = list(dict.fromkeys(key[0] for key in batch))
        if len(arms) > 1:
            bodies = {arm[0]: [entries[key] for key in batch if key[0] == arm] for arm in arms}
            lines.append(f"parallel: {write_flow(bodies)}")
        else:
            lines.extend(f"do: {write_flow(entry['do'])}" for entry in entries.values())
        batch.clear()

    for key in cut.columns:
        alone = len(key[0]) > 1 or not any(_overlap(cut.columns[key], cut.columns[other]) for other in batch)
        if batch and (alone or len(batch[-1][0]) > 1):
            flush()
        batch.append(key)
    flush()
    return lines


def _overlap(one: Sequence[Subtask], other: Sequence[Subtask]) -> bool:
    """Return True if two subtasks of different arms overlap in time in most demonstrations."""
    shared = [
        a.start < b.stop and b.start < a.stop and not set(a.arms) & set(b.arms) for a, b in zip(one, other, strict=True)
    ]
    return 2 * sum(shared) > len(shared)


def _parameters(subtask: Subtask, name: str, task: Task) -> dict[str, str]:
    values = {"demo": name}
    if subtask.frame:
        values["on"] = _reference(subtask.frame.partition(".")[0], task)
    return values


def _reference(name: str, task: Task) -> str:
    """Return the reference of a task file to an object of a layout."""
    group = _group(name)
    if group not in task.objects or name == group:
        return name
    return group if task.objects[group].count == (1, 1) else f"{group}[{name.rpartition('_')[2]}]"


def _group(name: str) -> str:
    return re.sub(r"_\d+$", "", name)


def _with_absolute_paths(entry: Any, folder: Path) -> Any:
    """Make the paths in the settings of a randomizer absolute."""
    if not isinstance(entry, Mapping):
        return entry
    moved = dict(entry)
    if entry.get("folder"):
        moved["folder"] = str((folder / entry["folder"]).absolute())
    if entry.get("textures"):
        moved["textures"] = [str((folder / one).absolute()) for one in entry["textures"]]
    return moved


def _text(task: Task, steps: str) -> str:
    """Return the text of a task with other steps and with absolute paths."""
    data = dict(task.document.data)
    folder = Path(task.path).parent
    for field in ("robot", "scene", "pipeline"):
        if isinstance(value := data.get(field), str) and is_path(value):
            data[field] = str((folder / value).absolute())
    objects = {}
    for name, group in data["objects"].items():
        library = group.get("library")
        place = {"library": str((folder / library).absolute())} if isinstance(library, str) and is_path(library) else {}
        objects[name] = {**group, **place}
    data["objects"] = objects
    if isinstance(entries := data.get("randomize"), Mapping):
        data["randomize"] = {name: _with_absolute_paths(entry, folder) for name, entry in entries.items()}
    lines = []
    for field, value in data.items():
        if field == "steps":
            lines.append(f"steps:\n{steps}")
        elif field in ("regions", "objects"):
            lines.append(f"{field}:\n" + "".join(f"  {name}: {write_flow(entry)}\n" for name, entry in value.items()))
        else:
            lines.append(f"{field}: {write_flow(value)}\n")
    return "".join(lines)
