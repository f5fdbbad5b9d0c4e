"""A run in splats, from a file to a verified dataset and its export."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nimbus.datagen.arrays import AnyArray
from nimbus.datagen.splats.training_ply import write_training_ply
from nimbus.datagen.store.episode_file.read import EpisodeFile
from nimbus.runner.cli import main
from tests.support.runs import run, sound
from tests.support.splat_room import room_cloud

TASK = """\
family: navigation
scene: {splats: [{splat: room.ply, up: z}]}
navigate: {to: point, length: [1 m, 6 m]}
cameras: {front: {position: [0, 0, 1.2], tilt: 5 deg, size: [64, 48]}}
pipeline: nav_splat
"""
WALLS = ((0.0, 0.0, 0.0), (6.0, 5.0, 2.6))


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("splats")
    write_training_ply(room_cloud(20_000, noise=0.003), folder / "room.ply")
    (folder / "room.yaml").write_text(TASK)
    assert run("--episodes", "2", out=folder / "data", task=folder / "room.yaml") == 0
    return folder / "data"


@pytest.mark.slow
def test_splat_run_stores_what_the_room_looks_like(data: Path):
    """Depth in the center of each image is that of a wall or of something in front of it; colors are bright."""
    sound(data)
    for path in sorted((data / "episodes").glob("*.hdf5")):
        with EpisodeFile(path) as episode:
            frames = episode.frames("front", 0, episode.step_count)
            labels = episode.labels
        assert labels and set(labels.instance_names[1:]) == {"floor", "obstacles"}
        assert 60 < frames.rgb.mean() < 200
        points = _middles(frames.depth, frames.world_T_camera, frames.intrinsics)
        low, high = np.array(WALLS[0]) - 0.1, np.array(WALLS[1]) + 0.1
        assert ((points > low) & (points < high)).all() and (frames.depth[:, 24, 32] > 0.2).all()


def _middles(depth: AnyArray, poses: AnyArray, matrix: AnyArray) -> AnyArray:
    """Return the positions (T, 3) of the center pixels."""
    ray = np.linalg.inv(matrix) @ (32.5, 24.5, 1.0)
    return poses[:, :3, 3] + (poses[:, :3, :3] @ ray) * depth[:, 24, 32, None]


@pytest.mark.slow
def test_splats_are_rerendered_and_certified_as_splats(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """Without ``--pipeline``, the task's own renderer is used; certificates also compare with splats."""
    monkeypatch.chdir(data.parent)
    before = min((data / "episodes").iterdir())
    assert main(["rerender", str(data), before.stem, "--out", str(tmp_path / "new")]) == 0
    with EpisodeFile(before) as old, EpisodeFile(tmp_path / "new" / "episodes" / before.name) as new:
        for kind in ("images", "depth"):
            name = f"observations/{kind}/front"
            np.testing.assert_array_equal(old.array(name), new.array(name))
    main(["certify", str(data), "--sample", "1"])
    line = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("rerender"))
    assert "holds" in line


@pytest.mark.slow
def test_splat_run_exports_to_r2r_ce(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["export", str(data), "--to", "r2r-ce", "--out", str(tmp_path / "out")]) == 0
    assert (tmp_path / "out" / "r2r" / "train" / "train_gt.json.gz").is_file()
    assert "episodes  2" in capsys.readouterr().out


@pytest.mark.slow
def test_pipelines_of_splats_refuse_meshes(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    task = tmp_path / "task.yaml"
    task.write_text(TASK.replace("{splats: [{splat: room.ply, up: z}]}", "{homes: 1, rooms: [4, 4]}"))
    assert run("--episodes", "1", out=tmp_path / "data", task=task) == 2
    assert "write splats: or splat_homes:" in capsys.readouterr().err
