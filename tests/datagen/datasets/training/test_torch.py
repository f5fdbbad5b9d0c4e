"""PyTorch's loaders and a training, in an environment of its own: see docs/training.md."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from nimbus.datagen.datasets.export.export import export
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
    export(folder / "data", folder / "lerobot")
    return folder


def run(script: Path, *words: object) -> str:
    env = os.environ | {"PYTHONPATH": str(ROOT / "exts" / "nimbus.datagen")}
    done = subprocess.run([PYTHON, str(script), *map(str, words)], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_loaders_with_and_without_workers_give_every_sample_of_the_rank_once(root: Path) -> None:
    found = json.loads(run(ROOT / "tests/support/torch_loaders.py", root / "data"))
    assert sorted(found["workers 2"]) == sorted(found["workers 0"]) and len(set(found["workers 0"])) == 150
    assert found["shape"] == [4, 48, 64, 3]
    assert sorted(found["stateful"]) == list(range(300)), "torchdata's loader goes on where it was stopped"


def test_a_training_learns_and_goes_on_exactly_where_it_stopped_even_on_an_export(root: Path, tmp_path: Path) -> None:
    run(SCRIPT, root / "data", "--out", tmp_path / "whole", "--steps", 60)
    run(SCRIPT, root / "data", "--out", tmp_path / "parts", "--steps", 25)
    run(SCRIPT, root / "lerobot", "--out", tmp_path / "parts", "--steps", 60)
    whole, parts = (json.loads((tmp_path / name / "policy.json").read_text()) for name in ("whole", "parts"))
    assert whole["losses"] == pytest.approx(parts["losses"], abs=1e-5) and len(whole["losses"]) == 60
    assert sum(whole["losses"][-10:]) < 0.8 * sum(whole["losses"][:10])
