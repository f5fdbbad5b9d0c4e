"""The real lerobot reads converted datasets; opt-in: ``NIMBUS_LEROBOT_PYTHON`` names a Python with lerobot."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

from nimbus.datagen.datasets.convert.convert import convert
from tests.support import ROOT
from tests.support.foreign import CAMERAS, TEXTS, numbers, write_v21
from tests.support.reading import decode, psnr

PYTHON = os.environ.get("NIMBUS_LEROBOT_PYTHON", "")
READER = ROOT / "tests" / "support" / "lerobot_reader.py"
LENGTHS = (20, 13, 27, 16)


@pytest.mark.skipif(not PYTHON, reason="NIMBUS_LEROBOT_PYTHON names no Python with lerobot")
def test_lerobot_reads_every_frame_of_a_converted_set(tmp_path: Path):
    write_v21(tmp_path / "v21", LENGTHS)
    convert(tmp_path / "v21", tmp_path / "v3")
    words = [PYTHON, str(READER), str(tmp_path / "v3"), str(tmp_path / "read.npz")]
    done = subprocess.run(words, capture_output=True, text=True, env=os.environ | {"HF_HUB_OFFLINE": "1"})
    assert done.returncode == 0, done.stderr[-2000:]
    with np.load(tmp_path / "read.npz") as found:
        start = 0
        for episode, length in enumerate(LENGTHS):
            rows = slice(start, start + length)
            assert np.array_equal(found["observation.state"][rows], numbers(episode, length)["observation.state"])
            assert set(found["tasks"][rows]) == {TEXTS[episode % 2]}
            for camera in CAMERAS:
                path = tmp_path / f"v21/videos/chunk-{episode // 3:03d}/{camera}/episode_{episode:06d}.mp4"
                wanted = decode(path)[0]
                seen = (found[camera][rows].transpose(0, 2, 3, 1) * 255).round().astype(np.uint8)
                assert min(psnr(one, other) for one, other in zip(seen, wanted, strict=True)) > 35
            start += length
