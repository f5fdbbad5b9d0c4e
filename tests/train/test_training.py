"""Recipes with torch, which is in a separate environment; see docs/training.md."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support import ROOT
from tests.support.synthetic import make_rendered, write_dataset

PYTHON = os.environ.get("NIMBUS_TORCH_PYTHON", "")
if not PYTHON:
    pytest.skip("NIMBUS_TORCH_PYTHON names no Python with torch", allow_module_level=True)

EXAMPLES = ROOT / "docs" / "examples"
OPTIONS = ("--width", 16, "--depth", 1, "--size", 2, "--shown", 1, "--dtype", "fp64")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("training")
    write_dataset(folder / "data", [make_rendered(row, steps=16) for row in range(3)])
    return folder / "data"


def begin(name: str | Path, *words: object) -> subprocess.Popen[str]:
    parts = (os.environ.get("PYTHONPATH"), str(ROOT / "exts" / "nimbus.datagen"))
    env = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, parts))}
    line = [PYTHON, str(EXAMPLES / name), *map(str, words)]
    return subprocess.Popen(line, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def run(name: str | Path, *words: object, code: int = 0) -> tuple[str, str]:
    process = begin(name, *words)
    told, errors = process.communicate(timeout=300)
    assert process.returncode == code, errors
    return told, errors


def losses(out: Path) -> list[float]:
    lines = map(json.loads, (out / "metrics.jsonl").read_text().splitlines())
    found = {line["step"]: line["loss"] for line in lines}
    return [found[step] for step in sorted(found)]


@pytest.mark.slow
def test_ranks_that_change_and_die_lose_nothing(data: Path, tmp_path: Path) -> None:
    """One of two ranks is killed, then all are stopped, then one rank continues: the losses equal those of one rank."""
    words = (data, *OPTIONS, "--steps", 40, "--minutes", 0)
    run("train_vla.py", *words, "--out", tmp_path / "alone")
    process = begin("train_ddp.py", *words, "--out", tmp_path / "changed", "--ranks", 2)
    beats = tmp_path / "changed" / "heartbeat-0"
    wait(lambda: beats.exists() and int(beats.read_text() or 0) >= 5)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    os.kill(int(children[1]), signal.SIGKILL)
    reached = int(beats.read_text() or 0)
    wait(lambda: beats.exists() and int(beats.read_text() or 0) > reached + 3)
    process.send_signal(signal.SIGTERM)
    assert "rank 1 ended with -9: all ranks restart" in process.communicate(timeout=300)[1]
    assert process.returncode == 128 + signal.SIGTERM
    run("train_ddp.py", *words, "--out", tmp_path / "changed", "--ranks", 1)
    assert losses(tmp_path / "changed") == pytest.approx(losses(tmp_path / "alone"), abs=1e-6)
    assert len(losses(tmp_path / "alone")) == 40 and not list(tmp_path.glob("*/*.pkl"))


def wait(is_done: Callable[[], bool]) -> None:
    end = time.monotonic() + 300
    while not is_done():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.slow
def test_packed_sequences_have_the_padded_losses(data: Path, tmp_path: Path) -> None:
    for pack in ("on", "off"):
        run("train_vla.py", data, *OPTIONS, "--steps", 12, "--pack", pack, "--out", tmp_path / pack)
    packed = losses(tmp_path / "on")
    assert packed == pytest.approx(losses(tmp_path / "off"), abs=1e-5)
    assert packed[-1] < packed[0]
    answer = json.loads(run(ROOT / "tests/support/torch_answer.py", tmp_path / "on/policy")[0])
    assert answer == {"limit": 32, "shape": [16, 8], "is_same": True, "is_finite": True}


@pytest.mark.slow
def test_bad_input_is_one_line(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "out"
    write_dataset(tmp_path / "other", [make_rendered(row, steps=16) for row in range(1, 4)])
    run("train_vla.py", data, *OPTIONS, "--steps", 1, "--out", out)
    (tmp_path / "damaged.safetensors").write_bytes(b"no weights")
    again = r"give the original value, or another --out"
    cases = {
        (tmp_path / "none", *OPTIONS): r".*none: there is no dataset here; give the folder of a run",
        (
            tmp_path / "other",
            *OPTIONS,
            "--steps",
            1,
        ): rf".*: the checkpoint was written with another dataset: .*; {again}",
        (
            data,
            *OPTIONS,
            "--steps",
            1,
            "--width",
            32,
        ): rf".*: the checkpoint was written with another network: .*; {again}",
        (data, *OPTIONS, "--steps", 2): rf".*: the checkpoint was written with another --steps: 1, not 2; {again}",
        (data, "--size", 0): r"--size: 0; write at least 1",
        (data, "--width", 12): r"--width: 12; write a multiple of 8",
    }
    weights = {
        tmp_path / "damaged.safetensors": r".*cannot be read: .*; give a complete .safetensors file.*",
        out / "policy/weights.safetensors": r".*belong to another network: .*; give weights.*",
    }
    for words, message in cases.items():
        assert re.fullmatch(message + "\n", run("train_vla.py", *words, "--out", out, code=2)[1])
    linked = tmp_path / "linked"
    linked.mkdir()
    (linked / "metrics.jsonl").symlink_to(out / "metrics.jsonl")
    assert "linked: the folder contains links, " in run("train_vla.py", data, *OPTIONS, "--out", linked, code=2)[1]
    policy = tmp_path / "linked policy"
    policy.mkdir()
    (policy / "policy").symlink_to("../private")
    (tmp_path / "private").mkdir()
    (tmp_path / "lightning.py").write_text("from torch.nn import Module as LightningModule\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    errors = run("lightning_vla.py", data, "--steps", 1, "--out", policy, code=2)[1]
    assert "linked policy: the folder contains links, " in errors and not list((tmp_path / "private").iterdir())
    for path, message in weights.items():
        errors = run("train_vla.py", data, "--weights", path, "--out", tmp_path / "fresh", code=2)[1]
        assert re.fullmatch(message + "\n", errors)
    for ranks in (0, 5):
        errors = run("train_ddp.py", data, "--ranks", ranks, "--out", out, code=2)[1]
        assert errors == f"--ranks: {ranks} ranks; write 1 to 4, the number of --streams\n"
    assert run("train_ddp.py", tmp_path, "--ranks", 2, "--out", out, code=2)[1].count("\n") == 1
