"""Recordings of operators' commands, one file each, from which demonstrations are made."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, TypeAlias

import numpy as np
from msgspec import Meta

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.errors import InputError
from nimbus.datagen.files.asset_folders import file_in
from nimbus.datagen.files.atomic import write_atomic
from nimbus.datagen.files.bounded import RESTORE, read_bytes
from nimbus.datagen.files.codec import from_json_bytes, to_json
from nimbus.datagen.files.own_files import check_own, default_folder, make_subfolder, remove_file
from nimbus.datagen.robots.robot import Robot
from nimbus.datagen.tasks.task import Task

SPLIT = "demonstration"
"""Split of the layouts for operators; runs and evaluations never draw them."""
SHORTEST = 5
"""Smallest number of rows of a recording; shorter ones are accidental."""
_FILE_BYTES = 256 << 20
"""Largest size of a file [bytes]; one hour at 60 Hz for a robot with 40 commands takes 170 MB."""
_MOST_NUMBERS = 1 << 24
"""Largest number of values of a file; one hour for that robot has half as many. Each takes 32 bytes in memory."""

Text: TypeAlias = Annotated[str, Meta(max_length=1000)]
Row: TypeAlias = Annotated[tuple[float, ...], Meta(max_length=1000)]
Index: TypeAlias = Annotated[int, Meta(ge=0, le=10**7)]


@dataclass(frozen=True, kw_only=True)
class OperatorRecording:
    """Commands of an operator in one layout; commands and layout determine the motion."""

    task: Text
    task_hash: Text
    robot: Text
    rate: float
    """Number of commands per second [Hz]."""
    seed: int = 0
    index: Index
    """Number of the layout in :data:`SPLIT`."""
    action_names: Annotated[tuple[Text, ...], Meta(max_length=1000)]
    actions: Annotated[tuple[Row, ...], Meta(max_length=1_000_000)]
    """(T, A) commanded positions [rad or m]."""
    prompt: Text = ""
    """Instruction by the operator; empty for the layout's own instruction."""
    operator: Text = ""
    """Name of the operator."""
    device: Text = ""
    """Kinds of the devices used, such as ``gamepad``."""
    undone: Annotated[int, Meta(ge=0)] = 0
    """Number of times that the operator went back in time."""

    @property
    def rows(self) -> FloatArray:
        """Commands (T, A) [rad or m]."""
        return np.array(self.actions, dtype=float).reshape(len(self.actions), -1)

    @property
    def content(self) -> str:
        """Hash of the commands and their layout."""
        return hashlib.sha256(to_json([self.task_hash, self.seed, self.index, self.actions]).encode()).hexdigest()[:16]

    def check(self, task: Task, robot: Robot, *, where: str) -> None:
        """Check that the recording fits a task and its robot.

        Args:
            task: Task of the demonstrations.
            robot: Robot of the task.
            where: Location of the recording, for errors.

        Raises:
            InputError: The recording is for another task or robot, or has no usable commands.
        """
        expected = {"task": task.name, "robot": robot.name, "rate": task.rate, "action_names": robot.action_names}
        for name, value in expected.items():
            if (found := getattr(self, name)) != value:
                what = f"was recorded with {name.replace('_', ' ')} {_text(found)}; the task has {_text(value)}"
                raise InputError(what, where=where, instead="give recordings of this task and robot")
        if self.task_hash != task.content_hash:
            what = f"was recorded with another version of task '{task.name}'"
            raise InputError(what, where=where, instead="restore the task file, or record again")
        if len(self.actions) < SHORTEST:
            what = f"has {len(self.actions)} commands; a demonstration has at least {SHORTEST}"
            raise InputError(what, where=where, instead="delete it, or record again")
        if {len(row) for row in self.actions} != {len(robot.action_names)}:
            what = f"a command does not have {len(robot.action_names)} entries"
            raise InputError(what, where=where, instead="restore the file, or record again")
        if not np.isfinite(self.rows).all():
            raise InputError("a command is not finite", where=where, instead="restore the file, or record again")


def _text(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, tuple) else f"{value}"


def demonstrations_folder(task: str) -> Path:
    """Return the default folder for the demonstrations of a task.

    Raises:
        InputError: It is a link.
    """
    return default_folder(f"demonstrations_{task}")


class RecordingFolder:
    """Folder of recordings, with one file per layout.

    Args:
        folder: Path of the folder, created with the first recording.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @classmethod
    def beside(cls, dataset: Path) -> RecordingFolder:
        """Return the folder with the recordings of a dataset of demonstrations.

        Raises:
            InputError: It is a link, which may lead to files that are not recordings of this dataset.
        """
        check_own(folder := dataset.with_name(f"{dataset.name}-recordings"))
        return cls(folder)

    def path(self, index: int) -> Path:
        """Return the path of the recording of a layout."""
        return self.folder / f"recording_{index:06d}.json"

    @property
    def _unfinished(self) -> Path:
        return self.folder / "unfinished.json"

    def indices(self) -> tuple[int, ...]:
        """Return the indices of the layouts that have a recording, in order."""
        names = (path.stem.removeprefix("recording_") for path in self.folder.glob("recording_*.json"))
        return tuple(sorted(int(name) for name in names if re.fullmatch("[0-9]{6,8}", name)))

    def next_index(self) -> int:
        """Return the index of the first layout without a recording."""
        taken = set(self.indices())
        return next(index for index in range(len(taken) + 1) if index not in taken)

    def keep(self, recording: OperatorRecording) -> Path:
        """Write a recording atomically, remove the unfinished one, and return the path."""
        self._write(path := self.path(recording.index), recording, durable=True)
        self.forget_unfinished()
        return path

    def save_unfinished(self, recording: OperatorRecording) -> None:
        """Save the unfinished recording, so that it survives the end of the process."""
        self._write(self._unfinished, recording, durable=False)

    def unfinished(self) -> OperatorRecording | None:
        """Return the recording that was neither kept nor discarded; None if there is none.

        Raises:
            InputError: It cannot be read, or is a link out of the folder.
        """
        path = file_in(self.folder, self._unfinished.name)
        found = self._read(path) if path.exists() else None
        return None if found is not None and self.path(found.index).exists() else found

    def forget_unfinished(self) -> None:
        """Remove the unfinished recording, if any."""
        remove_file(self._unfinished)

    def read(self, index: int) -> OperatorRecording:
        """Return the recording of a layout.

        Raises:
            InputError: There is no recording, it cannot be read, or it is a link out of the folder.
        """
        path = file_in(self.folder, self.path(index).name)
        if not path.exists():
            raise InputError(f"no recording of layout {index}", where=str(self.folder), instead="record it first")
        return self._read(path)

    def __iter__(self) -> Iterator[OperatorRecording]:
        """Iterate over all recordings in order."""
        return map(self.read, self.indices())

    def _read(self, path: Path) -> OperatorRecording:
        data = read_bytes(path, limit=_FILE_BYTES)
        if data.count(b",") > _MOST_NUMBERS:
            raise InputError(f"more than {_MOST_NUMBERS} values", where=str(path), instead=RESTORE)
        try:
            return from_json_bytes(OperatorRecording, data)
        except ValueError as error:
            raise InputError(str(error), where=str(path), instead=RESTORE) from None

    def _write(self, path: Path, recording: OperatorRecording, *, durable: bool) -> None:
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        make_subfolder(self.folder)
        write_atomic(path, to_json(recording) + "\n", durable=durable, shared=False)
