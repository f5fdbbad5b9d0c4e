"""Navigation datasets in other layouts, read back in the way in which the loaders of these layouts read them."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import trimesh
from PIL import Image

from nimbus.datagen.datasets.export.discrete_actions import FORWARD, LEFT, RIGHT, STOP, follow_in_steps
from nimbus.datagen.datasets.export.export import export
from nimbus.datagen.errors import InputError
from tests.support.driven_set import RISE, WALL, driven_rows, write_driven
from tests.support.export_formats import NAVIGATION_FORMATS
from tests.support.synthetic import write_dataset


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_driven(tmp_path_factory.mktemp("driven") / "data")


@dataclass
class VlnEpisode:
    """Fields of VLN-CE's episodes; an unknown key is an error in VLN-CE and in this test."""

    episode_id: str
    scene_id: str
    start_position: list[float]
    start_rotation: list[float]
    goals: list[dict[str, Any]]
    info: dict[str, Any] | None = None
    instruction: dict[str, Any] = field(default_factory=dict)
    reference_path: list[list[float]] | None = None
    trajectory_id: int | None = None


def load(path: Path) -> Any:
    return json.loads(gzip.decompress(path.read_bytes()))


def test_r2r_ce_reads_back(data: Path, tmp_path: Path):
    """Starts, goals and headings are those of the stored paths, in Habitat's axes."""
    export(data, tmp_path / "out", to="r2r-ce")
    table = load(tmp_path / "out" / "r2r" / "train" / "train.json.gz")
    words = table["instruction_vocab"]["word_list"]
    episodes = [VlnEpisode(**episode) for episode in table["episodes"]]
    assert [one.scene_id for one in episodes] == ["nimbus/home_000/home_000.glb"] * 2 + ["nimbus/home_001/home_001.glb"]
    for index, one in enumerate(episodes):
        positions, yaws = driven_rows(index)
        x, y, z = one.start_position
        assert np.allclose((x, -z, y), positions[0])
        assert one.info == {"geodesic_distance": 4.8}
        assert np.allclose(_heading(one.start_rotation), (np.cos(yaws[0]), np.sin(yaws[0])), atol=1e-6)
        assert one.reference_path and np.allclose(one.reference_path[-1], one.goals[0]["position"])
        assert one.goals[0]["radius"] == 3.0
        tokens = one.instruction["instruction_tokens"]
        assert len(tokens) == 200
        assert [words[token] for token in tokens if token] == ["go", "to", "the", "chair", "room", str(index)]


def _heading(xyzw: list[float]) -> tuple[float, float]:
    """Return the direction in our x and y along which an agent of Habitat looks: -z, rotated about y."""
    angle = 2 * np.arctan2(xyzw[1], xyzw[3])
    return -np.sin(angle), np.cos(angle)


def test_r2r_ce_truth_leads_to_the_goal(data: Path, tmp_path: Path):
    """Replaying the actions from the start, as Habitat does, ends within a step of the goal."""
    export(data, tmp_path / "out", to="r2r-ce")
    table = load(tmp_path / "out" / "r2r" / "train" / "train.json.gz")
    truth = load(tmp_path / "out" / "r2r" / "train" / "train_gt.json.gz")
    for episode in table["episodes"]:
        one = truth[episode["episode_id"]]
        at, angle = np.array(episode["start_position"]), 2 * np.arctan2(*np.array(episode["start_rotation"])[[1, 3]])
        assert one["actions"][-1] == STOP and STOP not in one["actions"][:-1]
        for number, action in enumerate(one["actions"]):
            assert np.allclose(at, one["locations"][number], atol=1e-5)
            if action == FORWARD:
                at = at + 0.25 * np.array([-np.sin(angle), 0, -np.cos(angle)])
            angle += {LEFT: 1, RIGHT: -1}.get(action, 0) * np.radians(15)
        assert np.linalg.norm(at - episode["goals"][0]["position"]) < 0.25
        assert one["forward_steps"] == one["actions"].count(FORWARD)


def test_object_goals_have_view_points(data: Path, tmp_path: Path):
    """The last of three goals is a room, not an object."""
    export(data, tmp_path / "out", to="r2r-ce")
    table = load(tmp_path / "out" / "objectnav" / "train" / "train.json.gz")
    assert [episode["object_category"] for episode in table["episodes"]] == ["chair", "chair"]
    for episode in table["episodes"]:
        key = f"{Path(episode['scene_id']).name}_{episode['object_category']}"
        for goal in table["goals_by_category"][key]:
            assert goal["view_points"]
            for view in goal["view_points"]:
                assert np.linalg.norm(np.subtract(view["agent_state"]["position"], goal["position"])) < 1.0
    points = load(tmp_path / "out" / "pointnav" / "train" / "train.json.gz")["episodes"]
    assert len(points) == 3 and all(len(one["goals"]) == 1 for one in points)


