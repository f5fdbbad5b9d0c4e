"""Depth, masks and annotations beside a LeRobot dataset, read back to the last bit."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import av
import h5py
import numpy as np
import pyarrow.parquet as pq
import pytest

from nimbus.datagen.datasets.export.export import export
from nimbus.datagen.episode.layout import DEFAULT_MODALITIES
from nimbus.datagen.episode.observation import Keypoints, Observation
from nimbus.datagen.episode.trajectory import EndEffectors
from nimbus.datagen.errors import InputError
from nimbus.datagen.policies.environment import with_cameras
from nimbus.datagen.stages import Rendered
from nimbus.runner.cli import main
from tests.support.reading import tree
from tests.support.synthetic import make_labels, make_layout, make_observations, make_rendered, write_dataset


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data") / "data"
    write_dataset(folder, [make_rendered(0), make_rendered(1, steps=13)])
    return folder


def decoded(path: Path, pixels: str) -> np.ndarray:
    with av.open(str(path)) as container:
        return np.array([frame.to_ndarray(format=pixels) for frame in container.decode(video=0)])


@pytest.mark.parametrize("to", ["lerobot", "lerobot-v2.1"])
def test_every_pixel_is_read_back(data: Path, tmp_path: Path, to: str):
    out = tmp_path / "out"
    assert main(["export", str(data), "--to", to, "--out", str(out), "--depth", "--masks"]) == 0
    told = json.loads((out / "side/info.json").read_text())
    assert told["kinds"]["depth"] | {"unit": "mm", "lossless": True} == told["kinds"]["depth"]
    names = [json.loads(line) for line in (out / "side/names.jsonl").read_text().splitlines()]
    for position, path in enumerate(sorted((data / "episodes").glob("*.hdf5"))):
        with h5py.File(path) as file:
            for kind, about in told["kinds"].items():
                for camera in told["cameras"]:
                    video = out / told["path"].format(kind=kind, camera=camera, episode_index=position)
                    stored = np.asarray(file[f"observations/{kind}/{camera}"])
                    assert stored.max() > 1
                    assert np.array_equal(decoded(video, about["pix_fmt"]), stored)
        assert names[position]["instance_names"] == ["background", "items_0", "items_1"]


def annotated(index: int, *, steps: int, points: int) -> Rendered:
    """An episode whose front camera has flow, and whose cameras have keypoints; values are random."""
    random = np.random.default_rng(index)
    names = tuple(f"items_0.point_{number}" for number in range(points))
    keypoints = Keypoints(
        names=names,
        bodies=("items_0",) * points,
        instances=np.ones(points, np.uint8),
        positions=random.normal(size=(points, 3)),
    )

    def observations() -> Iterator[Observation]:
        for seen in make_observations(steps):
            cameras = {}
            for name, frames in seen.cameras.items():
                count, height, width = frames.instance.shape
                flow = random.normal(0, 40, (count, height, width, 2)).astype(np.float16)
                flow[:, 0] = np.nan
                cameras[name] = replace(
                    frames,
                    flow=flow if name == "front" else None,
                    keypoints_3d=random.normal(size=(count, points, 3)).astype(np.float32),
                    keypoints_2d=random.uniform(-9, 99, (count, points, 2)).astype(np.float32),
                    keypoint_visibility=random.integers(0, 3, (count, points)).astype(np.uint8),
                )
            yield replace(seen, cameras=cameras)

    item = make_rendered(index, steps=steps)
    tools = EndEffectors(
        names=("arm",), positions=random.normal(size=(steps, 1, 3)), wxyz=np.tile([1.0, 0, 0, 0], (steps, 1, 1))
    )
    cameras = tuple(
        replace(camera, modalities=(*DEFAULT_MODALITIES, *asked))
        for camera, asked in zip(item.layout.visual.cameras, (("flow", "keypoints"), ("keypoints",)), strict=True)
    )
    return replace(
        item,
        layout=replace(item.layout, visual=replace(item.layout.visual, cameras=cameras)),
        trajectory=replace(item.trajectory, end_effectors=tools),
        labels=replace(make_labels(), keypoints=keypoints),
        observations=observations(),
    )


@pytest.mark.parametrize("to", ["lerobot", "lerobot-v2.1"])
def test_every_annotation_is_read_back(tmp_path: Path, to: str):
    out = tmp_path / "out"
    write_dataset(tmp_path / "data", [annotated(0, steps=11, points=2), annotated(1, steps=6, points=3)])
    assert main(["export", str(tmp_path / "data"), "--to", to, "--out", str(out), "--annotations"]) == 0
    told = json.loads((out / "side/info.json").read_text())
    assert list(told["kinds"]) == ["flow"] and told["kinds"]["flow"]["cameras"] == ["front"]
    names = [json.loads(line) for line in (out / "side/names.jsonl").read_text().splitlines()]
    for position, path in enumerate(sorted((tmp_path / "data/episodes").glob("*.hdf5"))):
        table = pq.read_table(out / told["tables"]["path"].format(episode_index=position))
        columns = {name: np.array(table[name].to_pylist()) for name in table.column_names}
        with h5py.File(path) as file:
            stored = np.asarray(file["observations/flow/front"])
            video = out / told["path"].format(kind="flow", camera="front", episode_index=position)
            planes = decoded(video, told["kinds"]["flow"]["pix_fmt"]).view(np.float16)
            flow = np.stack(np.split(planes, 2, axis=1), axis=-1)
            assert np.array_equal(flow, stored, equal_nan=True) and np.isnan(stored).any()
            for group in ("keypoints_2d", "keypoints_3d", "keypoint_visibility"):
                for camera in ("front", "wrist"):
                    assert np.array_equal(
                        columns[f"{group}.{camera}"], np.asarray(file[f"observations/{group}/{camera}"])
                    )
            parts = [np.asarray(file[f"observations/end_effector_{part}"]) for part in ("positions", "wxyz")]
            assert np.array_equal(columns["end_effector_pose"], np.concatenate(parts, axis=2).astype(np.float32))
            assert columns["frame_index"].tolist() == list(range(len(stored)))
        assert len(names[position]["keypoint_names"]) == position + 2 and names[position]["end_effectors"] == ["arm"]


def test_same_episodes_give_the_same_bytes(data: Path, tmp_path: Path):
    for name in ("one", "two"):
        export(data, tmp_path / name, side=("depth", "masks"))
    assert tree(tmp_path / "one") == tree(tmp_path / "two")


def test_what_is_not_there_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    blind = make_rendered(layout=with_cameras(make_layout(), ()), labels=None, observations=iter(()))
    write_dataset(tmp_path / "data", [blind])
    assert main(["export", str(tmp_path / "data"), "--out", str(tmp_path / "out"), "--depth"]) == 2
    error = capsys.readouterr().err
    assert "has no depth" in error and error.count("\n") == 1
    assert main(["export", str(tmp_path / "data"), "--out", str(tmp_path / "out"), "--annotations"]) == 2
    assert "has no annotations; add 'modalities: [flow, keypoints, end_effector]'" in capsys.readouterr().err
    with pytest.raises(InputError, match="--masks: aloha does not support side videos"):
        export(tmp_path / "data", tmp_path / "out", to="aloha", side=("masks",))
