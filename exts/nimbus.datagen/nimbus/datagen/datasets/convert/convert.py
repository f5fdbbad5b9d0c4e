"""Conversion of a LeRobot dataset to another version, file layout or subset of episodes, published atomically."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from nimbus.datagen.datasets.certificates.record import FILE_NAME as CERTIFICATES
from nimbus.datagen.datasets.convert import read_v21, read_v30, write_v21, write_v30
from nimbus.datagen.datasets.convert.lerobot_set import LeRobotSet
from nimbus.datagen.datasets.convert.meta_files import INFO, MOST_FRAMES, read_info
from nimbus.datagen.datasets.convert.plan import ConversionPlan
from nimbus.datagen.datasets.export.publication import (
    CARD,
    CARD_PICTURE,
    NAME,
    Manifest,
    find_published,
    is_own_card,
    is_whole,
    publish,
    refuse_strangers,
    stage_of,
    staging,
)
from nimbus.datagen.datasets.export.shards import Options
from nimbus.datagen.errors import InputError
from nimbus.datagen.files.bounded import RESTORE, check_dense, check_regular
from nimbus.datagen.files.own_files import copy_new, remove_tree
from nimbus.datagen.store.dataset_paths import files_under
from nimbus.datagen.store.folder import OTHER_OUT
from nimbus.datagen.store.publish import disk
from nimbus.datagen.version import nimbus_version

WRITERS = {"lerobot": write_v30.write, "lerobot-v2.1": write_v21.write}
"""Function that writes each format, by name of the format."""
VERSION_OF = {"v3.0": "lerobot", "v2.1": "lerobot-v2.1"}
"""Name of the format by LeRobot version."""
_REVISION = 1
"""Version of the conversion; raise it when the same source gives a different dataset."""
_DERIVED = ("data/", "videos/", "meta/episodes/")
"""Folders in which readers treat every file as part of the dataset."""


def open_set(folder: Path) -> LeRobotSet:
    """Open the LeRobot dataset in a folder.

    Raises:
        InputError: There is no dataset, or its tables are incomplete, damaged or inconsistent.
    """
    info = read_info(folder)
    found = (read_v30 if info["codebase_version"] == "v3.0" else read_v21).read(folder, info)
    if not found.items:
        raise InputError("the dataset has no episodes", where=str(folder), instead="give a dataset with episodes")
    if info["total_episodes"] != len(found.items):
        what = f"total_episodes is {info['total_episodes']}, but there are {len(found.items)} episodes"
        raise InputError(what, where=str(folder / INFO), instead="run 'nimbus qa' for details")
    for item in found.items:
        if not 1 <= item.length <= MOST_FRAMES:
            raise InputError(f"episode {item.number} has {item.length} frames", where=str(folder), instead=RESTORE)
        for path in (item.rows, *(clip.path for clip in item.clips.values())):
            if not path.is_file():
                name = path.relative_to(folder).as_posix()
                raise InputError(f"{name} is missing", where=str(folder), instead=RESTORE)
            check_regular(path)
    return found


@dataclass(frozen=True, kw_only=True)
class Converted:
    """Result of a conversion."""

    out: Path
    format: str
    episode_count: int
    frame_count: int
    file_count: int
    byte_count: int
    extra: tuple[str, ...]
    """Additional files of the source that were copied unchanged."""
    left_out: tuple[str, ...]
    """Tables and videos of the source that no episode uses; they were not copied."""
    is_new: bool
    """False if the conversion existed already."""


def convert(
    folder: Path,
    out: Path,
    *,
    to: str = "lerobot",
    options: Options | None = None,
    choose: Callable[[LeRobotSet], Sequence[int]] | None = None,
    workers: int | None = None,
    tell: Callable[[int], None] = lambda left: None,
) -> Converted:
    """Convert a LeRobot dataset without encoding videos again.

    Equal sources give equal bytes. An interrupted conversion continues where it stopped. An earlier conversion in the
    output folder is replaced in one step, when the new dataset is complete.

    Args:
        folder: Folder of the source dataset.
        out: Folder of the new dataset; it must be new, empty, or written by Nimbus.
        to: Format, a key of :data:`WRITERS`.
        options: Limits of file sizes.
        choose: Returns the indices of the episodes to keep, in order; all are kept by default.
        workers: Number of processes; by default chosen from the amount of work and the cores.
        tell: Called with the number of remaining files or episodes.

    Raises:
        InputError: The source is not a LeRobot dataset or is damaged, or the output folder was not written by Nimbus.
        StorageError: The disk is full; nothing was published.
    """
    options = options or Options()
    folder, out = folder.absolute(), out.absolute()
    check_apart(folder, out)
    before = find_published(out)
    source = open_set(folder)
    chosen = choose(source) if choose else range(len(source.items))
    plan = ConversionPlan(source=source, items=tuple(source.items[number] for number in chosen))
    names = list(files_under(folder))
    extra, left_out = _others(source, names)
    for name in extra:
        check_regular(folder / name)
    check_dense(folder, (folder / name for name in names))
    if choose:
        extra = tuple(name for name in extra if name != CERTIFICATES)  # certificates cover all episodes of the source
    origin = {"source": folder.name, "version": source.version, "options": asdict(options), "versions": _versions()}
    episodes = tuple((f"episode_{item.number:06d}", _sum([item.tasks, item.length, item.extra])) for item in plan.items)
    key = _sum([_REVISION, to, origin, episodes, _state_of(folder, names)])
    manifest = Manifest(format=to, key=key, origin=origin, episodes=episodes, files={})
    if before and before.key == key and is_whole(out, before):
        remove_tree(stage_of(out))
        return _converted(out, plan, before, extra, left_out, is_new=False)
    if before:
        refuse_strangers(out, before, manifest)
        if choose and before.episodes != episodes:
            raise InputError("contains another subset of episodes", where=str(out), instead=OTHER_OUT)
    with staging(out, key) as stage:
        WRITERS[to](plan, stage, options, workers=workers, tell=tell)
        with disk(stage):
            for name in extra:
                if not (stage / "tree" / name).exists():
                    copy_new(folder / name, stage / "tree", name)
        manifest = publish(stage, out, manifest)
    return _converted(out, plan, manifest, extra, left_out, is_new=True)


def check_apart(folder: Path, out: Path) -> None:
    """Check that neither of two folders is inside the other.

    Args:
        folder: Folder of the source.
        out: Folder of the output.

    Raises:
        InputError: One folder is inside the other.
    """
    one, other = folder.resolve(), out.resolve()
    if one.is_relative_to(other) or other.is_relative_to(one):
        raise InputError(
            "the output and the source must not contain each other", where=f"--out {out}", instead=OTHER_OUT
        )


def _others(source: LeRobotSet, files: list[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the additional files of a dataset: those to copy, and those to leave out."""
    told = {CARD, CARD_PICTURE} if is_own_card(source.folder / CARD) else set()  # the card describes only the source
    names = [name for name in files if name not in source.own_files and name not in {NAME, *told}]
    left_out = tuple(name for name in names if name.startswith(_DERIVED) and name.endswith((".parquet", ".mp4")))
    return tuple(name for name in names if name not in set(left_out)), left_out


