"""Request to resize a run in progress, or to change its roles: a file in its folder."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.bounded import read_text
from nimbus.datagen.files.codec import from_json, to_json
from nimbus.datagen.store.info import read_info
from nimbus.datagen.store.publish import replace_text
from nimbus.runner.monitor.status import Status, read_status

FILE_NAME = "scale.json"
_BYTES = 1 << 16
"""Largest size of the file that is read [bytes]; Nimbus writes less than 200."""
_PATIENCE = 3.0
"""Time to wait for the run's response [s]; after that, the run still applies the request later."""


@dataclass(frozen=True, kw_only=True)
class Scale:
    """Content of ``scale.json``: the requested split of a run."""

    launcher: int
    """Process id of the run's launcher; other runs ignore the request."""
    number: int
    """Number that grows with each request."""
    workers: tuple[int, int] | None = None
    """Planners and renderers; None for one worker per core."""

    def __post_init__(self) -> None:
        if self.workers and min(self.workers) < 1:
            raise ValueError(f"{_words(self.workers)} make nothing")


def request_scale(folder: Path, workers: tuple[int, int] | None) -> str:
    """Request another split of the run that writes into a folder; return a one-line answer.

    Args:
        folder: Folder of the dataset.
        workers: Planners and renderers; None for one worker per core.

    Raises:
        InputError: No run writes into the folder, or the run has no workers.
        StorageError: The disk is full.
    """
    read_info(folder)
    status = _alive(folder)
    wanted = Scale(launcher=status.launcher, number=_last(folder) + 1, workers=workers)
    replace_text(folder / FILE_NAME, to_json(wanted) + "\n", durable=False)
    deadline = time.monotonic() + _PATIENCE
    while time.monotonic() < deadline and (now := read_status(folder)) and now.state == "running":
        if now.scaled == wanted.number:
            return f"{_words(now.split)}; before: {_words(status.split)}"
        time.sleep(0.1)
    return "requested; the run will apply it shortly"


def read_scale(folder: Path, *, launcher: int) -> Scale | None:
    """Return the request to the run of a launcher; None when there is none.

    Raises:
        ValueError: The file cannot be read, or is not a request.
    """
    try:
        wanted = _read(folder)
    except InputError as error:
        raise ValueError(error.what) from None
    return wanted if wanted and wanted.launcher == launcher else None


def _read(folder: Path) -> Scale | None:
    """Read the file; None if there is none.

    Raises:
        InputError: The path cannot be read: a pipe, a device or a link.
        ValueError: The file was not written by Nimbus.
    """
    path = folder / FILE_NAME
    if not os.path.lexists(path):
        return None
    return from_json(Scale, read_text(path, limit=_BYTES, follow=False))


def _alive(folder: Path) -> Status:
    status = read_status(folder)
    if status is None or status.state != "running":
        ended = f"; the last one is {status.state}" if status else ""
        raise InputError(f"no run writes into this folder{ended}", where=str(folder), instead="start one: nimbus run")
    if status.mode != "cell":
        what = f"the run in this folder is {status.mode}: it has one process"
        raise InputError(what, where=str(folder), instead="start it without --serial and --coupled")
    return status


def _last(folder: Path) -> int:
    try:
        wanted = _read(folder)
    except (InputError, ValueError):
        return 0
    return wanted.number if wanted else 0


def _words(split: tuple[int, int]) -> str:
    planners, renderers = split
    many = (f"{planners} planner{'s' * (planners != 1)}", f"{renderers} renderer{'s' * (renderers != 1)}")
    return " and ".join(many)
