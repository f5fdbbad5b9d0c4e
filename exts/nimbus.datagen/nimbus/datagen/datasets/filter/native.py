"""Filter of a Nimbus dataset; the new dataset is a Nimbus dataset as well."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from nimbus.datagen.datasets.convert.convert import check_apart
from nimbus.datagen.datasets.export.publication import staging
from nimbus.datagen.datasets.filter.expression import Condition
from nimbus.datagen.datasets.filter.lerobot import no_episode
from nimbus.datagen.datasets.native_copy import (
    DatasetRows,
    count_stored,
    find_lost,
    publish_tree,
    read_rows,
    refuse_lost,
    write_rows,
)
from nimbus.datagen.errors import InputError
from nimbus.datagen.files.codec import to_json
from nimbus.datagen.store.episode_file.read import EpisodeFile
from nimbus.datagen.store.folder import OTHER_OUT, check_writable
from nimbus.datagen.store.info import INFO_NAME, keep_task, read_info
from nimbus.datagen.store.ledger.attempt import Attempt
from nimbus.datagen.store.ledger.records import EpisodeStatus, place_finder

INPUT = "filter"
"""Key of the condition in the field ``inputs`` of ``dataset.json``."""


@dataclass(frozen=True, kw_only=True)
class Filtered:
    """Result of a filter."""

    out: Path
    episode_count: int
    of: int
    """Number of episodes in the source."""
    step_count: int
    byte_count: int
    is_new: bool
    """False if the new dataset existed already."""


def filter_native(
    folder: Path, out: Path, condition: Condition, *, tell: Callable[[int], None] = lambda left: None
) -> Filtered:
    """Write the stored episodes that meet a condition as a new dataset; they keep their ids.

    Files are linked if the disk supports it; the new dataset then needs hardly any space.

    Args:
        folder: Folder of the source dataset.
        out: Folder of the new dataset; it must be new, empty, or the result of the same filter.
        condition: Condition on the values that :func:`columns_of` returns, and on ``instruction``.
        tell: Called with the number of remaining episodes.

    Raises:
        InputError: There is no dataset, the condition uses an unknown column, no episode meets it, or ``out`` is not
            empty.
        StorageError: The disk is full; nothing was published.
    """
    folder, out = folder.absolute(), out.absolute()
    check_apart(folder, out)
    check_writable(out)
    source = read_rows(folder, EpisodeStatus.DONE)
    info, attempts, states = source.info, list(source.attempts), list(source.states)
    stored = source.stored
    chosen = _choose(folder, stored, condition)
    if info.tasks and len({one.task for one in chosen}) == 1:
        task = chosen[0].task
        attempts = [attempt for attempt in attempts if attempt.task == task]
        states = [replace(state, task="") for state in states if state.task == task]
        info = keep_task(info, task)
    mark = hashlib.sha256(to_json([condition.text, [(one.episode_id, one.sha256) for one in chosen]]).encode())
    marked = info.inputs | {INPUT: f"{condition.text} ({mark.hexdigest()[:16]})"}
    info = count_stored(replace(info, inputs=marked), chosen)
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
        if (out / INFO_NAME).exists() and read_info(out) == info and not find_lost(out, kept):
            return replace(made, is_new=False)
        raise InputError("the folder is not empty", where=str(out), instead=OTHER_OUT)
    refuse_lost(folder, kept)
    with staging(out, mark.hexdigest()) as stage:
        done = [replace(state, owner="", stage="") for state in states if place(state) in places]
        write_rows(stage / "tree", info, [DatasetRows(folder=folder, info=info, attempts=kept, states=done)], tell)
        publish_tree(stage, out)
    return made


def columns_of(attempt: Attempt) -> dict[str, Any]:
    """Return the values of an episode by column, for conditions; its file is not opened."""
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
        raise InputError("the dataset has no episodes", where=str(folder), instead="create one with 'nimbus run' first")
    condition.check(columns_of(stored[0]) | {"instruction": ""})
    chosen = [one for one in stored if condition(columns_of(one) | _told(folder, one, condition))]
    if not chosen:
        raise no_episode(condition, len(stored))
    refuse_lost(folder, chosen)
    for attempt in chosen:
        with EpisodeFile(folder / attempt.path) as episode:
            episode.trajectory()  # raises an error for damaged data, links, or a missing plug-in
    return chosen


def _told(folder: Path, attempt: Attempt, condition: Condition) -> dict[str, str]:
    """Return the instruction if the condition uses it; only then is the file opened."""
    if "instruction" not in condition.names:
        return {}
    with EpisodeFile(folder / attempt.path) as episode:
        return {"instruction": episode.instruction}
