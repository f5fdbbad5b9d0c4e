"""Work area: kept in the cache, and computed again if the cached file is damaged."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nimbus.datagen.propose import work_area
from nimbus.datagen.propose.work_area import find_work_area
from nimbus.datagen.robots.robot import load_robot
from nimbus.datagen.usd.stage import StageInfo, read_stage
from tests.datagen.robots.test_mjcf import ARM
from tests.support.six_joint_robot import robot_file


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


def test_another_scene_or_model_of_the_robot_has_its_own_work_area(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two scenes can have one hash, and the model of a robot can change below an unchanged robot file."""
    calls: list[Path] = []

    def reached(stage: StageInfo, *_: object) -> np.ndarray:
        calls.append(stage.path)
        return np.array([[0.4, 0.0], [0.5, 0.1], [0.8, 0.0]])

    monkeypatch.setenv("NIMBUS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(work_area, "_reached", reached)
    (tmp_path / "arm.xml").write_text(ARM)
    (tmp_path / "mine.yaml").write_text(robot_file("mine", model="arm.xml"))
    stage = read_stage("table", where="test")
    for place in (stage, replace(stage, path=tmp_path / "table.usda")):
        for model in (ARM, ARM.replace("0.42", "0.43")):
            (tmp_path / "arm.xml").write_text(model)
            for _ in range(2):
                find_work_area(place, load_robot(str(tmp_path / "mine.yaml")))
    assert calls == [stage.path] * 2 + [tmp_path / "table.usda"] * 2
