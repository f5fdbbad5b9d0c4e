"""The maps in the packages' docstrings name every file, and no other."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType

import pytest

import nimbus.runner as runner
import nimbus.runner.cell as cell


@pytest.mark.parametrize("package", [runner, cell], ids=["runner", "cell"])
def test_the_map_names_every_file(package: ModuleType) -> None:
    assert package.__doc__ and package.__file__
    folder = Path(package.__file__).parent
    assert set(re.findall(r"(\w+)\.py", package.__doc__)) == {path.stem for path in folder.glob("*.py")} - {"__init__"}
    rooms = {path.parent.name for path in folder.glob("*/__init__.py")}
    assert set(re.findall(r"\b(\w+)/", package.__doc__)) == rooms


@pytest.mark.parametrize("package", [runner, cell], ids=["runner", "cell"])
def test_no_file_has_two_lines_of_its_own(package: ModuleType) -> None:
    named = re.findall(r"^ *(\w+)\.py ", package.__doc__ or "", re.MULTILINE)
    assert len(named) == len(set(named))
