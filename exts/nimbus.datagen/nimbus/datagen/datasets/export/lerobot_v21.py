"""Writer of exports to LeRobot v2.1, with the ``modality.json`` of GR00T."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from nimbus.datagen.datasets.export.features import Tasks, columns_of, episode_stats, features_of, join
from nimbus.datagen.datasets.export.parquet import write_parquet
from nimbus.datagen.datasets.export.parts import EpisodeParts
from nimbus.datagen.datasets.export.shards import DATA_V21, VIDEO_V21, Options
from nimbus.datagen.datasets.export.source import Source
from nimbus.datagen.errors import InputError
from nimbus.datagen.files.codec import to_json
from nimbus.datagen.files.own_files import copy_new, make_place
from nimbus.datagen.policies.signal_view import SignalView
from nimbus.datagen.store.episode_file.h264 import PLAIN

NEEDS_PARTS = True
BASE_JOINTS = ("x", "y", "yaw")
"""Joints of a mobile base; its commands are speeds, and it has no gripper."""
_STATS = ("min", "max", "mean", "std", "count")
"""Statistics that v2.1 supports."""


_ROTATION_TYPES = {"6d": "rotation_6d", "quaternion": "quaternion", "euler": "euler_angles_rpy"}
"""Name in GR00T of each representation of rotations."""


def write(source: Source, parts: EpisodeParts, tree: Path, options: Options) -> None:
    """Write a LeRobot v2.1 dataset into an empty folder.

    Args:
        source: Dataset to export.
        parts: Prepared episodes of the source.
        tree: Folder of the export.
        options: Number of episodes per folder.
    """
    tasks = Tasks()
    meta = make_place(tree, "meta/info.json").parent
    start = 0
    with (meta / "episodes.jsonl").open("w") as episodes, (meta / "episodes_stats.jsonl").open("w") as stats:
        for part in parts:
            position, count = part.item.position, part.item.step_count
            place = {"episode_chunk": position // options.episode_size, "episode_index": position}
            write_parquet(make_place(tree, DATA_V21.format(**place)), columns_of(part, source, tasks, start=start))
            for camera, video in part.videos.items():
                name = VIDEO_V21.format(video_key=f"observation.images.{camera}", **place)
                if video == part.item.videos.get(
                    camera
                ):  # a video of the dataset is copied into the container that readers expect
                    join([video], make_place(tree, name), fps=source.fps, flags=PLAIN)
                else:
                    copy_new(video, tree, name, may_link=True)
            found = episode_stats(part, source, tasks, start=start)
            kept = {name: {key: values[key] for key in _STATS} for name, values in found.items()}
            stats.write(to_json({"episode_index": position, "stats": kept}) + "\n")
            item = part.item
            row = {"episode_index": position, "tasks": [part.signals.instruction], "length": count}
            row |= {"success": item.success, "seed": item.seed, "reason": item.reason, "phase": item.phase}
            row |= {"episode_id": item.episode_id, "index_in_run": item.index}
            row |= {"variant": item.variant, "attempt": item.attempt}
            episodes.write(to_json(row) + "\n")
            start += count
    lines = [to_json({"task_index": number, "task": wording}) + "\n" for number, wording in enumerate(tasks)]
    (meta / "tasks.jsonl").write_text("".join(lines))
    (meta / "info.json").write_text(to_json(_info(source, len(tasks), options.episode_size), indent=1) + "\n")
    (meta / "modality.json").write_text(to_json(modality(source), indent=1) + "\n")


def modality(source: Source) -> dict[str, Any]:
    """Return the content of ``modality.json``: the ranges of each arm and gripper in states and actions.

    Raises:
        InputError: The names of actions and joints do not describe arms with one gripper each.
    """
    state: dict[str, Any] = {}
    action: dict[str, Any] = {}
    speed = {"original_key": "observation.velocity"}
    if source.joint_names == BASE_JOINTS:
        pose = _span(0, len(source.joint_names))
        return {
            "state": {"base": pose, "base_velocity": pose | speed},
            "action": {"base": _span(0, len(source.action_names)) | {"absolute": False}},
            "video": {camera: {"original_key": f"observation.images.{camera}"} for camera in source.cameras},
            "annotation": {"human.task_description": {"original_key": "task_index"}},
        }
    for prefix, actions, joints in _arms(source):
        fingers = joints.start + len(actions) - 1
        spans = {f"{prefix}arm": _span(joints.start, fingers), f"{prefix}gripper": _span(fingers, joints.stop)}
        state |= spans if source.state_names == source.joint_names else _commanded(prefix, actions)
        state |= {f"{name}_velocity": span | speed for name, span in spans.items()}
        if source.views is None or source.control_names == source.action_names:
            action |= _commanded(prefix, actions)
    if source.views:
        action = action or _tools(source.control_names, source.views.view)
        if source.views.control.base:
            action |= {name: span | {"absolute": False} for name, span in action.items() if "gripper" not in name}
    for name, names in source.extra_names.items():
        if names:
            state |= {name.removeprefix("observation."): _span(0, len(names)) | {"original_key": name}}
    return {
        "state": state,
        "action": action,
        "video": {camera: {"original_key": f"observation.images.{camera}"} for camera in source.cameras},
        "annotation": {"human.task_description": {"original_key": "task_index"}},
    }


def _commanded(prefix: str, actions: range) -> dict[str, Any]:
    """Return the ranges of one arm and its gripper, given the arm's entries in an action."""
    arm, gripper = _span(actions.start, actions.stop - 1), _span(actions.stop - 1, actions.stop)
    return {f"{prefix}arm": arm, f"{prefix}gripper": gripper}


