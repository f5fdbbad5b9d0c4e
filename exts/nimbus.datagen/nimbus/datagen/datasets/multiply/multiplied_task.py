"""Task that repeats demonstrations: the original task, with its steps replaced by ``do:``."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from nimbus.datagen.datasets.multiply.cuts_file import CUTS_NAME
from nimbus.datagen.datasets.multiply.cutting import CutDemonstrations, Key
from nimbus.datagen.datasets.multiply.subtasks import Subtask
from nimbus.datagen.errors import InputError, quote_words
from nimbus.datagen.execute.demonstrations.demonstration_file import SUFFIX, DemonstrationFile
from nimbus.datagen.files.atomic import write_atomic
from nimbus.datagen.files.bounded import read_text
from nimbus.datagen.files.own_files import check_own, make_subfolder, refuse_other_owner
from nimbus.datagen.files.yaml_write import write_flow
from nimbus.datagen.robots.robot import Robot
from nimbus.datagen.tasks.absolute_paths import absolute_document
from nimbus.datagen.tasks.task import Task
from nimbus.datagen.usd.stage import StageInfo

_OWN_SUFFIXES = (SUFFIX, ".yaml", ".tmp")
"""Suffixes of the files in the folder of the takes: takes, tasks, cuts, and what a killed process leaves."""


def write_task(cut: CutDemonstrations, *, task: Task, robot: Robot, stage: StageInfo, folder: Path) -> Path:
    """Write the subtasks and the task that repeats them; return the path of the task file.

    Args:
        cut: Subtasks of the demonstrations.
        task: Task of the demonstrations.
        robot: Robot of the task.
        stage: Scene of the task.
        folder: Folder for the files; created if missing.

    Raises:
        InputError: The folder is a link, belongs to another user, or contains other files.
    """
    _make_folder(folder)
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


def takes_folder(dataset: Path) -> Path:
    """Return the folder beside a dataset with the takes that its task repeats, and that task."""
    return dataset.with_name(f"{dataset.name}.demonstrations")


def keep_cuts(folder: Path, text: str) -> Path:
    """Write a cuts file beside the takes; return its path.

    Args:
        folder: Folder for the file; created if missing.
        text: Content of the file.

    Raises:
        InputError: The folder is a link, belongs to another user, or contains other files, or it holds a cuts file with
            other content, which a person may have edited.
    """
    _make_folder(folder)
    path = folder / CUTS_NAME
    check_own(path)
    if path.exists() and read_text(path, follow=False) != text:
        what = "there is already a cuts file, and it differs from the cuts that were found"
        raise InputError(what, where=str(path), instead=f"use it with {quote_words('--cuts', path)}, or remove it")
    write_atomic(path, text, durable=False, shared=True)
    return path


def _make_folder(folder: Path) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    make_subfolder(folder)
    refuse_other_owner(folder)  # another owner could change the task file, which is trusted
    for entry in sorted(folder.iterdir()):
        check_own(entry)
        if entry.is_dir() or not entry.name.endswith(_OWN_SUFFIXES):
            what = "the folder for the takes contains something that nimbus multiply did not write"
            raise InputError(what, where=str(entry), instead="move it elsewhere, or give another --out")


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


def _text(task: Task, steps: str) -> str:
    """Return the text of a task with other steps and with absolute paths."""
    lines = []
    for field, value in absolute_document(task).items():
        if field == "steps":
            lines.append(f"steps:\n{steps}")
        elif field in ("regions", "objects"):
            lines.append(f"{field}:\n" + "".join(f"  {name}: {write_flow(entry)}\n" for name, entry in value.items()))
        else:
            lines.append(f"{field}: {write_flow(value)}\n")
    return "".join(lines)
