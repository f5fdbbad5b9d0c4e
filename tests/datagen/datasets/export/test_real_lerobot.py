"""The real lerobot, in a separate environment, reads Nimbus's exports; see docs/export.md."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import h5py
import numpy as np
import pytest

from nimbus.runner.cli import main
from tests.support import ROOT
from tests.support.reading import psnr
from tests.support.synthetic import make_observations, make_rendered, write_dataset

PYTHON = os.environ.get("NIMBUS_LEROBOT_PYTHON", "")
if not PYTHON:
    pytest.skip("NIMBUS_LEROBOT_PYTHON names no Python with lerobot", allow_module_level=True)

from nimbus.datagen.datasets.export.export import export  # noqa: E402
from nimbus.datagen.datasets.export.shards import Options  # noqa: E402
from nimbus.datagen.datasets.training.reader import Reader  # noqa: E402
from tests.support.runs import TINY, run  # noqa: E402

STEPS = (20, 13, 27)


@pytest.mark.parametrize(
    ("stored_as", "options"), [("both", Options()), ("both", Options(episode_size=2)), ("lossless", Options())]
)
def test_frames_states_windows_and_wordings_are_those_that_were_stored(
    tmp_path: Path, stored_as: str, options: Options
):
    items = [make_rendered(row, steps=steps) for row, steps in enumerate(STEPS)]
    write_dataset(tmp_path / "data", items, images=stored_as)
    export(tmp_path / "data", tmp_path / "out", options=options)
    script = ROOT / "tests/support/lerobot_reader.py"
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | {"HF_HUB_OFFLINE": "1"}
    line = [PYTHON, str(script), str(tmp_path / "out"), str(tmp_path / "read.npz")]
    done = subprocess.run(line, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = np.load(tmp_path / "read.npz")
    assert len(found["index"]) == sum(STEPS)
    start = 0
    for position, path in enumerate(sorted((tmp_path / "data" / "episodes").glob("*.hdf5"))):
        rows = slice(start, start + STEPS[position])
        with h5py.File(path) as file:
            state, action = (np.asarray(file[name]).astype(np.float32) for name in ("observations/qpos", "action"))
            images = {name: np.asarray(file[f"observations/images/{name}"]) for name in ("front", "wrist")}
            told = bytes(np.asarray(file["instruction"])[()]).decode()
        assert set(found["episode_index"][rows]) == {position}
        assert np.array_equal(found["observation.state"][rows], state)
        assert np.array_equal(found["action"][rows][:, 1], action)
        assert np.array_equal(found["action"][rows][1:, 0], action[:-1]), "the window looks one step back"
        padded = np.zeros((len(state), 3), bool)
        padded[0, 0] = padded[-1, 2] = True
        assert np.array_equal(found["action_is_pad"][rows], padded)
        assert set(found["tasks"][rows]) == {told}
        for camera, wanted in images.items():
            read = np.moveaxis(found[f"observation.images.{camera}"][rows], 1, -1)
            read = np.rint(read * 255).astype(np.uint8)
            assert psnr(read, wanted) > 27
            assert psnr(read, wanted) > psnr(read[5:], wanted[:-5]) + 3
        start += STEPS[position]
    assert found["batch"].shape == (4, 9)
    assert np.allclose(found["mean"], found["action"][:, 1].mean(0), atol=1e-5)


def test_our_reader_reads_what_lerobots_writer_wrote(tmp_path: Path):
    pictures = []
    for row in range(3):
        (tmp_path / "source").mkdir(exist_ok=True)
        made = make_observations(STEPS[row], seed=row, width=96, height=64)
        pictures.append(np.concatenate([item.cameras["front"].rgb for item in made]))
        np.save(tmp_path / "source" / f"{row}.npy", pictures[row])
    script = ROOT / "benchmarks" / "lerobot_writer.py"
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | {"HF_HUB_OFFLINE": "1"}
    line = [PYTHON, str(script), str(tmp_path / "source"), str(tmp_path / "out")]
    done = subprocess.run(line, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    with Reader(tmp_path / "out", windows={"action": (0, 1)}) as reader:
        assert reader.frames.lengths.tolist() == list(STEPS) and reader.frames.fps == 15
        for episode, wanted in enumerate(pictures):
            samples = reader.samples(episode, list(range(STEPS[episode])))
            found = np.stack([sample["observation.images.front"] for sample in samples])
            assert psnr(found, wanted) > 27 and psnr(found, wanted) > psnr(found[5:], wanted[:-5]) + 3
            assert samples[-1]["action_is_pad"].tolist() == [False, True] and samples[0]["task"] == "sort"


def lerobot(program: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Run one of LeRobot's programs, without its hub."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | {"HF_HUB_OFFLINE": "1"}
    done = subprocess.run([Path(PYTHON).with_name(program), *words], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return done


def train_words(data: Path, out: Path, *, steps: int) -> list[str]:
    words = [f"--dataset.root={data}", f"--output_dir={out}", "--policy.device=cpu", f"--steps={steps}"]
    return [*words, f"--save_freq={steps}", "--batch_size=2", "--num_workers=0", "--dataset.video_backend=pyav"]


@pytest.mark.parametrize(
    ("recipe", "small"), [("act", []), ("diffusion", ["--policy.down_dims=[32,64,128]", "--policy.crop_shape=[44,60]"])]
)
def test_recipe_trains_on_an_export(tmp_path: Path, recipe: str, small: list[str]):
    """Twenty optimizer steps with lerobot's own training script; backbones are not downloaded."""
    write_dataset(tmp_path / "data", [make_rendered(row, steps=40) for row in range(2)], images="video")
    export(tmp_path / "data", tmp_path / "out")
    words = [*(ROOT / f"docs/examples/peers/{recipe}.args").read_text().split(), *small]
    words += [
        *train_words(tmp_path / "out", tmp_path / "trained", steps=20),
        "--policy.pretrained_backbone_weights=null",
    ]
    lerobot("lerobot-train", *words)
    assert (tmp_path / "trained/checkpoints/000020/pretrained_model/model.safetensors").is_file()