def _state_of(folder: Path, files: list[str]) -> list[tuple[str, int, int]]:
    """Return name, size [bytes] and modification time [ns] of every file, which identify a state of the dataset."""
    stats = ((name, os.stat(f"{folder}/{name}")) for name in files)
    return [(name, stat.st_size, stat.st_mtime_ns) for name, stat in stats]


def _converted(
    out: Path,
    plan: ConversionPlan,
    manifest: Manifest,
    extra: tuple[str, ...],
    left_out: tuple[str, ...],
    *,
    is_new: bool,
) -> Converted:
    return Converted(
        out=out,
        format=manifest.format,
        episode_count=len(plan.items),
        frame_count=plan.frame_count,
        file_count=len(manifest.files),
        byte_count=sum(size for size, _ in manifest.files.values()),
        extra=extra,
        left_out=left_out,
        is_new=is_new,
    )


def _versions() -> dict[str, str]:
    """Return the versions of the libraries that determine the bytes of a conversion."""
    import numpy as np
    import pyarrow

    from nimbus.datagen.files.av_library import av

    libraries = {"av": av, "numpy": np, "pyarrow": pyarrow}
    return {"nimbus": nimbus_version()} | {name: library.__version__ for name, library in libraries.items()}


def _sum(value: object) -> str:
    # Custom columns may contain values that JSON does not support, such as dates.
    return hashlib.sha256(json.dumps(value, sort_keys=True, ensure_ascii=False, default=repr).encode()).hexdigest()
