from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support.runs import TINY, tiny_dataset


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a dataset of two episodes in two variants, for reading only."""
    return tiny_dataset(tmp_path_factory)


@pytest.fixture
def copy(tiny: Path, tmp_path: Path) -> Path:
    """Return a copy of the same dataset, which may be changed."""
    return shutil.copytree(tiny, tmp_path / "copy")


@pytest.fixture
def task_text() -> str:
    return TINY.read_text()