def _tools(names: tuple[str, ...], view: SignalView) -> dict[str, Any]:
    """Return the ranges of each arm's tool pose and gripper, under GR00T's names."""
    found, start = {}, 0
    for end in (at + 1 for at, name in enumerate(names) if name.endswith("gripper")):
        prefix = names[end - 1].removesuffix("gripper")
        turn = _span(start + 3, end - 1) | {"rotation_type": _ROTATION_TYPES[view.rotation]}
        found |= {f"{prefix}eef_position": _span(start, start + 3), f"{prefix}eef_rotation": turn}
        found[f"{prefix}gripper"] = _span(end - 1, end)
        start = end
    return found


def _span(start: int, end: int) -> dict[str, Any]:
    return {"start": start, "end": end}


def _arms(source: Source) -> Iterator[tuple[str, range, range]]:
    """Yield the prefix, the action entries and the joints of each arm; the gripper is last in both."""
    actions, joints = source.action_names, source.joint_names
    ends = [at + 1 for at, name in enumerate(actions) if name.endswith("_gripper")]
    if actions[-1:] == ("gripper",):
        ends = [len(actions)]  # the joints of a single arm may have any names
    at = first = 0
    for end in ends:
        after = actions[end : end + 1]
        stop = joints.index(after[0]) if after and after[0] in joints else len(joints)
        fingers = first + end - 1 - at
        if actions[at : end - 1] != joints[first:fingers] or fingers >= stop:
            break
        yield actions[end - 1].removesuffix("gripper"), range(at, end), range(first, stop)
        at, first = end, stop
    if (at, first) != (len(actions), len(joints)):
        what = f"the actions {', '.join(actions)} do not match the joints {', '.join(joints)}"
        instead = "use the same names for joints and actions of an arm, followed by '<arm>_gripper'"
        raise InputError(what, where=str(source.folder), instead=instead)


def _info(source: Source, task_count: int, chunk_size: int) -> dict[str, Any]:
    count = len(source.items)
    return {
        "codebase_version": "v2.1",
        "robot_type": source.robot,
        "total_episodes": count,
        "total_frames": source.frame_count,
        "total_tasks": task_count,
        "total_videos": count * len(source.cameras),
        "total_chunks": -(-count // chunk_size),
        "chunks_size": chunk_size,
        "fps": source.fps,
        "splits": source.splits,
        "data_path": DATA_V21,
        "video_path": VIDEO_V21 if source.cameras else None,
        "features": features_of(source),
    }
