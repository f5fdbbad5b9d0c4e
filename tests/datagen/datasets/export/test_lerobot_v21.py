from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pyarrow.parquet as pq
import pytest

from nimbus.datagen.datasets.export.export import export
from nimbus.datagen.datasets.export.lerobot_v21 import modality
from nimbus.datagen.datasets.export.shards import Options
from nimbus.datagen.datasets.export.source import Source
from nimbus.datagen.errors import InputError
from nimbus.datagen.robots.robot import load_robot
from tests.support.reading import decode, psnr
from tests.support.synthetic import make_rendered, write_dataset

STEPS = (20, 13, 27)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data") / "data"
    write_dataset(folder, [make_rendered(row, steps=steps) for row, steps in enumerate(STEPS)])
    return folder


@pytest.fixture(scope="module")
def out(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("out") / "out"
    export(data, folder, to="lerobot-v2.1", options=Options(episode_size=2))
    return folder


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_each_episode_has_its_files_where_the_description_says(data: Path, out: Path):
    info = json.loads((out / "meta/info.json").read_text())
    assert (info["codebase_version"], info["total_chunks"], info["total_videos"]) == ("v2.1", 2, 6)
    episodes = lines(out / "meta/episodes.jsonl")
    assert [row["length"] for row in episodes] == list(STEPS)
    assert [(row["success"], row["seed"], row["reason"]) for row in episodes] == [(True, 0, "none")] * 3
    start = 0
    wordings = {row["task_index"]: row["task"] for row in lines(out / "meta/tasks.jsonl")}
    for position, path in enumerate(sorted((data / "episodes").iterdir())):
        place = {"episode_chunk": position // info["chunks_size"], "episode_index": position}
        rows = pq.read_table(out / info["data_path"].format(**place)).to_pylist()
        with h5py.File(path) as file:
            wanted: Any = {name: np.asarray(file[f"observations/images/{name}"]) for name in ("front", "wrist")}
            actions, told = np.asarray(file["action"]), np.asarray(file["instruction"])[()]
        assert [row["index"] for row in rows] == list(range(start, start + len(rows)))
        assert np.array_equal(np.array([row["action"] for row in rows], np.float32), actions.astype(np.float32))
        assert {wordings[row["task_index"]] for row in rows} == {bytes(told).decode()}
        for camera, images in wanted.items():
            video = out / info["video_path"].format(video_key=f"observation.images.{camera}", **place)
            found, times = decode(video)
            assert np.allclose(times, [row["timestamp"] for row in rows], atol=1e-6)
            assert psnr(found, images) > 27
        start += len(rows)


def test_statistics_are_of_each_episode(data: Path, out: Path):
    for row, path in zip(lines(out / "meta/episodes_stats.jsonl"), sorted((data / "episodes").iterdir()), strict=True):
        with h5py.File(path) as file:
            values = np.asarray(file["observations/qvel"]).astype(np.float32).astype(np.float64)
        stats = row["stats"]["observation.velocity"]
        assert set(stats) == {"min", "max", "mean", "std", "count"}
        assert np.allclose(stats["mean"], values.mean(0)) and np.allclose(stats["std"], values.std(0))
        assert np.shape(row["stats"]["observation.images.front"]["mean"]) == (3, 1, 1)


def test_modalities_cover_every_column_once(out: Path):
    modality = json.loads((out / "meta/modality.json").read_text())
    features = json.loads((out / "meta/info.json").read_text())["features"]
    for group, default in (("state", "observation.state"), ("action", "action")):
        columns: dict[str, list[int]] = {}
        for part in modality[group].values():
            columns.setdefault(part.get("original_key", default), []).extend(range(part["start"], part["end"]))
        for key, covered in columns.items():
            assert covered == list(range(features[key]["shape"][0])), key
    assert {part["original_key"] for part in modality["video"].values()} <= set(features)


def source(joints: tuple[str, ...], actions: tuple[str, ...]) -> Source:
    names: Any = {"joint_names": joints, "action_names": actions}
    return Source(folder=Path("data"), task="t", robot="r", fps=20, cameras={}, items=(), **names)


@pytest.mark.parametrize("name", ["panda", "so101", "dual_panda", "baxter"])
def test_modality_slices_hold_the_robots_own_joints(name: str):
    robot = load_robot(name)
    found = modality(source(robot.joint_names, robot.action_names))
    for arm in robot.arms:
        prefix = f"{arm.name}_" if len(robot.arms) > 1 else ""
        for speed in ("", "_velocity"):
            span = found["state"][f"{prefix}arm{speed}"]
            assert robot.joint_names[span["start"] : span["end"]] == arm.arm.joints
            span = found["state"][f"{prefix}gripper{speed}"]
            assert robot.joint_names[span["start"] : span["end"]] == arm.gripper.joints
        span = found["action"][f"{prefix}arm"]
        assert robot.action_names[span["start"] : span["end"]] == arm.arm.joints
        span = found["action"][f"{prefix}gripper"]
        assert robot.action_names[span["start"] : span["end"]] == (f"{prefix}gripper",)
    assert (len(found["state"]), len(found["action"])) == (4 * len(robot.arms), 2 * len(robot.arms))


def test_modality_of_two_arms_with_equal_jaw_names():
    """With two SO-101 arms, the joint of a jaw has the name of its action."""
    names = tuple(f"{arm}_{joint}" for arm in ("left", "right") for joint in ("pan", "lift", "gripper"))
    found = modality(source(names, names))
    assert {name: (span["start"], span["end"]) for name, span in found["action"].items()} == {
        "left_arm": (0, 2),
        "left_gripper": (2, 3),
        "right_arm": (3, 5),
        "right_gripper": (5, 6),
    }
    assert found["state"]["right_gripper"] == {"start": 5, "end": 6}


@pytest.mark.parametrize("actions", [("a", "b"), ("b", "a", "gripper"), ("a", "b", "c", "gripper"), ()])
def test_modality_refuses_actions_of_other_joints(actions: tuple[str, ...]):
    with pytest.raises(InputError, match="do not match the joints a, b, finger; use the same names"):
        modality(source(("a", "b", "finger"), actions))
