"""Writing LeRobot v3.0 out of another dataset's parts."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from nimbus.datagen.convert.jobs import Job, Jobs, Made
from nimbus.datagen.convert.plan import Plan
from nimbus.datagen.convert.row_stats import RowTotals, by_feature, joint_image_stats
from nimbus.datagen.convert.rows import numbers_of
from nimbus.datagen.store.export.options import Options
from nimbus.datagen.store.export.parquet import INT, TEXT, write_index
from nimbus.datagen.store.export.processes import core_count, make_all
from nimbus.datagen.store.export.shards import DATA, EPISODES, FILES_IN_CHUNK, VIDEO, groups, pack, place
from nimbus.datagen.store.json_text import to_json

_PAYS = 200_000
"""Pictures that take as long to move as a process takes to start, and some more."""


def write(
    plan: Plan, stage: Path, options: Options, *, workers: int | None = None, tell: Callable[[int], None]
) -> None:
    """Write a dataset into the folder ``tree`` of a stage; its files are made in ``parts`` before.

    Args:
        plan: What it will be.
        stage: The folder to work in.
        options: How large files get.
        workers: Processes; as many as pay when not given.
        tell: Called with how many files are yet to come.
    """
    jobs = Jobs(plan, stage / "parts")
    todo = [*_jobs(plan, "", plan.row_sizes(), options)]
    for feature in plan.source.videos:
        todo += _jobs(plan, feature, plan.video_sizes(feature), options)
    missing = [job for job in todo if not jobs.is_done(job)]
    worth = min(core_count(), 1 + plan.frame_count * len(plan.source.videos) // _PAYS)
    make_all(jobs.do, missing, workers=workers or worth, tell=tell)
    tree = stage / "tree"
    columns: list[dict[str, Any]] = [{} for _ in plan.items]
    made = [(job, jobs.read(job)) for job in todo]
    _place_rows(plan, tree, [(job, found) for job, found in made if not job.feature], columns)
    for feature in plan.source.videos:
        _place_videos(plan, tree, feature, [(job, found) for job, found in made if job.feature == feature], columns)
    _write_episodes(plan, tree, columns, options.episode_size)
    texts = plan.wordings
    names = {"task_index": (list(texts), INT), "task": (list(texts.values()), TEXT)}
    write_index(tree / "meta/tasks.parquet", names, index="task")
    stats = _dataset_stats(plan, [path for job, found in made if not job.feature for path in found.files])
    (tree / "meta/stats.json").write_text(to_json(stats, indent=1) + "\n")
    (tree / "meta/info.json").write_text(to_json(_info(plan, options), indent=1) + "\n")


def _jobs(plan: Plan, feature: str, sizes: Sequence[int], options: Options) -> Iterator[Job]:
    for number, positions in groups(pack(sizes, options.shard_bytes, options.episode_size)):
        yield Job(number=number, feature=feature, positions=positions)


def _place_rows(plan: Plan, tree: Path, made: list[tuple[Job, Made]], columns: list[dict[str, Any]]) -> None:
    starts = plan.starts
    for job, found in made:
        spot = place(job.number)
        link(found.files[0], tree / DATA.format(**spot))
        for row, position in enumerate(job.positions):
            length = plan.items[position].length
            columns[position] |= {f"data/{name}": value for name, value in spot.items()}
            columns[position] |= {"dataset_from_index": starts[position], "dataset_to_index": starts[position] + length}
            stats = by_feature(found.stats[row], found.sizes, length)
            if plan.keeps_image_stats:
                stats |= {name: dict(values) for name, values in plan.items[position].image_stats.items()}
            columns[position] |= {
                f"stats/{feature}/{name}": value for feature, values in stats.items() for name, value in values.items()
            }


def _place_videos(
    plan: Plan, tree: Path, feature: str, made: list[tuple[Job, Made]], columns: list[dict[str, Any]]
) -> None:
    number = 0
    for job, found in made:
        positions = iter(job.positions)
        for path, count in zip(found.files, found.counts, strict=True):
            spot, frame = place(number), 0
            link(path, tree / VIDEO.format(video_key=feature, **spot))
            for _ in range(count):
                position = next(positions)
                stop = frame + plan.items[position].length
                key = f"videos/{feature}"
                columns[position] |= {f"{key}/{name}": value for name, value in spot.items()}
                # Whole frames over the rate, not a sum of durations, which would drift.
                columns[position][f"{key}/from_timestamp"] = frame / plan.source.fps
                columns[position][f"{key}/to_timestamp"] = stop / plan.source.fps
                frame = stop
            number += 1


def _write_episodes(plan: Plan, tree: Path, columns: list[dict[str, Any]], most: int) -> None:
    """Row ``i`` is episode ``i``: readers look it up by its place."""
    taken = {name for row in columns for name in row}
    schema: Any = None
    for number, positions in groups(pack([1] * len(columns), most, most)):
        spot = {f"meta/episodes/{name}": value for name, value in place(number).items()}
        rows = []
        for position in positions:
            item = plan.items[position]
            told = {"episode_index": position, "tasks": list(item.tasks), "length": item.length}
            extra = {name: value for name, value in item.extra.items() if name not in taken}
            rows.append(told | extra | columns[position] | spot)
        names = list(dict.fromkeys(name for row in rows for name in row))
        table = pa.table({name: _column([row.get(name) for row in rows]) for name in names})
        schema = schema or table.schema
        path = made(tree / EPISODES.format(**place(number)))
        pq.write_table(table if table.schema == schema else _like(table, schema), path, compression="snappy")


def _column(values: list[Any]) -> Any:
    """Values of somebody else's; those that are not of one type become JSON."""
    try:
        return pa.array(values)
    except pa.ArrowException:
        return pa.array([to_json(value) for value in values])


def _like(table: Any, schema: Any) -> Any:
    """A table with the columns of another; what it lacks is null."""
    arrays = [
        table.column(field.name).cast(field.type)
        if field.name in table.column_names
        else pa.nulls(len(table), field.type)
        for field in schema
    ]
    return pa.table(arrays, schema=schema)


def _dataset_stats(plan: Plan, files: list[Path]) -> dict[str, Any]:
    totals = RowTotals(plan.frame_count)
    for path in files:
        file = pq.ParquetFile(path)
        for group in range(file.num_row_groups):
            totals.add(numbers_of(file.read_row_group(group)))
    stats = totals.stats()
    if plan.keeps_image_stats:
        for feature in plan.source.videos:
            stats[feature] = joint_image_stats(item.image_stats[feature] for item in plan.items)
    return stats


def _info(plan: Plan, options: Options) -> dict[str, Any]:
    gone = ("total_chunks", "total_videos")
    kept = {name: value for name, value in plan.source.info.items() if name not in gone}
    megabytes = max(1, options.shard_bytes // 10**6)
    return kept | {
        "codebase_version": "v3.0",
        "total_episodes": len(plan.items),
        "total_frames": plan.frame_count,
        "total_tasks": len(plan.wordings),
        "chunks_size": FILES_IN_CHUNK,
        "data_files_size_in_mb": megabytes,
        "video_files_size_in_mb": megabytes,
        "fps": plan.source.fps,
        "splits": plan.splits,
        "data_path": DATA,
        "video_path": VIDEO if plan.source.videos else None,
    }


def link(path: Path, target: Path) -> None:
    """The same file under another name, or a copy where the disk cannot do that."""
    made(target)
    try:
        os.link(path, target)
    except OSError:
        shutil.copyfile(path, target)


def made(path: Path) -> Path:
    """The path, its folder made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    return path
