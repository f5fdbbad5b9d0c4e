"""Real runs of a tiny task: a can, two cameras of 64 x 48; two seconds per episode once the libraries are loaded."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path

import pytest

from nimbus.datagen.store.verify import dataset_hashes, verify
from nimbus.runner.cli import main
from tests.support import ROOT
from tests.support.shared import make_once

TINY = Path(__file__).parent / "tiny.yaml"
RUNNER = ROOT / "runner" / "runner.py"


def run(*words: str, out: Path, task: Path | str = TINY) -> int:
    """Run ``nimbus run --serial`` in this process; return the exit code."""
    return main(["run", "--serial", "--task", str(task), "--out", str(out), *words])


def tiny_dataset(factory: pytest.TempPathFactory) -> Path:
    """Return a dataset of two episodes in two variants, for reading only; it is made once in a run of the tests.

    It is made in a process of its own, which loads the scene; this one may have loaded it for another test.
    """

    def make(folder: Path) -> None:
        words = ("--serial", "--task", str(TINY), "--episodes", "2", "--variants", "2", "--out", str(folder))
        process = start(*words)
        _, error = process.communicate()
        assert process.returncode == 0, error

    return make_once(factory, "tiny", make)


def start(*words: str, cwd: Path | None = None) -> subprocess.Popen[str]:
    """Start a command in a separate process."""
    env = os.environ | {"PYTHONUNBUFFERED": "1"}
    line = [sys.executable, str(RUNNER), *words]
    return subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env, cwd=cwd)


class _OutputWatch(io.StringIO):
    """Standard output that calls a function at the first line of a stored episode."""

    def __init__(self, act: Callable[[], object]) -> None:
        super().__init__()
        self._act = act

    def write(self, text: str) -> int:
        """Keep the text; call the function after the first stored episode."""
        is_first = ": stored, " in text and ": stored, " not in self.getvalue()
        written = super().write(text)
        if is_first:
            self._act()
        return written


def run_and(act: Callable[[], object], *words: str, out: Path, task: Path | str = TINY) -> int:
    """Run ``nimbus run --serial`` in this process, and call a function once its first episode is stored."""
    with redirect_stdout(_OutputWatch(act)) as shown:
        code = run(*words, out=out, task=task)
    assert ": stored, " in shown.getvalue()
    return code


def sound(folder: Path) -> dict[str, str]:
    """Return the hashes of a dataset, which must pass verification."""
    found = verify(folder)
    assert found.problems == ()
    return dataset_hashes(folder)
