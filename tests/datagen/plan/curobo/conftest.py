"""Interpreters with cuRobo, with an old version of it, and without it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from nimbus.datagen.plan.curobo import process
from tests.support import ROOT

CONTRACT = ROOT / "tools" / "contract"

MakePython = Callable[[str], Path]


@pytest.fixture
def make_python(tmp_path: Path) -> MakePython:
    """Return a function that writes an executable as the interpreter."""

    def make(script: str) -> Path:
        path = tmp_path / "python"
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return path

    return make


@pytest.fixture
def curobo(make_python: MakePython, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Return the stand-in in a separate process, found in the same way as cuRobo's interpreter."""
    python = make_python(f'exec "{sys.executable}" "{CONTRACT / "curobo_python.py"}" "$@"')
    monkeypatch.setenv(process.PYTHON, str(python))
    monkeypatch.setattr(process, "_running", {})
    yield
    if running := process._running.get(os.getpid()):
        running.close()
