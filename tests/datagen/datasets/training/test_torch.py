"""PyTorch's loaders and a training run, in a separate environment; see docs/training.md."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from nimbus.datagen.policies.open_policy import open_policy
from tests.support import ROOT
from tests.support.synthetic import make_rendered, write_dataset

PYTHON = os.environ.get("NIMBUS_TORCH_PYTHON", "")
if not PYTHON:
    pytest.skip("NIMBUS_TORCH_PYTHON names no Python with torch", allow_module_level=True)

SCRIPT = ROOT / "docs" / "examples" / "train_act.py"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("torch")
    write_dataset(folder / "data", [make_rendered(row, steps=60) for row in range(5)], images="video")
    return folder


def started(script: Path, *words: object) -> subprocess.CompletedProcess[str]:
    env = os.environ | {"PYTHONPATH": str(ROOT / "exts" / "nimbus.datagen")}
    return subprocess.run([PYTHON, str(script), *map(str, words)], env=env, capture_output=True, text=True, check=False)


def run(script: Path, *words: object) -> str:
    done = started(script, *words)
    assert done.returncode == 0, done.stderr
    return done.stdout


def fail(script: Path, *words: object) -> tuple[int, str]:
    done = started(script, *words)
    return done.returncode, done.stderr


def test_loaders_with_and_without_workers_give_every_sample_of_the_rank_once(root: Path) -> None:
    found = json.loads(run(ROOT / "tests/support/torch_loaders.py", root / "data"))
    assert sorted(found["workers 2"]) == sorted(found["workers 0"]) and len(set(found["workers 0"])) == 150
    assert found["shape"] == [4, 48, 64, 3]
    assert sorted(found["stateful"]) == list(range(300)), "torchdata's loader goes on where it was stopped"


def test_the_image_recipe_writes_a_policy_that_answers(root: Path, tmp_path: Path) -> None:
    """Torch and NumPy give equal answers; a folder without a dataset is refused in one line."""
    told = run(SCRIPT, root / "data", "--out", tmp_path / "policy", "--steps", 40, "--batch", 8)
    losses = [float(loss) for loss in re.findall(r"loss ([\d.]+),", told)]
    assert losses[-1] < 0.8 * losses[0]
    assert open_policy(str(tmp_path / "policy")).limit == 120
    difference = run(ROOT / "tests/support/torch_actor.py", tmp_path / "actor", SCRIPT.parent)
    assert float(difference) < 1e-5
    code, errors = fail(SCRIPT, tmp_path, "--out", tmp_path / "none")
    assert (code, errors) == (2, f"{tmp_path}: there is no dataset here; give the folder of a run\n")
