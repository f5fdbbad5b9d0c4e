"""Depth and masks beside a LeRobot dataset, read back to the last bit."""

from __future__ import annotations

import json
from pathlib import Path

import av
import h5py
import numpy as np
import pytest

from nimbus.datagen.datasets.export.export import export
from nimbus.datagen.errors import InputError
from nimbus.datagen.policies.environment import with_cameras
from nimbus.runner.cli import main
from tests.support.reading import tree
from tests.support.synthetic import make_layout, make_rendered, write_dataset


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
    with pytest.raises(InputError, match="--masks: aloha does not support side videos"):
        export(tmp_path / "data", tmp_path / "out", to="aloha", side=("masks",))
