"""Writer of conversions to LeRobot v3.0."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from nimbus.datagen.datasets.convert.jobs import ConversionJob, ConversionJobs, JobOutput
from nimbus.datagen.datasets.convert.plan import ConversionPlan
from nimbus.datagen.datasets.convert.rows import RowTotals, by_column, joint_image_stats, numbers_of
from nimbus.datagen.datasets.export.parquet import INT, TEXT, write_index
from nimbus.datagen.datasets.export.parts import make_all
from nimbus.datagen.datasets.export.shards import DATA, EPISODES, FILES_IN_CHUNK, VIDEO, Options, groups, pack, place
from nimbus.datagen.files.codec import to_json
from nimbus.datagen.files.foreign_tables import open_table
from nimbus.datagen.files.own_files import copy_new, make_place
from nimbus.datagen.machine import usable_cores

_PAYS = 200_000
"""Number of images for which a further process is started; copying fewer takes less time than starting a process."""


def write(
    plan: ConversionPlan, stage: Path, options: Options, *, workers: int | None = None, tell: Callable[[int], None]
) -> None:
    """Write a dataset into the subfolder ``tree`` of a staging folder; jobs write its files into ``parts`` first.

    Args:
        plan: Plan of the new dataset.
        stage: Staging folder.
        options: Limits of file sizes.
        workers: Number of processes; by default chosen from the amount of work and the cores.
        tell: Called with the number of remaining files.
    """
    jobs = ConversionJobs(plan, stage / "parts")
    todo = [*_jobs(plan, "", plan.row_sizes(), options)]
    for feature in plan.source.videos:
        todo += _jobs(plan, feature, plan.video_sizes(feature), options)
    missing = [job for job in todo if not jobs.is_done(job)]
    worth = min(usable_cores(), 1 + plan.frame_count * len(plan.source.videos) // _PAYS)
    make_all(jobs.do, missing, workers=workers or worth, tell=tell)
    tree = stage / "tree"
    columns: dict[str, list[Any]] = {}
    made = [(job, jobs.read(job)) for job in todo]
    rows = [(job, found) for job, found in made if not job.feature]
    for job, found in rows:
        if found.sizes != rows[0][1].sizes:
            raise jobs.uneven(job.positions, found.sizes.items() ^ rows[0][1].sizes.items())
    _place_rows(plan, tree, rows, columns)
    for feature in plan.source.videos:
        _place_videos(plan, tree, feature, [(job, found) for job, found in made if job.feature == feature], columns)
    _write_episodes(plan, tree, columns, options.episode_size)
    texts = plan.wordings
    names = {"task_index": (list(texts), INT), "task": (list(texts.values()), TEXT)}
    write_index(tree / "meta/tasks.parquet", names, index="task")
    stats = _dataset_stats(plan, [path for _, found in rows for path in found.files])
    (tree / "meta/stats.json").write_text(to_json(stats, indent=1) + "\n")
    (tree / "meta/info.json").write_text(to_json(_info(plan, options), indent=1) + "\n")


def _jobs(plan: ConversionPlan, feature: str, sizes: Sequence[int], options: Options) -> Iterator[ConversionJob]:
    for number, positions in groups(pack(sizes, options.shard_bytes, options.episode_size)):
        yield ConversionJob(number=number, feature=feature, positions=positions)


def _place_rows(
    plan: ConversionPlan, tree: Path, made: list[tuple[ConversionJob, JobOutput]], columns: dict[str, list[Any]]
) -> None:
    """Link the tables to their final paths, and add the locations and statistics to the columns of the episodes."""
    lengths = [item.length for item in plan.items]
    columns["dataset_from_index"], columns["dataset_to_index"] = plan.starts[:-1], plan.starts[1:]
    for job, found in made:
        spot = place(job.number)
        copy_new(found.files[0], tree, DATA.format(**spot), may_link=True)
        for name, value in spot.items():
            columns.setdefault(f"data/{name}", []).extend([value] * len(job.positions))
        for name, values in by_column(found.stats, found.sizes).items():
            columns.setdefault(f"stats/{name}", []).extend(values)
    columns |= {f"stats/{feature}/count": [[length] for length in lengths] for feature in made[0][1].sizes}
    if plan.keeps_image_stats:
        for feature in plan.source.videos:
            for name in plan.items[0].image_stats[feature]:
                values = [item.image_stats[feature].get(name) for item in plan.items]
                columns[f"stats/{feature}/{name}"] = values


def _place_videos(
    plan: ConversionPlan,
    tree: Path,
    feature: str,
    made: list[tuple[ConversionJob, JobOutput]],
    columns: dict[str, list[Any]],
) -> None:
    names = ("chunk_index", "file_index", "from_timestamp", "to_timestamp")
    mine: dict[str, list[Any]] = {name: columns.setdefault(f"videos/{feature}/{name}", []) for name in names}
    number = 0
    for job, found in made:
        positions = iter(job.positions)
        for path, count in zip(found.files, found.counts, strict=True):
            spot, frame = place(number), 0
            copy_new(path, tree, VIDEO.format(video_key=feature, **spot), may_link=True)
            for _ in range(count):
                stop = frame + plan.items[next(positions)].length
                # The quotient of whole numbers does not drift, unlike a sum of durations.
                times = {"from_timestamp": frame / plan.source.fps, "to_timestamp": stop / plan.source.fps}
                for name, value in (spot | times).items():
                    mine[name].append(value)
                frame = stop
            number += 1


def _write_episodes(plan: ConversionPlan, tree: Path, columns: dict[str, list[Any]], most: int) -> None:
    """Write the tables of episodes; row ``i`` is episode ``i``, because readers find episodes by position."""
    items = plan.items
    told: dict[str, list[Any]] = {
        "episode_index": list(range(len(items))),
        "tasks": [list(item.tasks) for item in items],
        "length": [item.length for item in items],
    }
    extra = dict.fromkeys(name for item in items for name in item.extra if name not in told and name not in columns)
    told |= {name: [item.extra.get(name) for item in items] for name in extra} | columns
    schema: Any = None
    for number, positions in groups(pack([1] * len(items), most, most)):
        part = slice(positions.start, positions.stop)
        table = pa.table({name: _column(values[part]) for name, values in told.items()})
        for name, value in place(number).items():
            table = table.append_column(f"meta/episodes/{name}", pa.array([value] * len(positions), pa.int64()))
        schema = schema or table.schema
        path = make_place(tree, EPISODES.format(**place(number)))
        pq.write_table(table if table.schema == schema else _like(table, schema), path, compression="snappy")


def _column(values: list[Any]) -> Any:
    """Convert values to a column; values of mixed types become JSON texts."""
    try:
        return pa.array(values)
    except (pa.ArrowException, OverflowError):
        return pa.array([to_json(value) for value in values])


def _like(table: Any, schema: Any) -> Any:
    """Return a table with the columns of a schema; missing columns become null."""
    arrays = [
        table.column(field.name).cast(field.type)
        if field.name in table.column_names
        else pa.nulls(len(table), field.type)
        for field in schema
    ]
    return pa.table(arrays, schema=schema)


def _dataset_stats(plan: ConversionPlan, files: list[Path]) -> dict[str, Any]:
    totals = RowTotals(plan.frame_count)
    for path in files:
        file = open_table(path)
        for group in range(file.num_row_groups):
            totals.add(numbers_of(file.read_row_group(group)))
    stats = totals.stats()
    if plan.keeps_image_stats:
        for feature in plan.source.videos:
            stats[feature] = joint_image_stats(item.image_stats[feature] for item in plan.items)
    return stats


def _info(plan: ConversionPlan, options: Options) -> dict[str, Any]:
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
