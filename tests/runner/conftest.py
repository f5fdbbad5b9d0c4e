from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support.runs import TINY, run
from tests.support.shared import make_once


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a dataset of two episodes in two variants, for reading only."""

    def make(folder: Path) -> None:
        assert run("--episodes", "2", "--variants", "2", out=folder) == 0

    return make_once(tmp_path_factory, "tiny", make)


@pytest.fixture
def copy(tiny: Path, tmp_path: Path) -> Path:
    """Return a copy of the same dataset, which may be changed."""
    return shutil.copytree(tiny, tmp_path / "copy")


@pytest.fixture
def task_text() -> str:
    return TINY.read_text()
