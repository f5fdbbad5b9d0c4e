"""One stage of each kind is written, opened in Isaac Sim, and compared with the written prims."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path

import pytest

from nimbus.runner.isaac.find import find_instances
from nimbus.runner.isaac.trial_stages import TrialStage, check_stage, try_stages
from tests.support.isaac_installation import RTX, install

STAGE = TrialStage(name="room", path="room.usda", meshes=9, painted=9, colliders=4, bodies=2)


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({}, ""),
        ({"painted": 8}, "8 of 9 painted"),
        ({"colliders": 0}, "0 of 4 colliders"),
        ({"steady": False}, "unsteady"),
    ],
)
def test_stage_passes_with_all_of_its_prims(change: dict[str, object], found: str):
    check = check_stage(STAGE, asdict(STAGE) | {"steady": True} | change, "not opened")
    assert check.passed == (not change) and found in check.found


def test_stage_that_was_not_opened_fails():
    check = check_stage(STAGE, None, "not opened: see opened.log")
    assert not check.passed and check.found == "not opened: see opened.log"


@pytest.mark.slow
@pytest.mark.long
def test_stages_of_each_kind_open(tmp_path: Path):
    instances = find_instances(environ=install(tmp_path / "isaac"), gpus=RTX)
    checks = try_stages(tmp_path / "stages", replace(instances, folder=str(tmp_path / "roots")))
    assert [check.name for check in checks] == [
        "opens: imported object",
        "opens: room",
        "opens: home",
        "opens: scene of triangles",
    ]
    assert all(check.passed for check in checks), checks
