"""Strict readers of the files under ``meta/`` that LeRobot v2.1 and v3.0 have in common."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from msgspec import Meta

from nimbus.datagen.datasets.quality.finding import Unreadable
from nimbus.datagen.datasets.quality.tables import read_rows
from nimbus.datagen.errors import InputError
from nimbus.datagen.files.bounded import RESTORE, Count, as_typed, read_plain
from nimbus.datagen.store.dataset_paths import resolve_inside

INFO = "meta/info.json"
VERSIONS = ("v2.1", "v3.0")
_TYPES: dict[str, type] = {"features": dict, "data_path": str, "total_episodes": int}
MOST_FRAMES = 2**31
"""Largest number of frames of an episode, a year at 60 Hz."""
_NAME_BYTES = 200
"""Longest name of a camera's feature [bytes]; file systems accept 255."""
_SPLIT_LETTERS = 40
"""Longest accepted text of a split [characters]."""
_PathTemplate = Annotated[str, Meta(max_length=1000)]


@dataclass(frozen=True, kw_only=True)
class _Feature:
    """Entry of ``features``."""

    dtype: str = ""
    shape: list[Annotated[int, Meta(ge=0, le=2**31)]] | None = None


@dataclass(frozen=True, kw_only=True)
class _Info:
    """Fields of ``meta/info.json`` that Nimbus uses."""

    data_path: _PathTemplate
    features: dict[str, _Feature]
    total_episodes: Count
    total_frames: Count = 0
    total_tasks: Count = 0
    video_path: _PathTemplate | None = None
    chunks_size: Annotated[int, Meta(ge=1, le=2**31)] | None = None


def read_info(folder: Path) -> dict[str, Any]:
    """Read ``meta/info.json`` of a LeRobot dataset.

    Raises:
        InputError: The file is missing or unreadable, has another version, or lacks a field.
    """
    path = resolve_inside(folder, INFO)
    if (folder / "dataset.json").exists():
        raise InputError("this is a Nimbus dataset, not LeRobot", where=str(folder), instead="use 'nimbus export'")
    if not path.exists():
        raise InputError(f"there is no {INFO}", where=str(folder), instead="give the folder of a LeRobot dataset")
    info = read_plain(path)
    version = info.get("codebase_version") if isinstance(info, dict) else None
    if version not in VERSIONS:
        instead = "use a dataset of version v2.1 or v3.0; lerobot 0.3 converts older ones to v2.1"
        raise InputError(f"codebase_version {version!r} is not supported", where=str(path), instead=instead)
    for name, kind in _TYPES.items():
        if not isinstance(info.get(name), kind):
            raise InputError(f"{name} is missing, or not of type {kind.__name__}", where=str(path), instead="add it")
    if not isinstance(info.get("splits") or {}, dict):
        raise InputError("splits is not an object", where=str(path), instead='write, for example, {"train": "0:50"}')
    if any(not isinstance(told, dict) for told in info["features"].values()):
        raise InputError(
            "a feature is not an object with dtype and shape",
            where=str(path),
            instead="restore meta/info.json from its source",
        )
    fps = info.get("fps")
    if not isinstance(fps, int | float) or not 1 <= fps <= 10_000 or fps != round(fps):
        raise InputError(f"fps is {fps!r}", where=str(path), instead="write a whole number from 1 to 10000")
    cameras = [name for name, told in info["features"].items() if told.get("dtype") == "video"]
    if cameras and not isinstance(info.get("video_path"), str):
        raise InputError("video_path is missing, but there are videos", where=str(path), instead="add it")
    if strange := next((name for name in cameras if not _is_folder_name(name)), None):
        what = f"the video feature {strange[:80]!a} cannot be the name of a folder"
        instead = "rename it in meta/info.json and below videos/, for example to observation.images.front"
        raise InputError(what, where=f"{path}: features", instead=instead)
    as_typed(_Info, info, where=str(path))
    return info


def _is_folder_name(name: str) -> bool:
    """Return True if a conversion may give a folder this name."""
    is_short = 0 < len(name.encode(errors="replace")) <= _NAME_BYTES
    return is_short and name.isprintable() and not name.startswith(".") and not {"/", "\\"} & {*name}


def json_rows(folder: Path, name: str, needed: Mapping[str, type]) -> list[dict[str, Any]]:
    """Read a file with one JSON object per line.

    Args:
        folder: Folder of the dataset.
        name: Name of the file.
        needed: Type of each required key.

    Raises:
        InputError: The file is missing or damaged, or a row is invalid.
    """
    try:
        rows = read_rows(resolve_inside(folder, name))
    except Unreadable as error:
        raise InputError(error.what, where=str(folder / name), instead=RESTORE) from None
    for number, row in enumerate(rows, start=1):
        if lacking := [key for key, kind in needed.items() if not (isinstance(row, dict) and _is(row.get(key), kind))]:
            raise InputError(f"line {number} has no {lacking[0]}", where=str(folder / name), instead=RESTORE)
    return rows


def check_numbers(numbers: list[int], where: Path) -> None:
    """Check that episodes are numbered consecutively from 0.

    Args:
        numbers: Number of each row.
        where: Location for the error.

    Raises:
        InputError: The numbers are not consecutive from 0.
    """
    for position, number in enumerate(numbers):
        if number != position:
            problem = "a number is missing" if number > position else "a number occurs twice"
            what = f"row {position} is episode {number}: {problem}"
            raise InputError(what, where=str(where), instead="number the episodes consecutively from 0")


def check_tasks(named: Iterator[str], wordings: Mapping[int, str], where: Path) -> None:
    """Check that the table of tasks contains the tasks of all episodes.

    Args:
        named: Tasks of the episodes.
        wordings: Table of tasks: instruction by number.
        where: Location for the error.

    Raises:
        InputError: The task of an episode is not in the table.
    """
    known = set(wordings.values())
    if missing := next((text for text in named if text not in known), None):
        raise InputError(
            f"task '{missing}' of an episode is missing from the table of tasks", where=str(where), instead="add it"
        )


def _is(value: Any, kind: type) -> bool:
    return isinstance(value, kind) and not (kind is int and isinstance(value, bool))


def split_range(text: object) -> range | None:
    """Return the episodes of a split such as ``0:50``; None for another syntax."""
    ends = str(text)[:_SPLIT_LETTERS].split(":")
    return range(int(ends[0]), int(ends[1])) if len(ends) == 2 and all(end.isdecimal() for end in ends) else None


def usable_stats(stats: Any) -> Mapping[str, Any]:
    """Return statistics of images if they are complete, finite and consistent; otherwise an empty mapping."""
    try:
        arrays = {name: np.asarray(stats[name], np.float64) for name in ("min", "max", "mean", "std", "count")}
        is_good = all(np.isfinite(values).all() and values.size for values in arrays.values())
        is_good &= len({arrays[name].shape for name in ("min", "max", "mean", "std")}) == 1
    except (KeyError, TypeError, ValueError, OverflowError):
        return {}
    return stats if is_good and float(arrays["count"].flat[0]) > 0 else {}
