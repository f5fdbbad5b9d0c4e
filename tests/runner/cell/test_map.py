"""The map in the package's docstring names every file, and no other."""

from __future__ import annotations

import re
from pathlib import Path

import nimbus.runner.cell as cell


def test_the_map_of_the_cell_names_every_file_once() -> None:
    assert cell.__doc__ and cell.__file__
    named = re.findall(r"^ *(\w+)\.py ", cell.__doc__, re.MULTILINE)
    beside = re.findall(r"(\w+)\.py", cell.__doc__)
    there = {path.stem for path in Path(cell.__file__).parent.glob("*.py")} - {"__init__"}
    assert set(beside) == there
    assert len(named) == len(set(named))
