"""The real robomimic, in a separate environment, reads Nimbus's exports; see docs/export.md."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from tests.support import ROOT
from tests.support.synthetic import make_rendered, write_dataset

PYTHON = os.environ.get("NIMBUS_ROBOMIMIC_PYTHON", "")
if not PYTHON:
    pytest.skip("NIMBUS_ROBOMIMIC_PYTHON names no Python with robomimic", allow_module_level=True)

from nimbus.datagen.datasets.export.export import export  # noqa: E402

STEPS = (12, 9, 10, 11, 8, 7)


@pytest.mark.parametrize("split", ["train", "valid", "success"])
def test_its_sequences_are_those_that_were_stored(tmp_path: Path, split: str) -> None:
    items = [make_rendered(row, steps=steps) for row, steps in enumerate(STEPS)]
    write_dataset(tmp_path / "data", items)
    export(tmp_path / "data", tmp_path / "out", to="robomimic")
    script = ROOT / "tests/support/robomimic_reader.py"
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    line = [PYTHON, str(script), str(tmp_path / "out" / "dataset.hdf5"), str(tmp_path / "read.npz"), split]
    done = subprocess.run(line, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = np.load(tmp_path / "read.npz")
    rows = [int(name.removeprefix("demo_")) for name in found["demos"]]
    assert len(rows) == {"train": 5, "valid": 1, "success": 6}[split]
    paths = sorted((tmp_path / "data" / "episodes").iterdir())
    start = 0
    for row in rows:
        with h5py.File(paths[row]) as file, h5py.File(tmp_path / "out" / "dataset.hdf5") as written:
            images, qpos = (np.asarray(file[name]) for name in ("observations/images/front", "observations/qpos"))
            actions: Any = np.asarray(written[f"data/demo_{row}/actions"])
        count = STEPS[row]
        here = slice(start, start + count)
        window = np.arange(count)[:, None] + np.arange(3)
        inside = np.minimum(window, count - 1)
        assert np.array_equal(found["obs/front_image"][here], images[inside])
        assert np.array_equal(found["next_obs/front_image"][here], images[np.minimum(inside + 1, count - 1)])
        assert np.allclose(found["obs/joint_pos"][here], qpos[inside], atol=1e-6)
        assert np.array_equal(found["actions"][here], actions[inside]) and np.abs(actions).max() <= 1
        assert np.array_equal(found["pad_mask"][here][..., 0], window < count)
        start += count
    assert len(found["actions"]) == start and found["batch"].shape == (min(4, start), 3, 48, 64, 3)
