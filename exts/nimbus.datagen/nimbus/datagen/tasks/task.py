"""Task: robot, objects, scene, steps and variation, loaded from a short file with a strict schema."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from pydantic import BaseModel

from nimbus.datagen import registry
from nimbus.datagen.errors import InputError, suggest
from nimbus.datagen.files.scene_files import resolve_from, scene_file, scene_names
from nimbus.datagen.files.strict_yaml import Document, Keys, parse, read
from nimbus.datagen.rooms.settings import RoomSettings, StageFileSettings
from nimbus.datagen.tasks.checks.names import check_names
from nimbus.datagen.tasks.plugins import discover
from nimbus.datagen.tasks.statements import Randomization
from nimbus.datagen.tasks.steps import Steps, parse_steps
from nimbus.datagen.tasks.task_file import EXECUTION_NOISE, CameraSettings, ObjectGroup, Region, TaskFile, presets

AS_THE_TASK = "task"
"""Level of randomization given in the task file."""


@dataclass(frozen=True, kw_only=True)
class Task:
    """Validated task file.

    Relative paths in the file (robot, scene, pipeline, libraries) begin at its folder; here they are relative to the
    working directory.
    """

    name: str
    path: str
    content_hash: str
    """Hash of the file's content. Comments and formatting do not change it; the order of names does, because draws
    follow it."""
    family: str
    """Category of the task, for display; empty when the file gives none."""
    robot: str
    scene: str
    pipeline: str
    rate: float
    """Recorded steps per second [Hz]."""
    regions: Mapping[str, Region]
    objects: Mapping[str, ObjectGroup]
    steps: Steps
    success: Steps
    execution_noise: float
    """Standard deviation of the noise on the motion of an empty arm toward a thing [rad]."""
    cameras: Mapping[str, CameraSettings]
    randomize: Mapping[str, Randomization]
    """Settings by the name of a registered randomizer."""
    instructions: tuple[str, ...]
    document: Document = field(repr=False)

    @property
    def text(self) -> str:
        """Text of the file."""
        return self.document.text

    def where(self, *keys: str | int) -> str:
        """Return the location of a field in the file, for errors: ``where("objects", "items", "count")``."""
        return self.document.where(keys)

    def error(self, keys: Keys, what: str, *, instead: str = "", at_key: bool = False) -> InputError:
        """Return an error about one field of the file, ready to raise."""
        return self.document.error(keys, what, instead=instead, at_key=at_key)


def task_names() -> list[str]:
    """Return the names of the tasks that come with Nimbus."""
    return scene_names("tasks")


def load_task(name_or_path: str | Path, *, skill_folders: Iterable[Path | str] = ()) -> Task:
    """Load a task by name or path, and check everything that needs no robot, scene or libraries.

    Args:
        name_or_path: A name from ``scenes/tasks`` or the path of a file.
        skill_folders: Folders with custom skills.

    Raises:
        InputError: There is no such task, or the first error in it, in one line with its location.
    """
    path = scene_file("tasks", name_or_path, kind="task")
    return _task(read(path), path.stem, folder=path.parent, skill_folders=skill_folders)


def check_form(name_or_path: str | Path) -> None:
    """Check that a file has the form of a task, without importing skills.

    Args:
        name_or_path: A name from ``scenes/tasks`` or the path of a file.

    Raises:
        InputError: There is no such task, or the first error of form in it.
    """
    read(scene_file("tasks", name_or_path, kind="task")).validate(TaskFile)


def parse_task(text: str, *, name: str = "task", folder: Path = Path()) -> Task:
    """Parse and check the text of a task file, for example one stored in an episode, or one that is being edited.

    Args:
        text: The text.
        name: Name of the task, and of the file in errors.
        folder: Folder at which relative paths begin.
    """
    return _task(parse(text, f"{name}.yaml"), name, folder=folder)


def _task(document: Document, name: str, *, folder: Path, skill_folders: Iterable[Path | str] = ()) -> Task:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]*", name):
        what = f"'{name}' cannot name a task, its episodes' files carry it"
        raise InputError(what, where=document.name, instead="use letters, digits, _ and - in the file's name")
    file = document.validate(TaskFile)
    discover(skill_folders)  # once the form is right: all skills are imported here
    steps = parse_steps(document, ("steps",), file.steps, kind="skill")
    success = parse_steps(document, ("success",), file.success, kind="predicate")
    randomize = {entry: _settings(document, entry, value) for entry, value in file.randomize.items()}
    task = Task(
        name=name,
        path=document.name,
        content_hash=_content_hash(file, steps, success, randomize),
        family=file.family,
        robot=resolve_from(folder, file.robot),
        scene=_scene(file.scene, folder),
        pipeline=resolve_from(folder, file.pipeline),
        rate=file.rate,
        regions=file.regions,
        objects={
            name: group.model_copy(update={"library": resolve_from(folder, group.library)})
            for name, group in file.objects.items()
        },
        steps=steps,
        success=success,
        execution_noise=EXECUTION_NOISE if file.execution_noise is None else file.execution_noise,
        cameras=file.cameras,
        randomize={entry: settings.seen_from(folder) for entry, settings in randomize.items()},
        instructions=file.instructions,
        document=document,
    )
    check_names(task)
    return task


def randomize_task(task: Task, level: str, *, only: Collection[str] = (), where: str = "randomize") -> Task:
    """Return the task with another level of randomization; its layouts keep their objects and positions.

    Args:
        task: The task.
        level: Name of a level, such as ``none`` or ``medium``; ``task`` for that of the file.
        only: Names of randomizers to keep; all when empty.
        where: Command-line flag, for messages.

    Raises:
        InputError: There is no such level, or it has no such randomizer.
    """
    known = presets("randomizations")
    if level not in (AS_THE_TASK, *known):
        instead = suggest(level, (AS_THE_TASK, *known))
        raise InputError(f"unknown randomization '{level}'", where=where, instead=instead)
    settings = dict(task.randomize)
    if level != AS_THE_TASK:
        settings = {name: _settings(task.document, name, value) for name, value in known[level].items()}
    if unknown := [name for name in only if name not in settings]:
        raise InputError(
            f"{level} has no randomizer '{unknown[0]}'", where="--only", instead=suggest(unknown[0], settings)
        )
    return replace(task, randomize={name: own for name, own in settings.items() if not only or name in only})


def _scene(scene: str | RoomSettings | StageFileSettings, folder: Path) -> str:
    """Return the name or path that opens the stage of a scene."""
    if isinstance(scene, str):
        return resolve_from(folder, scene)
    if isinstance(scene, StageFileSettings):
        return scene.model_copy(update={"file": str(folder / scene.file)}).reference
    return scene.model_copy(update={"bench": resolve_from(folder, scene.bench)}).reference


def _settings(document: Document, name: str, value: object) -> Randomization:
    keys = ("randomize", name)
    known = registry.names("randomizer")
    if name not in known:
        raise document.error(keys, f"unknown randomizer '{name}'", instead=suggest(name, known), at_key=True)
    return document.validate(registry.lookup("randomizer", name), data={} if value is None else value, at=keys)


def _content_hash(file: TaskFile, steps: Steps, success: Steps, randomize: Mapping[str, BaseModel]) -> str:
    content = file.model_dump(mode="json") | {
        "steps": [step.canonical() for step in steps],
        "success": [step.canonical() for step in success],
        "randomize": {name: randomize[name].model_dump(mode="json") for name in sorted(randomize)},
    }
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16]
