"""Files for robomimic and ALOHA, read as their own loaders read them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from nimbus.datagen.datasets.export.export import export
from tests.support.reading import psnr
from tests.support.synthetic import make_rendered, write_dataset

STEPS = (20, 13, 20, 13)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a dataset of two plans in two variants."""
    folder = tmp_path_factory.mktemp("data") / "data"
    addresses = [(0, 0), (1, 0), (0, 1), (1, 1)]
    write_dataset(
        folder,
        [
            make_rendered(row, variant=variant, steps=steps)
            for (row, variant), steps in zip(addresses, STEPS, strict=True)
        ],
    )
    return folder


def stored(data: Path) -> list[Any]:
    """Return episodes by index and variant."""
    return [h5py.File(path) for path in sorted((data / "episodes").iterdir())]


@pytest.fixture(scope="module")
def demos(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("robomimic") / "out"
    export(data, folder, to="robomimic")
    return h5py.File(folder / "dataset.hdf5")


def test_robomimic_env_args_name_no_environment(data: Path, demos: Any):
    """Environment types of robomimic are 1 (robosuite), 2 (Gym) and 3 (iGibson); with another number, robomimic cannot
    create an environment.
    """
    environment = json.loads(demos["data"].attrs["env_args"])
    assert {"env_name", "type", "env_kwargs"} <= set(environment)
    assert environment["type"] == 0
    assert environment["env_name"] == f"nimbus-{json.loads((data / 'dataset.json').read_text())['task']}"


def test_robomimic_finds_its_demos(data: Path, demos: Any):
    files = stored(data)
    assert demos["data"].attrs["total"] == sum(len(file["time"]) for file in files)
    for position, file in enumerate(files):
        demo = demos[f"data/demo_{position}"]
        assert demo.attrs["num_samples"] == len(demo["actions"]) == len(file["time"])
        assert demo.attrs["episode_id"] == file.attrs["episode_id"]
        assert np.array_equal(demo["obs/joint_pos"], file["observations/qpos"][:].astype(np.float32))
        assert np.array_equal(demo["obs/front_image"], file["observations/images/front"])
        assert np.array_equal(demo["next_obs/front_image"][:-1], file["observations/images/front"][1:])
        assert np.array_equal(demo["next_obs/joint_pos"][:-1], demo["obs/joint_pos"][1:])
        assert demo["dones"][:].tolist() == [False] * (len(file["time"]) - 1) + [True]
        assert demo["rewards"][-1] == 1 and not demo["rewards"][:-1].any()


def test_robomimics_actions_are_within_one_and_lead_back(data: Path, demos: Any):
    low, high = demos["data"].attrs["action_low"], demos["data"].attrs["action_high"]
    everything = np.concatenate([demos[f"data/demo_{row}/actions"] for row in range(len(STEPS))])
    assert np.allclose([everything.min(0), everything.max(0)], [[-1] * 8, [1] * 8])
    for position, file in enumerate(stored(data)):
        demo = demos[f"data/demo_{position}"]
        assert np.allclose((demo["actions"][:] + 1.0) / 2 * (high - low) + low, file["action"], atol=1e-12)
        assert np.array_equal(demo["actions_abs"], file["action"])


def test_variants_of_a_plan_are_on_one_side(tmp_path: Path):
    write_dataset(
        tmp_path / "data", [make_rendered(row, variant=variant, steps=4) for row in range(10) for variant in (0, 1)]
    )
    export(tmp_path / "data", tmp_path / "out", to="robomimic")
    file: Any = h5py.File(tmp_path / "out" / "dataset.hdf5")
    sides = {side: {name.decode() for name in file[f"mask/{side}"][:]} for side in ("train", "valid", "success")}
    plans = {
        side: {file[f"data/{name}"].attrs["episode_id"].rpartition("-v")[0] for name in names}
        for side, names in sides.items()
    }
    assert (len(sides["train"]), len(sides["valid"])) == (18, 2)
    assert sides["success"] == sides["train"] | sides["valid"]
    assert not plans["train"] & plans["valid"]


def test_aloha_readers_find_their_arrays(data: Path, tmp_path: Path):
    export(data, tmp_path / "out", to="aloha")
    files = stored(data)
    assert len(list((tmp_path / "out").glob("*.hdf5"))) == len(files)
    for position, file in enumerate(files):
        with h5py.File(tmp_path / "out" / f"episode_{position}.hdf5") as root:
            found: Any = root
            assert found.attrs["sim"] and not found.attrs["compress"]
            for name in ("/action", "/observations/qpos", "/observations/qvel", "/observations/images/front"):
                assert np.array_equal(found[name], file[name])
            assert found["/observations/images/wrist"].chunks == (1, 48, 64, 3)


def test_images_that_are_stored_as_video_are_decoded(tmp_path: Path):
    write_dataset(tmp_path / "video", [make_rendered()], images="video")
    write_dataset(tmp_path / "lossless", [make_rendered()])
    for to, name, path in (
        ("aloha", "episode_0.hdf5", "observations/images/front"),
        ("robomimic", "dataset.hdf5", "data/demo_0/obs/front_image"),
    ):
        found = []
        for kind in ("video", "lossless"):
            export(tmp_path / kind, tmp_path / f"{kind}_{to}", to=to)
            with h5py.File(tmp_path / f"{kind}_{to}" / name) as file:
                found.append(np.asarray(file[path]))
        assert psnr(*found) > 27
