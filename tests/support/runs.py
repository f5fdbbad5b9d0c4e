"""Real runs of a tiny task: a can, two cameras of 64 x 48; two seconds an episode once the libraries are loaded."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from nimbus.datagen.store.verify import dataset_hashes, verify
from nimbus.runner.cli import main
from tests.support import ROOT

TINY = Path(__file__).parent / "tiny.yaml"
RUNNER = ROOT / "runner" / "runner.py"


def run(*words: str, out: Path, task: Path | str = TINY) -> int:
    """``nimbus run --serial`` in this process; returns the exit code."""
    return main(["run", "--serial", "--task", str(task), "--out", str(out), *words])


def start(*words: str, cwd: Path | None = None) -> subprocess.Popen[str]:
    """A command in a process of its own."""
    env = os.environ | {"PYTHONUNBUFFERED": "1"}
    line = [sys.executable, str(RUNNER), *words]
    return subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env, cwd=cwd)


def start_run(*words: str, out: Path) -> subprocess.Popen[str]:
    """``nimbus run --serial`` in a process of its own, up to its first stored episode."""
    process = start("run", "--serial", "--task", str(TINY), "--out", str(out), *words)
    assert process.stdout
    for line in process.stdout:
        if ": stored, " in line:
            return process
    raise AssertionError(f"nothing was stored: {process.communicate()}")


def sound(folder: Path) -> dict[str, str]:
    """The hashes of a dataset that passes verification."""
    found = verify(folder)
    assert found.problems == ()
    return dataset_hashes(folder)
