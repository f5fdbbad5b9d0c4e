"""Merge of parts of a dataset, created on several machines, into one dataset."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from nimbus.datagen.datasets.convert.convert import check_apart
from nimbus.datagen.datasets.export.publication import staging
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
from nimbus.datagen.store.dataset_origin import refuse_other_inputs, refuse_other_task
from nimbus.datagen.store.episode_file.content_check import content_hash
from nimbus.datagen.store.episode_file.read import EpisodeFile
from nimbus.datagen.store.folder import OTHER_OUT, check_writable
from nimbus.datagen.store.info import INFO_NAME, DatasetInfo, add_task, keep_task, merge, read_info
from nimbus.datagen.store.ledger.attempt import Attempt
from nimbus.datagen.store.ledger.records import EpisodeStatus, place_finder

_SETTLED = (EpisodeStatus.DONE, EpisodeStatus.REJECTED, EpisodeStatus.QUARANTINED)


@dataclass(frozen=True, kw_only=True)
class MergedDataset:
    """Result of a merge."""

    out: Path
    episode_count: int
    part_count: int
    doubled: int
    """Number of surplus copies of episodes that several parts contain."""
    is_new: bool
    """False if the merged dataset existed already."""


def merge_parts(
    parts: Sequence[Path], out: Path, *, report: Callable[[int], None] = lambda left: None
) -> MergedDataset:
    """Write the episodes of several datasets of the same origin as one dataset, which a run can continue.

    An episode that several parts contain is taken from the first of them; all copies have equal content. Files are
    linked if the disk supports it.

    Args:
        parts: Folders of the datasets; their order only determines which copy of an episode is used.
        out: Folder of the new dataset; it must be new, empty, or the result of the same merge.
        report: Called with the number of remaining episodes.

    Raises:
        InputError: A folder is not a dataset, was created from other inputs than the first, or lacks files; two parts
            differ in an episode; or ``out`` is not empty.
        StorageError: The disk is full; nothing was published.
    """
    out, folders = out.absolute(), list(dict.fromkeys(part.absolute() for part in parts))
    for folder in folders:
        check_apart(folder, out)
    check_writable(out)
    sources = [read_rows(folder, *_SETTLED) for folder in folders]
    info, total = sources[0].info, sum(len(source.stored) for source in sources)
    for source in sources:
        info = _join(info, source)
        refuse_lost(source.folder, source.attempts)
    chosen = _choose(sources)
    stored = [attempt for source in chosen for attempt in source.stored]
    info = count_stored(info, stored)
    made = MergedDataset(
        out=out, episode_count=len(stored), part_count=len(folders), doubled=total - len(stored), is_new=True
    )
    if out.exists() and any(out.iterdir()):
        if (out / INFO_NAME).exists() and read_info(out) == info and not find_lost(out, stored):
            return replace(made, is_new=False)
        raise InputError("the folder is not empty", where=str(out), instead=OTHER_OUT)
    mark = hashlib.sha256(to_json([(one.episode_id, one.sha256) for one in stored]).encode()).hexdigest()
    with staging(out, mark) as stage:
        write_rows(stage / "tree", info, chosen, report)
        publish_tree(stage, out)
    return made


def _join(info: DatasetInfo, source: DatasetRows) -> DatasetInfo:
    """Return the description of a dataset after a further part is added.

    Raises:
        InputError: The part was created from other inputs.
    """
    other, folder = source.info, source.folder
    if bool(other.tasks) != bool(info.tasks) or other.task != info.task or other.seed != info.seed:
        one, two = (f"task '{it.task}' and seed {it.seed}" for it in (other, info))
        what = f"the part has {one}, the first part has {two}"
        raise InputError(what, where=str(folder), instead="leave it out")
    for task in other.tasks or (other.task,):
        mine = keep_task(other, task) if other.tasks else other
        if info.tasks and task not in info.tasks:
            info = add_task(info, mine)
            continue
        collection = info.task if info.tasks else ""
        refuse_other_task(folder, info, task=task, task_hash=mine.task_hash, seed=info.seed, collection=collection)
        refuse_other_inputs(folder, info, mine)
    info = replace(info, credits=info.credits | other.credits, meanings=info.meanings | other.meanings)
    return merge(info, other) if other.features else info


def _choose(sources: Sequence[DatasetRows]) -> list[DatasetRows]:
    """Return the parts without the rows of episodes that another part provides.

    The first part with a stored copy of an episode provides it; if no part has one, the first part that settled it.

    Raises:
        InputError: Two parts differ in the content of an episode.
    """
    place = place_finder(state for source in sources for state in source.states)
    kept: dict[tuple[str, int, int], tuple[DatasetRows, Attempt | None]] = {}
    for source in sources:
        stored = {place(attempt): attempt for attempt in source.stored}
        for where in dict.fromkeys((*map(place, source.states), *stored)):
            mine, (_, known) = stored.get(where), kept.get(where, (None, None))
            if where not in kept or (known is None and mine is not None):
                kept[where] = (source, mine)
            elif known is not None and mine is not None and known.sha256 != mine.sha256:
                _refuse_different(kept[where][0].folder / known.path, source.folder / mine.path)
    chosen, last = [], 0
    for source in sources:
        mine = {where for where, (owner, _) in kept.items() if owner is source}
        chosen.append(
            replace(
                source,
                attempts=[one for one in source.attempts if place(one) in mine],
                states=[replace(one, owner="", stage="") for one in source.states if place(one) in mine],
                runs=[replace(run, id=run.id + last) for run in source.runs],
                spans=[replace(span, run=span.run + last) for span in source.spans],
            )
        )
        last += max((run.id for run in source.runs), default=0)
    return chosen


def _refuse_different(one: Path, other: Path) -> None:
    with EpisodeFile(one) as first, EpisodeFile(other) as second:
        if content_hash(first).hexdigest("D0") == content_hash(second).hexdigest("D0"):
            return
    instead = "run 'nimbus verify' on both parts, and leave out the damaged one"
    raise InputError(f"the content differs from {one}", where=str(other), instead=instead)
