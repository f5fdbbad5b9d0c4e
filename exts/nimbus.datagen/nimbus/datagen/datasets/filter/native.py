"""Some episodes of a dataset of Nimbus, as a dataset of Nimbus."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from nimbus.datagen.datasets.convert.convert import check_apart
from nimbus.datagen.datasets.convert.write_v30 import link
from nimbus.datagen.datasets.export.publication import stage_of, staging
from nimbus.datagen.datasets.filter.expression import Condition
from nimbus.datagen.datasets.filter.lerobot import no_episode
from nimbus.datagen.errors import InputError
from nimbus.datagen.files.atomic import sync_file, sync_folder
from nimbus.datagen.files.codec import to_json
from nimbus.datagen.files.own_files import move, remove_tree
from nimbus.datagen.store.dataset_paths import DatasetPaths
from nimbus.datagen.store.episode_file.read import EpisodeFile
from nimbus.datagen.store.folder import OTHER_OUT, check_writable
from nimbus.datagen.store.info import INFO_NAME, DatasetInfo, info_text, keep_task, read_info
from nimbus.datagen.store.ledger.attempt import Attempt, has_size
from nimbus.datagen.store.ledger.ledger import Ledger
from nimbus.datagen.store.ledger.records import EpisodeState, EpisodeStatus, place_finder
from nimbus.datagen.store.publish import disk, replace_text

INPUT = "filter"
"""What ``dataset.json`` calls the condition among what decides the content."""


@dataclass(frozen=True, kw_only=True)
class Filtered:
    """What a filter kept."""

    out: Path
    episode_count: int
    of: int
    """Episodes that the source holds."""
    step_count: int
    byte_count: int
    is_new: bool
    """False when it stood there already."""


def filter_native(
    folder: Path, out: Path, condition: Condition, *, tell: Callable[[int], None] = lambda left: None
) -> Filtered:
    """Write the stored episodes that meet a condition as a dataset of their own; they keep their ids.

    Files are linked where the disk can do that, so that the new dataset costs no room.

    Args:
        folder: The source.
        out: Folder of the new dataset; new or empty.
        condition: On :func:`columns_of` an episode.
        tell: Called with how many episodes are yet to come.

    Raises:
        InputError: No dataset, a condition that does not fit it or none of its episodes, or a folder that is not empty.
        StorageError: The disk is full; nothing was published.
    """
    folder, out = folder.absolute(), out.absolute()
    check_apart(folder, out)
    check_writable(out)
    info, attempts, states = _read(folder)
    stored = [attempt for attempt in attempts if attempt.path]
    chosen = _choose(folder, stored, condition)
    if info.tasks and len({one.task for one in chosen}) == 1:
        task = chosen[0].task
        attempts = [attempt for attempt in attempts if attempt.task == task]
        states = [replace(state, task="") for state in states if state.task == task]
        info = keep_task(info, task)
    mark = hashlib.sha256(to_json([condition.text, [(one.episode_id, one.sha256) for one in chosen]]).encode())
    info = _counted(replace(info, inputs=info.inputs | {INPUT: f"{condition.text} ({mark.hexdigest()[:16]})"}), chosen)
    made = Filtered(
        out=out,
        episode_count=info.episode_count,
        of=len(stored),
        step_count=info.step_count,
        byte_count=info.byte_count,
        is_new=True,
    )
    place = place_finder(states)
    places = {place(one) for one in chosen}
    kept = [one for one in attempts if place(one) in places]
    if out.exists() and any(out.iterdir()):
        if (out / INFO_NAME).exists() and read_info(out) == info and not _lost(out, kept):
            return replace(made, is_new=False)
        raise InputError("is not empty", where=str(out), instead=OTHER_OUT)
    _refuse_lost(folder, [one for one in kept if one.failure])  # the others were looked at when they were chosen
    done = [state for state in states if place(state) in places]
    with staging(out, mark.hexdigest()) as stage:
        _write(folder, stage / "tree", info, kept, [replace(state, owner="", stage="") for state in done], tell)
        _publish(stage, out)
    return made


def columns_of(attempt: Attempt) -> dict[str, Any]:
    """What a condition can ask of an episode without opening its file."""
    return {
        "episode_id": attempt.episode_id,
        "task": attempt.task,
        "index": attempt.idx,
        "variant": attempt.variant,
        "seed": attempt.seed,
        "attempt": attempt.attempt,
        "success": attempt.success,
        "reason": attempt.reason,
        "split": attempt.split,
        "length": attempt.step_count,
        "seconds": attempt.duration,
        "bytes": sum(attempt.files.values()),
        "cpu_seconds": sum(value for name, value in attempt.times.items() if not name.endswith("_wait")),
        "objects": len(attempt.objects),
        "kinds": sorted({placed["kind"] for placed in attempt.objects}),
        "classes": sorted({placed["class"] for placed in attempt.objects if "class" in placed}),
    }


def _choose(folder: Path, stored: list[Attempt], condition: Condition) -> list[Attempt]:
    if not stored:
        raise InputError("no episode is stored here", where=str(folder), instead="run until there is one")
    condition.check(columns_of(stored[0]) | {"instruction": ""})
    chosen = [one for one in stored if condition(columns_of(one) | _told(folder, one, condition))]
    if not chosen:
        raise no_episode(condition, len(stored))
    _refuse_lost(folder, chosen)
    for attempt in chosen:
        with EpisodeFile(folder / attempt.path) as episode:
            episode.trajectory()  # refuses what is damaged, in another file, or needs a plug-in
    return chosen


def _refuse_lost(folder: Path, attempts: list[Attempt]) -> None:
    if lost := _lost(folder, attempts):
        what = "is missing, or not as large as the ledger says"
        raise InputError(what, where=str(folder / lost), instead="see what 'nimbus verify' says")


def _lost(folder: Path, attempts: list[Attempt]) -> str:
    """The first file of attempts, kept failures among them, that is not there as the ledger says; empty for none."""
    inside = DatasetPaths(folder)
    for attempt in attempts:
        sizes = attempt.files if attempt.path else {}
        sizes |= {attempt.failure.path: attempt.failure.byte_count} if attempt.failure else {}
        if lost := next((name for name, size in sizes.items() if not has_size(inside.path(name), size)), ""):
            return lost
    return ""


def _told(folder: Path, attempt: Attempt, condition: Condition) -> dict[str, str]:
    """The instruction, where it is asked for: it is in the file."""
    if "instruction" not in condition.names:
        return {}
    with EpisodeFile(folder / attempt.path) as episode:
        return {"instruction": episode.instruction}


def _read(folder: Path) -> tuple[DatasetInfo, list[Attempt], list[EpisodeState]]:
    info = read_info(folder)
    ledger = Ledger(folder, read_only=True)
    try:
        with ledger.snapshot():
            return info, ledger.attempts(), ledger.episodes(EpisodeStatus.DONE)
    finally:
        ledger.close()


def _counted(info: DatasetInfo, chosen: list[Attempt]) -> DatasetInfo:
    return replace(
        info,
        episode_count=len(chosen),
        step_count=sum(one.step_count for one in chosen),
        byte_count=sum(sum(one.files.values()) for one in chosen),
    )


def _write(
    folder: Path,
    tree: Path,
    info: DatasetInfo,
    attempts: list[Attempt],
    states: list[EpisodeState],
    tell: Callable[[int], None],
) -> None:
    stored = [one for one in attempts if one.path]
    with disk(tree):
        for left, attempt in zip(range(len(stored) - 1, -1, -1), stored, strict=True):
            for name in attempt.files:
                link((folder / name).resolve(), tree / name)
            tell(left)
        for kept in (attempt.failure for attempt in attempts if attempt.failure):
            link((folder / kept.path).resolve(), tree / kept.path)
    ledger = Ledger(tree)
    try:
        ledger.record(*attempts, *states)
    finally:
        ledger.close()
    replace_text(tree / INFO_NAME, info_text(info))


def _publish(stage: Path, out: Path) -> None:
    tree = stage / "tree"
    with disk(stage):
        for path in tree.rglob("*"):
            if path.is_file():
                sync_file(path)
        for place in (tree, tree / "episodes"):
            sync_folder(place)
        if out.exists():
            out.rmdir()
        move(tree, out)
        sync_folder(out.parent)
        remove_tree(stage_of(out))
