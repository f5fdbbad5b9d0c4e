"""Camera ranges with which nothing is in view are reported, with a range that works."""

from __future__ import annotations

import pytest

from nimbus.datagen.doctor.cameras import check_randomized_cameras
from nimbus.datagen.doctor.case import Case
from nimbus.datagen.errors import Diagnostic
from nimbus.datagen.tasks.task import parse_task
from tests.support.one_can import TEXT, assets


def found(ranges: str) -> list[Diagnostic]:
    return list(check_randomized_cameras(Case(parse_task(f"{TEXT}randomize: {ranges}\n"), assets())))


@pytest.mark.parametrize("ranges", ["none", "large", "{camera: {position: 5 cm, rotation: 5 deg}}"])
def test_ranges_that_keep_objects_in_view_pass(ranges: str) -> None:
    assert found(ranges) == []


WIDE = [
    ({"position": "2 m", "rotation": "180 deg", "fov": "57 deg"}, "rotation"),
    ({"rotation": "180 deg"}, "rotation"),
    ({"position": "10 m", "rotation": "0"}, "position"),
    ({"position": "10 m", "rotation": "180 deg"}, "rotation"),
]


def said(ranges: dict[str, str]) -> str:
    return "{camera: {" + ", ".join(f"{name}: {value}" for name, value in ranges.items()) + "}}"


@pytest.mark.parametrize(("ranges", "field"), WIDE, ids=[said(ranges) for ranges, _ in WIDE])
def test_ranges_that_lose_them_are_told_with_ranges_that_do_not(ranges: dict[str, str], field: str) -> None:
    (told,) = found(said(ranges))
    assert told.field == f"randomize.camera.{field}" and "drawn poses 'front' does not see" in told.what
    better = dict(part.split(": ") for part in told.instead.removeprefix("write ").split(", "))
    assert found(said(ranges | better)) == []
