"""Writer of conversions to LeRobot v2.1, which has one table per episode, and one video per episode and camera."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from nimbus.datagen.datasets.convert.plan import ConversionPlan
from nimbus.datagen.datasets.convert.remux import check_whole, remux
from nimbus.datagen.datasets.convert.rows import (
    KEYS,
    Rows,
    RowTotals,
    by_feature,
    episode_stats,
    joint_image_stats,
    numbers_of,
    side_by_side,
)
from nimbus.datagen.datasets.export.shards import DATA_V21, VIDEO_V21, Options
from nimbus.datagen.files.codec import to_json
from nimbus.datagen.files.own_files import copy_new, make_place
from nimbus.datagen.store.dataset_paths import fill_template
from nimbus.datagen.store.publish import disk

_QUANTILES = KEYS[4:]


def write(
    plan: ConversionPlan, stage: Path, options: Options, *, workers: int | None = None, tell: Callable[[int], None]
) -> None:
    """Write a dataset into the subfolder ``tree`` of a staging folder.

    Args:
        plan: Plan of the new dataset.
        stage: Staging folder.
        options: Number of episodes per folder.
        workers: Unused: the files are small, and one process writes them.
        tell: Called with the number of remaining episodes.
    """
    tree, meta = stage / "tree", make_place(stage, "tree/meta/info.json").parent
    rows, totals = Rows(plan), RowTotals(plan.frame_count)
    with disk(meta), (meta / "episodes.jsonl").open("w") as episodes, (meta / "episodes_stats.jsonl").open("w") as told:
        for position, item in enumerate(plan.items):
            place: dict[str, Any] = {"episode_chunk": position // options.episode_size, "episode_index": position}
            table = rows.read(range(position, position + 1))
            pq.write_table(table, make_place(tree, fill_template(DATA_V21, **place)), compression="snappy")
            for feature in plan.source.videos:
                _write_video(plan, position, feature, tree, fill_template(VIDEO_V21, video_key=feature, **place))
            row = {"episode_index": position, "tasks": list(item.tasks), "length": item.length}
            told_of = dict(item.extra) | row  # values without a JSON form, such as dates, become text
            episodes.write(json.dumps(told_of, sort_keys=True, ensure_ascii=False, default=str) + "\n")
            told.write(to_json({"episode_index": position, "stats": _stats(plan, position, table, totals)}) + "\n")
            tell(len(plan.items) - position - 1)
    texts = [to_json({"task_index": number, "task": text}) + "\n" for number, text in plan.wordings.items()]
    (meta / "tasks.jsonl").write_text("".join(texts))
    stats = totals.stats()
    if plan.keeps_image_stats:
        for feature in plan.source.videos:
            stats[feature] = joint_image_stats(item.image_stats[feature] for item in plan.items)
    (meta / "stats.json").write_text(to_json(stats, indent=1) + "\n")
    (meta / "info.json").write_text(to_json(_info(plan, options.episode_size), indent=1) + "\n")


def _write_video(plan: ConversionPlan, position: int, feature: str, tree: Path, name: str) -> None:
    clip = plan.items[position].clips[feature]
    if clip.is_whole:
        check_whole(plan.cuts(feature, [position])[0], fps=plan.source.fps)
        copy_new(clip.path.resolve(), tree, name, may_link=True)
    else:
        remux(plan.cuts(feature, [position]), lambda _: make_place(tree, name), fps=plan.source.fps, indexed=False)


def _stats(plan: ConversionPlan, position: int, table: Any, totals: RowTotals) -> dict[str, Any]:
    """Return the statistics of an episode without quantiles (v2.1 has none), and add its rows to the totals."""
    numbers, item = numbers_of(table), plan.items[position]
    totals.add(numbers)
    sizes = {name: values.shape[1] for name, values in numbers.items()}
    found = by_feature(episode_stats(side_by_side(numbers)), sizes, item.length)
    if plan.keeps_image_stats:
        found |= {name: dict(values) for name, values in item.image_stats.items()}
    return {name: {key: value for key, value in one.items() if key not in _QUANTILES} for name, one in found.items()}


def _info(plan: ConversionPlan, chunk_size: int) -> dict[str, Any]:
    gone = ("data_files_size_in_mb", "video_files_size_in_mb")
    kept = {name: value for name, value in plan.source.info.items() if name not in gone}
    count = len(plan.items)
    return kept | {
        "codebase_version": "v2.1",
        "total_episodes": count,
        "total_frames": plan.frame_count,
        "total_tasks": len(plan.wordings),
        "total_videos": count * len(plan.source.videos),
        "total_chunks": -(-count // chunk_size),
        "chunks_size": chunk_size,
        "fps": plan.source.fps,
        "splits": plan.splits,
        "data_path": DATA_V21,
        "video_path": VIDEO_V21 if plan.source.videos else None,
    }
