"""Conventions of training data, which the evaluation of a policy must share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nimbus.datagen.datasets.convert.meta_files import read_info as read_lerobot_info
from nimbus.datagen.datasets.export.publication import NAME, read_manifest
from nimbus.datagen.errors import InputError
from nimbus.datagen.files.codec import from_plain
from nimbus.datagen.policies.control_modes import make_control
from nimbus.datagen.policies.signal_view import SignalView
from nimbus.datagen.robots.robot import load_robot
from nimbus.datagen.store.info import INFO_NAME, read_info
from nimbus.datagen.tasks.task import Task

_IMAGES = "observation.images."


@dataclass(frozen=True, kw_only=True)
class TrainingSource:
    """Conventions of a Nimbus dataset or of an export: task, robot, view, rate and cameras."""

    folder: Path
    task: str
    robot: str
    view: SignalView
    rate: float = 0.0
    """Rows per second [Hz]; 0 if unknown."""
    cameras: Mapping[str, tuple[int, int]] | None = None
    """Width and height [px] by name of the camera; None if unknown."""

    def compare(self, task: Task, *, where: str) -> None:
        """Check that a task has the same conventions.

        Args:
            task: Task of the evaluation.
            where: Location for the error.

        Raises:
            InputError: A convention differs.
        """
        robot = load_robot(task.robot)
        make_control(self.view.actions, robot, rotation=self.view.rotation, where=where)
        if self.robot != robot.name:
            raise self._mismatch(f"has the robot {self.robot}, the task has {robot.name}", where)
        if self.rate and self.rate != task.rate:
            raise self._mismatch(f"has a rate of {self.rate:g} Hz, the task has {task.rate:g} Hz", where)
        for name, size in (self.cameras or {}).items():
            there = task.cameras.get(name)
            if there is None:
                raise self._mismatch(f"has a camera '{name}', the task has {', '.join(task.cameras) or 'none'}", where)
            if there.size != size:
                wide, high = there.size
                raise self._mismatch(f"has '{name}' with {size[0]} x {size[1]} px, the task has {wide} x {high}", where)

    def _mismatch(self, what: str, where: str) -> InputError:
        return InputError(
            f"{self.folder} {what}", where=where, instead=f"evaluate on {self.task}, or train on this task"
        )


def read_training_source(folder: Path, *, where: str) -> TrainingSource:
    """Read the conventions of a dataset or an export.

    Args:
        folder: Folder of a Nimbus dataset, or of an export.
        where: Location for the error.

    Raises:
        InputError: The folder is neither a dataset nor an export, or cannot be read.
    """
    if (folder / INFO_NAME).exists():
        info = read_info(folder)
        return TrainingSource(
            folder=folder, task=info.task, robot=info.robot, view=SignalView(), rate=info.rate, cameras=info.cameras
        )
    if not (folder / NAME).exists():
        raise InputError(f"{folder} is neither a Nimbus dataset nor an export", where=where, instead="give one of them")
    manifest = read_manifest(folder)
    try:
        view = from_plain(SignalView, manifest.origin.get("view", {}))
    except ValueError as error:
        raise InputError(f"{NAME}: {error}", where=str(folder), instead="export again") from None
    stated = _lerobot(folder) if manifest.format.startswith("lerobot") else {}
    task, robot = (str(manifest.origin.get(name, "")) for name in ("task", "robot"))
    return TrainingSource(folder=folder, task=task, robot=robot, view=view, **stated)


def _lerobot(folder: Path) -> dict[str, Any]:
    """Return the rate and the cameras of a LeRobot dataset, by field of :class:`TrainingSource`."""
    info = read_lerobot_info(folder)
    shapes = {name: feature.get("shape") for name, feature in info["features"].items() if name.startswith(_IMAGES)}
    cameras = {name.removeprefix(_IMAGES): (shape[1], shape[0]) for name, shape in shapes.items() if shape}
    return {"rate": float(info.get("fps", 0)), "cameras": cameras}