@pytest.mark.parametrize("yaw", [0.0, 2.5, -3.0])
def test_steps_stay_near_their_path(yaw: float):
    angle = np.linspace(0, 4, 200)
    path = np.column_stack([angle * 2, np.sin(angle * 1.5)])
    steps = follow_in_steps(path, yaw)
    assert steps.off < 0.2 and np.linalg.norm(steps.positions[-1] - path[-1]) < 0.25
    pairs = set(zip(steps.actions, steps.actions[1:], strict=False))
    assert not {(LEFT, RIGHT), (RIGHT, LEFT)} & pairs


def test_vln_n1_reads_back_as_navdp_does(data: Path, tmp_path: Path):
    """Frames are found by their sorted names and by ``image_index``, poses determine the base's path, and points have
    two colors.
    """
    export(data, tmp_path / "out", to="vln-n1")
    root = tmp_path / "out" / "navigate_homes_front"
    counts = {}
    for folder in sorted(root.iterdir()):
        infos = [json.loads(line) for line in (folder / "meta" / "episodes_stats.jsonl").read_text().splitlines()]
        rgb = sorted((folder / "videos/chunk-000/observation.images.rgb").iterdir())
        depth = sorted((folder / "videos/chunk-000/observation.images.depth").iterdir())
        files = sorted((folder / "data/chunk-000").iterdir())
        assert len(rgb) == len(depth) == infos[-1]["image_index"]["max"] + 1
        counts[folder.name] = len(infos)
        for number, info in enumerate(infos):
            first = {"home_000": 0, "home_001": 2}[folder.name]
            positions, yaws = driven_rows(first + number)
            columns = pq.read_table(files[number]).to_pydict()
            start, stop = info["image_index"]["min"], info["image_index"]["max"] + 1
            assert stop - start == len(columns["action"]) == len(positions)
            _check_poses(columns, positions, yaws)
            row = 10
            image = np.array(Image.open(depth[start + row]), np.uint16) / 10000.0
            pose = np.array(columns["action"][row])
            middle = image[image.shape[0] // 2, image.shape[1] // 2]
            if middle < 6.5:
                assert abs(pose[0, 3] - pose[0, 2] * middle - WALL) < 0.05
            assert np.array(Image.open(rgb[start])).shape == (32, 48, 3)
        cloud = trimesh.load(folder / "meta" / "pointcloud.ply")
        assert isinstance(cloud, trimesh.PointCloud)
        colors = np.asarray(cloud.colors)[:, :3] / 255
        blue, black = (np.abs(colors - wanted).sum(axis=1) < 0.05 for wanted in ((0, 0, 0.5), (0, 0, 0)))
        assert blue.any() and black.any() and (blue | black).all()
        assert np.abs(np.asarray(cloud.vertices)[blue][:, 0] - WALL).max() < 0.06
    assert counts == {"home_000": 2, "home_001": 1}


def _check_poses(columns: dict[str, Any], positions: np.ndarray, yaws: np.ndarray) -> None:
    """Compute base poses by the loader's formula: the rotation times the inverse of the mount's rotation, then right
    and forward.
    """
    mount = np.array(columns["observation.camera_extrinsic"][0])
    poses = np.array(columns["action"])
    assert abs(mount[2, 3] - RISE) < 1e-5 and abs(mount[1, 3] - 0.1) < 1e-5
    turned = poses[0, :3, :3] @ np.linalg.inv(mount[:3, :3])
    assert np.allclose(turned[:, 1], (np.cos(yaws[0]), np.sin(yaws[0]), 0), atol=1e-5)  # forward
    assert np.allclose(turned[:, 2], (0, 0, 1), atol=1e-5)  # up
    ahead = np.linalg.inv(np.vstack([np.column_stack([turned, poses[0, :3, 3]]), (0, 0, 0, 1)])) @ poses[20, :, 3]
    assert np.allclose((ahead[1], -ahead[0]), (positions[20] - positions[0])[:2], atol=1e-4)  # x ahead, y left


def test_vln_n1_depth_saturates(data: Path, tmp_path: Path):
    export(data, tmp_path / "out", to="vln-n1")
    files = (tmp_path / "out").rglob("*.png")
    assert max(int(np.array(Image.open(file)).max()) for file in files) == 65535


@pytest.mark.parametrize("to", NAVIGATION_FORMATS)
def test_export_gives_equal_bytes(data: Path, tmp_path: Path, to: str):
    for name in ("one", "other"):
        export(data, tmp_path / name, to=to)
    for file in sorted(path for path in (tmp_path / "one").rglob("*") if path.is_file()):
        assert file.read_bytes() == (tmp_path / "other" / file.relative_to(tmp_path / "one")).read_bytes()


@pytest.mark.parametrize("to", NAVIGATION_FORMATS)
def test_manipulation_sets_are_refused(tmp_path: Path, to: str):
    write_dataset(tmp_path / "data")
    with pytest.raises(InputError, match="is a manipulation dataset") as caught:
        export(tmp_path / "data", tmp_path / "out", to=to)
    assert f"--to {to}" in str(caught.value) and "\n" not in str(caught.value)
    assert not (tmp_path / "out").exists()