def test_smolvla_trains_on_an_export(tmp_path: Path):
    """Twenty optimizer steps of SmolVLA with random weights, a small vision-language model and our own tokenizer."""
    write_dataset(tmp_path / "data", [make_rendered(row, steps=40) for row in range(2)], images="video")
    export(tmp_path / "data", tmp_path / "out")
    subprocess.run([PYTHON, str(ROOT / "tests/support/tiny_smolvlm.py"), str(tmp_path / "vlm")], check=True)
    path, *words = (ROOT / "docs/examples/peers/smolvla.args").read_text().split()
    assert path.startswith("--policy.path=")
    words += ["--policy.type=smolvla", f"--policy.vlm_model_name={tmp_path / 'vlm'}", "--policy.load_vlm_weights=false"]
    words += ["--policy.num_vlm_layers=2", *train_words(tmp_path / "out", tmp_path / "trained", steps=20)]
    lerobot("lerobot-train", *words)
    assert (tmp_path / "trained/checkpoints/000020/pretrained_model/model.safetensors").is_file()


@pytest.mark.parametrize("view", [(), ("--actions", "tool_pose", "--rotation", "quaternion", "--state", "commanded")])
def test_lerobot_evaluates_what_it_trained(tmp_path: Path, view: tuple[str, ...]):
    """Dataset, export, ACT and ``lerobot-eval`` through integrations/lerobot_env_nimbus."""
    if subprocess.run([PYTHON, "-c", "import lerobot_env_nimbus"], capture_output=True).returncode:
        pytest.skip("the Python with lerobot has no lerobot_env_nimbus")
    assert run("--episodes", "1", out=tmp_path / "data", task=TINY) == 0
    assert main(["export", str(tmp_path / "data"), "--out", str(tmp_path / "out"), *view]) == 0
    words = (ROOT / "docs/examples/peers/act.args").read_text().split()
    words += ["--policy.pretrained_backbone_weights=null", "--policy.dim_model=64", "--policy.dim_feedforward=64"]
    lerobot("lerobot-train", *words, *train_words(tmp_path / "out", tmp_path / "act", steps=2))
    model = tmp_path / "act/checkpoints/last/pretrained_model"
    words = [f"--policy.path={model}", "--policy.device=cpu", "--env.type=nimbus", f"--env.task={TINY}"]
    words += [f"--env.dataset={tmp_path / 'out'}", "--env.episode_length=20", "--eval.n_episodes=2"]
    lerobot("lerobot-eval", *words, "--eval.batch_size=1", "--seed=0", f"--output_dir={tmp_path / 'eval'}")
    found = json.loads((tmp_path / "eval/eval_info.json").read_text())
    assert found["overall"]["n_episodes"] == 2
    assert len(list((tmp_path / "eval").rglob("*.mp4"))) == 2
