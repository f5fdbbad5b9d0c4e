"""Work area: kept in the cache, and computed again if the cached file is damaged."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nimbus.datagen.propose import work_area
from nimbus.datagen.propose.work_area import find_work_area
from nimbus.datagen.robots.robot import load_robot
from nimbus.datagen.usd.stage import read_stage


@pytest.mark.parametrize("damage", ["", "[[0.5, 0.1], [0.5", "[0.5, 0.1]", '{"points": []}', "[[0.5, NaN]]", "\0\0"])
def test_damaged_work_areas_are_found_again(damage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A power failure can damage the cached files."""
    monkeypatch.setenv("NIMBUS_CACHE", str(tmp_path))
    calls: list[str] = []

    def reached(*values: object) -> np.ndarray:
        calls.append(str(values[2]))
        return np.array([[0.4, 0.0], [0.5, 0.1], [0.8, 0.0]])

    monkeypatch.setattr(work_area, "_reached", reached)
    stage, robot = read_stage("table", where="test"), load_robot("panda")
    first = find_work_area(stage, robot)
    (kept,) = (tmp_path / "reach").iterdir()
    whole = kept.read_text()
    kept.write_text(damage)
    np.testing.assert_array_equal(find_work_area(stage, robot).points, first.points)
    assert kept.read_text() == whole and calls == ["table", "table"]
    find_work_area(stage, robot)
    assert len(calls) == 2
