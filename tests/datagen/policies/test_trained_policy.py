"""Policies in folders: their answers, and one line for a task or weights that do not match."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nimbus.datagen.errors import InputError
from nimbus.datagen.policies.image_policy import CONVOLUTIONS, ImagePolicy, encode_picture
from nimbus.datagen.policies.open_policy import open_policy
from nimbus.datagen.policies.policy import PolicyObservation, PolicyTask
from nimbus.datagen.policies.python_policy import GuardedPolicy, PythonPolicy
from nimbus.datagen.policies.trained_policy import (
    WEIGHTS,
    TrainedSettings,
    generated_policy,
    read_weights,
    settings_of,
    write_policy,
)
from tests.support.refusals import refusal
from tests.support.synthetic import make_rendered, write_dataset

SIZE = (24, 16)
TASK = PolicyTask(
    name="t",
    robot="r",
    rate=15.0,
    joint_names=("a", "b"),
    action_names=("a", "grip"),
    action_low=-np.ones(2),
    action_high=np.ones(2),
    cameras={"front": SIZE, "side": (8, 8)},
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    weights = {"front/weight_0": rng.normal(size=(5, 32 * 3 * 2)), "front/bias_0": np.zeros(5)}
    before = 3
    for layer, (channels, width, _) in enumerate(CONVOLUTIONS):
        weights[f"front/kernel_{layer}"] = rng.normal(size=(channels, before, width, width)) / 10
        weights[f"front/offset_{layer}"], before = rng.normal(size=channels), channels
    weights |= {"weight_0": rng.normal(size=(6, 7)), "bias_0": np.zeros(6)}
    weights |= {f"{name}_{part}": np.ones(n) for name, n in {"x": 7, "y": 6}.items() for part in ("mean", "scale")}
    settings = TrainedSettings(
        task="t",
        robot="r",
        rate=15.0,
        joint_names=("a", "b"),
        action_names=("a", "grip"),
        cameras={"front": SIZE},
        horizon=3,
        limit=80,
    )
    write_policy(tmp_path / "policy", settings, weights, policy=ImagePolicy)
    return tmp_path / "policy"


def test_links_in_the_place_of_a_policy_are_replaced(folder: Path, tmp_path: Path):
    (tmp_path / "notes.txt").write_text("precious")
    for name in (WEIGHTS, "policy.json", "policy.py"):
        (folder / name).unlink()
        (folder / name).symlink_to(tmp_path / "notes.txt")
    settings = TrainedSettings(
        task="t", robot="r", rate=15.0, joint_names=("a",), action_names=("a",), horizon=1, limit=9
    )
    write_policy(folder, settings, {"x": np.zeros(3)}, policy=ImagePolicy)
    assert (tmp_path / "notes.txt").read_text() == "precious"
    assert read_weights(folder / WEIGHTS)["x"].shape == (3,)


def test_a_folder_that_is_a_link_gets_no_policy(folder: Path, tmp_path: Path):
    settings = TrainedSettings(
        task="t", robot="r", rate=15.0, joint_names=("a",), action_names=("a",), horizon=1, limit=9
    )
    (tmp_path / "private").mkdir()
    (tmp_path / "linked").symlink_to("private")
    with pytest.raises(InputError, match="linked: this is a link, and writing to it would change another file"):
        write_policy(tmp_path / "linked", settings, {"x": np.zeros(3)}, policy=ImagePolicy)
    assert not list((tmp_path / "private").iterdir())


def test_an_image_policy_answers_from_its_folder(folder: Path):
    policy = open_policy(str(folder))
    policy.begin_task(TASK)
    assert (policy.limit, policy.needs.cameras) == (80, ("front",))
    rng = np.random.default_rng(1)
    seen = [
        PolicyObservation(
            step=0,
            state=np.zeros(2),
            velocity=np.zeros(2),
            images={"front": rng.integers(0, 255, (16, 24, 3), np.uint8)},
            environment_state=np.zeros(0),
            instruction="",
        )
        for _ in range(2)
    ]
    answers = [policy.act(one) for one in seen]
    assert answers[0].shape == (3, 2) and np.abs(answers[0] - answers[1]).max() > 1e-3
    assert np.array_equal(answers[0], policy.act(seen[0]))


def test_modules_beside_a_generated_policy_are_not_imported(folder: Path):
    """They would stand for installed modules; the folder may have been of others before a training continued there."""
    for name in ("nimbus", "numpy", "safetensors"):
        (folder / f"{name}.py").write_text("raise SystemExit('imported')")
    policy = open_policy(str(folder))
    assert isinstance(policy, GuardedPolicy) and not isinstance(policy, PythonPolicy)
    assert generated_policy(folder) is ImagePolicy
    (folder / "policy.py").write_text((folder / "policy.py").read_text() + "\n")
    assert generated_policy(folder) is None


def test_a_missing_package_of_a_generated_policy_is_one_line(folder: Path, monkeypatch: pytest.MonkeyPatch):
    entry = (folder / "policy.py").read_text()
    entry = entry.replace(ImagePolicy.__module__, "nimbus.train.vla_policy").replace("ImagePolicy", "VlaPolicy")
    (folder / "policy.py").write_text(entry)
    monkeypatch.delitem(sys.modules, "nimbus.train.vla_policy", raising=False)
    monkeypatch.delitem(sys.modules, "nimbus.datagen.geometry.torch_library", raising=False)
    monkeypatch.setitem(sys.modules, "torch", None)
    assert "needs the package torch; " in refusal(open_policy, str(folder))


def test_a_convolution_is_the_sum_by_hand():
    picture = np.zeros((8, 8, 3), np.uint8)
    picture[1, 1] = (255, 0, 0)
    shapes = [(3, CONVOLUTIONS[0]), *zip((24, 32), CONVOLUTIONS[1:], strict=True)]
    weights = {f"kernel_{row}": np.zeros((o, i, k, k)) for row, (i, (o, k, _)) in enumerate(shapes)}
    weights |= {f"offset_{row}": np.zeros(o) for row, (o, _, _) in enumerate(CONVOLUTIONS)}
    weights["kernel_0"][0, 0] = 1.0  # sums the red of the first 5 x 5 px, because the border is 0
    weights["kernel_1"][0, 0, 1, 1] = weights["kernel_2"][0, 0, 1, 1] = 1.0
    weights |= {"weight_0": -np.eye(32), "bias_0": np.full(32, 20.0)}
    weights["offset_0"][0] = 20.0
    features = encode_picture(picture, weights)
    assert features[0] == pytest.approx(20.0 - (20.0 - 25 * 0.5 + 1.0)) and features[1] == 20.0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rate": 30.0}, "another rate: 15.0, not 30.0; evaluate it on t"),
        ({"cameras": {"front": (96, 96)}}, r"another cameras: {'front': (24, 16)}, not {'front': (96, 96)}"),
        ({"cameras": {}}, "another cameras"),
        ({"joint_names": ("a", "c")}, "another joint names: it lacks ['b'] and has the additional ['c']"),
    ],
)
def test_another_task_is_refused(folder: Path, change: dict[str, object], message: str):
    with pytest.raises(InputError) as found:
        ImagePolicy(folder).begin_task(replace(TASK, **change))
    assert message in str(found.value)


@pytest.mark.parametrize("content", [b"", b"no archive", None])
def test_damaged_weights_are_refused(folder: Path, content: bytes | None):
    path = folder / WEIGHTS
    path.unlink() if content is None else path.write_bytes(content)
    with pytest.raises(InputError, match=r"weights.npz: cannot be read.*; train the policy again"):
        open_policy(str(folder))


@pytest.mark.parametrize("kind", ["i1", "f2", "U3"])
def test_weights_that_grow_are_refused(folder: Path, kind: str):
    np.savez(folder / WEIGHTS, allow_pickle=False, x_mean=np.zeros(4, kind))
    with pytest.raises(InputError, match="expected float32 or float64; train the policy again"):
        read_weights(folder / WEIGHTS)
    np.savez_compressed(folder / WEIGHTS, allow_pickle=False, x_mean=np.zeros(1 << 18))
    with pytest.raises(InputError, match="'x_mean.npy' unpacks to [0-9]+ times its size; train"):
        read_weights(folder / WEIGHTS)


def test_a_dataset_without_pictures_is_refused(tmp_path: Path):
    write_dataset(tmp_path, [make_rendered(0, steps=12)])
    assert settings_of(tmp_path, horizon=4, longest=12).limit == 24
    info = tmp_path / "dataset.json"
    info.write_text(info.read_text().replace('"cameras"', '"no_cameras"'))
    with pytest.raises(InputError, match="the dataset has no images; run the task without --images none"):
        settings_of(tmp_path, horizon=4, longest=12)
    assert settings_of(tmp_path, horizon=4, longest=12, with_cameras=False).cameras == {}
