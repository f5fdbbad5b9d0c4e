"""Examination of navigation tasks: errors are found before a run, with the field to change."""

from __future__ import annotations

from pathlib import Path

import pytest

from nimbus.datagen.doctor.diagnosis import Diagnosis
from nimbus.datagen.doctor.navigation import examine_navigation
from nimbus.datagen.tasks.task import NavigationTask, parse_any_task
from tests.support.foreign_scenes import room_things, write_glb
from tests.support.splat_room import outward_box

TEXT = """
scene: {{homes: 1, rooms: [4, 4], seed: 15}}
body: {{radius: {radius} cm}}
navigate: {{to: {to}, kinds: {kinds}, length: {length}}}
cameras: {{front: {{position: [{ahead}, 0, 1.2]}}}}
"""


def examined(**changes: object) -> Diagnosis:
    values = {"radius": 25, "to": "object", "kinds": "all", "length": "[1 m, 25 m]", "ahead": 0.1}
    task = parse_any_task(TEXT.format(**values | changes), name="examined")
    assert isinstance(task, NavigationTask)
    return examine_navigation(task, probe="length" in changes or not changes)


def test_sound_navigation_tasks_have_no_findings():
    found = examined()
    assert found.findings == ()
    (line,) = found.scenes
    assert "home_15: 4 rooms" in line and "5 of 5 goals have a path" in line


@pytest.mark.parametrize(
    ("changes", "check", "message", "certain"),
    [
        ({"radius": 52}, "body", "no door of home_15 is wider than", False),
        ({"to": "object", "kinds": "[unicorn]"}, "scenes", "scene home_15 has no 'unicorn'", True),
        ({"ahead": 0.4}, "cameras", "40 cm from the axis", False),
        ({"length": "[300 m, 400 m]"}, "paths", "5 of 5 goals in home_15 have no path", True),
    ],
)
def test_hopeless_navigation_tasks_are_found(changes: dict[str, object], check: str, message: str, certain: bool):
    found = [one for one in examined(**changes).findings if message in one.what]
    assert [one.check for one in found] == [check]
    assert found[0].is_certain == certain and found[0].instead


def test_roofs_are_no_disconnected_floor(tmp_path: Path):
    roof = outward_box((-0.1, -0.1, 2.6), (5.1, 4.1, 2.8))
    write_glb(tmp_path / "house.glb", room_things() | {"roof": roof})
    text = "scene: {meshes: house.glb}\nnavigate: {to: point}\n"
    task = parse_any_task(text, name="house", folder=tmp_path)
    assert isinstance(task, NavigationTask)
    assert examine_navigation(task, probe=False).findings == ()
