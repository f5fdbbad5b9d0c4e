"""Task: robot, objects, scene, steps and variation, loaded from a short file with a strict schema."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel

from nimbus.datagen import registry
from nimbus.datagen.errors import InputError, suggest
from nimbus.datagen.files.scene_files import is_path, resolve_from, scene_file, scene_names
from nimbus.datagen.files.strict_yaml import Document, Keys, parse, read
from nimbus.datagen.files.yaml_edit import set_value
from nimbus.datagen.navigate.scene_source import SceneSource
from nimbus.datagen.tasks.checks.names import check_names
from nimbus.datagen.tasks.navigation_file import (
    BASE,
    BodySettings,
    KeepSettings,
    NavigateSettings,
    NavigationFile,
    RigCameraSettings,
)
from nimbus.datagen.tasks.plugins import discover
from nimbus.datagen.tasks.statements import Randomization
from nimbus.datagen.tasks.steps import Steps, parse_steps, walk
from nimbus.datagen.tasks.task_file import (
    EXECUTION_NOISE,
    CameraSettings,
    ObjectGroup,
    Region,
    TaskFile,
    TaskModality,
    presets,
)

_HIGHEST_CAMERA = 2.4
"""Largest height of a camera above the floor [m]."""
_BLOCK = 5
"""Number of consecutive episodes that share a scene, which a worker opens and maps once for all of them."""
ROBOT_FLAG = "--robot"
"""Flag of the commands that take another robot, for messages."""
AS_THE_TASK = "task"
"""Name that stands for the level of randomization given in the task file."""


@dataclass(frozen=True, kw_only=True)
class BaseTask:
    """Common part of tasks of all kinds: a name, a hash, a pipeline and randomizers; see :class:`Task` for paths."""

    name: str
    path: str
    content_hash: str
    """Hash of the content. The order of names counts, because it decides the order of draws; comments and formatting
    do not count.
    """
    family: str
    """Kind of task, for readers only; may be empty."""
    pipeline: str
    rate: float
    """Recorded steps per second [Hz]."""
    cameras: Mapping[str, CameraSettings | RigCameraSettings]
    randomize: Mapping[str, Randomization]
    """Settings by the name of a registered randomizer."""
    document: Document = field(repr=False)
    is_own: bool = False
    """True for a task that was loaded from a file, False for one from a text, such as that of an episode."""

    @property
    def robot_name(self) -> str:
        """Name of the robot or body, as given in the task."""
        return ""

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


@dataclass(frozen=True, kw_only=True)
class Task(BaseTask):
    """A validated task file of a robot that manipulates.

    Relative paths in the file (robot, scene, pipeline, libraries) start from the folder of the file; in this object
    they are relative to the working directory.
    """

    robot: str
    scene: str
    regions: Mapping[str, Region]
    objects: Mapping[str, ObjectGroup]
    steps: Steps
    success: Steps
    execution_noise: float
    """Standard deviation of the noise on the commands while an arm with an empty gripper approaches an object [rad]."""
    cameras: Mapping[str, CameraSettings]
    instructions: tuple[str, ...]
    modalities: tuple[TaskModality, ...] = ()
    """Annotations requested for the whole task; the modalities of ``cameras`` already include those of cameras."""

    @property
    def robot_name(self) -> str:
        """Name or path of the robot."""
        return self.robot


@dataclass(frozen=True, kw_only=True)
class NavigationTask(BaseTask):
    """A validated task file of a body that moves through scenes."""

    source: SceneSource
    body: BodySettings
    navigate: NavigateSettings
    keep: KeepSettings
    cameras: Mapping[str, RigCameraSettings]

    @property
    def robot_name(self) -> str:
        """Name of the body."""
        return BASE

    def address(self, index: int) -> tuple[int, int]:
        """Return the scene of an episode, and its rank among the episodes of that scene; neighbors share a scene.

        Args:
            index: Index of the episode.
        """
        block, place = divmod(index, _BLOCK)
        turn, scene = divmod(block, self.source.count)
        return scene, turn * _BLOCK + place


def task_names() -> list[str]:
    """Return the names of the tasks that come with Nimbus."""
    return scene_names("tasks")


def load_task(name_or_path: str | Path, *, skill_folders: Iterable[Path | str] = (), robot: str = "") -> Task:
    """Load a task by name or path, and check everything that can be checked without robot, scene and libraries.

    Args:
        name_or_path: A name from ``scenes/tasks`` or the path of a file.
        skill_folders: Folders with custom skills.
        robot: Name or path of a robot that replaces the task's own, as if the file named it.

    Raises:
        InputError: There is no such task, or the task has an error; the first one is reported, with its location.
    """
    return manipulation_of(load_any_task(name_or_path, skill_folders=skill_folders, robot=robot))


def manipulation_of(task: BaseTask) -> Task:
    """Return a task of a robot that manipulates.

    Raises:
        InputError: The task is of another kind.
    """
    if not isinstance(task, Task):
        what = f"'{task.name}' is a navigation task, and a task with steps is needed here"
        raise InputError(what, where=task.path, instead="name a task with steps and success conditions")
    return task


def load_any_task(
    name_or_path: str | Path, *, skill_folders: Iterable[Path | str] = (), robot: str = ""
) -> Task | NavigationTask:
    """Load a task of any kind, as :func:`load_task` does."""
    path = scene_file("tasks", name_or_path, kind="task")
    document = _with_robot(read(path), robot, folder=path.parent) if robot else read(path)
    task = _task(document, path.stem, folder=path.parent, skill_folders=skill_folders)
    if isinstance(task, Task):
        _check_files(task)
    return replace(task, is_own=True)


def _with_robot(document: Document, robot: str, *, folder: Path) -> Document:
    """Return the document of a task with another robot in its text; all other characters are unchanged.

    Raises:
        InputError: There is no such robot, or the task has none to replace.
    """
    scene_file("robots", robot, kind="robot", where=ROBOT_FLAG)
    if file_model(document) is NavigationFile:
        what = f"{document.name} is a navigation task, which has a body and no robot"
        raise InputError(what, where=ROBOT_FLAG, instead="leave it out, or edit body: in the file")
    document.validate(TaskFile)
    named = Path(os.path.relpath(robot, folder)).as_posix() if is_path(robot) else robot
    return parse(set_value(document.text, ("robot",), named), document.name)


def _check_files(task: Task) -> None:
    """Check the files that the steps of a task name."""
    for step, _ in (*walk(task.steps), *walk(task.success)):
        try:
            step.statement.check_files()
        except InputError as error:
            raise task.error(step.keys, f"{error.where}: {error.what}", instead=error.instead) from None


def check_form(name_or_path: str | Path) -> None:
    """Check that a file has the form of a task, without importing skills.

    Args:
        name_or_path: A name from ``scenes/tasks`` or the path of a file.

    Raises:
        InputError: There is no such task, or the file does not have the form of a task.
    """
    document = read(scene_file("tasks", name_or_path, kind="task"))
    document.validate(file_model(document))


def file_model(document: Document) -> type[TaskFile] | type[NavigationFile]:
    """Return the model of a task file: one with ``navigate:`` is a navigation task.

    Raises:
        InputError: The file has both ``navigate:`` and ``steps:``.
    """
    if not isinstance(document.data, dict) or "navigate" not in document.data:
        return TaskFile
    if "steps" in document.data:
        raise document.error(("steps",), "a task has steps or navigate, not both", instead="remove one", at_key=True)
    return NavigationFile


def parse_task(text: str, *, name: str = "task", folder: Path = Path()) -> Task:
    """Validate the text of a task file with steps, for example while it is edited; see :func:`parse_any_task`."""
    return manipulation_of(parse_any_task(text, name=name, folder=folder))


def parse_any_task(
    text: str,
    *,
    name: str = "task",
    folder: Path = Path(),
    opens_steps: bool = True,
) -> Task | NavigationTask:
    """Validate the text of a task file of any kind, for example the text that is stored in an episode.

    Args:
        text: The text.
        name: Name of the task, and of the file in errors.
        folder: Folder at which relative paths begin.
        opens_steps: False to leave the files of the steps closed; the content hash then represents none of them.
    """
    document = parse(text, f"{name}.yaml")
    return _task(document, name, folder=folder, opens_steps=opens_steps)


def _task(
    document: Document,
    name: str,
    *,
    folder: Path,
    opens_steps: bool = True,
    skill_folders: Iterable[Path | str] = (),
) -> Task | NavigationTask:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]*", name):
        what = f"'{name}' cannot be the name of a task, because file names of episodes contain it"
        raise InputError(what, where=document.name, instead="use letters, digits, _ and - in the file's name")
    file = document.validate(file_model(document))
    discover(skill_folders)  # this follows the check of the form, because it imports all skills
    if isinstance(file, NavigationFile):
        return _navigation_task(document, file, name, folder=folder)
    moved = file.seen_from(folder)
    steps = parse_steps(document, ("steps",), file.steps, kind="skill", folder=folder, opens=opens_steps)
    success = parse_steps(document, ("success",), file.success, kind="predicate", folder=folder, opens=opens_steps)
    randomize = {entry: randomizer_settings(document, entry, value) for entry, value in file.randomize.items()}
    task = Task(
        name=name,
        path=document.name,
        content_hash=_content_hash(file, steps, success, randomize),
        family=file.family,
        robot=moved.robot,
        scene=moved.scene_name,
        pipeline=moved.pipeline,
        rate=file.rate,
        regions=file.regions,
        objects=moved.objects,
        steps=steps,
        success=success,
        execution_noise=EXECUTION_NOISE if file.execution_noise is None else file.execution_noise,
        cameras={name: camera.annotated(file.modalities) for name, camera in file.cameras.items()},
        modalities=file.modalities,
        randomize={entry: settings.seen_from(folder) for entry, settings in randomize.items()},
        instructions=file.instructions,
        document=document,
    )
    check_names(task)
    return task


def _navigation_task(document: Document, file: NavigationFile, name: str, *, folder: Path) -> NavigationTask:
    source = _source(document, file.scene)
    goals = registry.names("goal")
    if file.navigate.to not in goals:
        what = f"unknown goal '{file.navigate.to}'"
        raise document.error(("navigate", "to"), what, instead=suggest(file.navigate.to, goals))
    randomize = {entry: randomizer_settings(document, entry, value) for entry, value in file.randomize.items()}
    content = file.model_dump(mode="json") | {
        "scene": source.model_dump(mode="json"),
        "randomize": {entry: randomize[entry].model_dump(mode="json") for entry in sorted(randomize)},
    }
    for camera, settings in file.cameras.items():
        if settings.position[2] >= _HIGHEST_CAMERA:
            what = f"the camera is {settings.position[2]:g} m above the floor, above the ceiling of most rooms"
            instead = f"write less than {_HIGHEST_CAMERA} m"
            raise document.error(("cameras", camera, "position"), what, instead=instead)
    return NavigationTask(
        name=name,
        path=document.name,
        content_hash=hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16],
        family=file.family,
        pipeline=resolve_from(folder, file.pipeline),
        rate=file.rate,
        cameras=file.cameras,
        randomize={entry: settings.seen_from(folder) for entry, settings in randomize.items()},
        document=document,
        source=source.seen_from(folder),
        body=file.body,
        navigate=file.navigate,
        keep=file.keep,
    )


def _source(document: Document, scene: Mapping[str, object]) -> SceneSource:
    """Choose the source of scenes by the key that names it."""
    known = registry.names("scene")
    if not (chosen := [key for key in scene if key in known]):
        instead = f"write one of {', '.join(known)}, such as scene: {{homes: 40, rooms: [4, 9]}}"
        raise document.error(("scene",), "no source of scenes is named", instead=instead)
    return document.validate(registry.lookup("scene", chosen[0]), data=dict(scene), at=("scene",))


AnyTask = TypeVar("AnyTask", bound=BaseTask)


def randomize_task(task: AnyTask, level: str, *, only: Collection[str] = (), where: str = "randomize") -> AnyTask:
    """Return a task randomized at another level; its layouts keep their objects and places.

    Args:
        task: The task.
        level: Name of a level, such as ``none`` or ``medium``; ``task`` for the level in the file.
        only: Names of randomizers to keep; all when empty.
        where: Command-line flag, for messages.

    Raises:
        InputError: There is no such level, or ``only`` contains a name that is not a randomizer of the level.
    """
    known = presets("randomizations")
    if level not in (AS_THE_TASK, *known):
        instead = suggest(level, (AS_THE_TASK, *known))
        raise InputError(f"unknown randomization '{level}'", where=where, instead=instead)
    settings = dict(task.randomize)
    if level != AS_THE_TASK:
        settings = {name: randomizer_settings(task.document, name, value) for name, value in known[level].items()}
    if unknown := [name for name in only if name not in settings]:
        raise InputError(
            f"{level} has no randomizer '{unknown[0]}'", where="--only", instead=suggest(unknown[0], settings)
        )
    return replace(task, randomize={name: own for name, own in settings.items() if not only or name in only})


def randomizer_settings(document: Document, name: str, value: object) -> Randomization:
    """Validate an entry of ``randomize:``; its paths stay relative to the folder of the task file.

    Raises:
        InputError: There is no such randomizer, or a setting is wrong.
    """
    keys = ("randomize", name)
    known = registry.names("randomizer")
    if name not in known:
        raise document.error(keys, f"unknown randomizer '{name}'", instead=suggest(name, known), at_key=True)
    return document.validate(registry.lookup("randomizer", name), data={} if value is None else value, at=keys)


def _content_hash(file: TaskFile, steps: Steps, success: Steps, randomize: Mapping[str, BaseModel]) -> str:
    content = file.canonical() | {
        "steps": [step.canonical() for step in steps],
        "success": [step.canonical() for step in success],
        "randomize": {name: randomize[name].model_dump(mode="json") for name in sorted(randomize)},
    }
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16]
