"""Values that no scene can have are refused with their position."""

from __future__ import annotations

import pytest

from nimbus.datagen.tasks.task import load_task, parse_task
from tests.support.refusals import refusal

CAMERAS = "cameras: {front: {position: [1.5, 0.0, 0.9], look_at: [0.4, 0.0, 0.1], vertical_fov: 45 deg}}"
TEXT = load_task("sort_trash").text.replace("cameras: front+wrist", CAMERAS)

WRONG = [
    ("intensity: [60 %, 120 %]", "intensity: [-1, 120 %]", "randomize.light.intensity[0]: expected at least 0"),
    ("temperature: [3200 K,", "temperature: [0 K,", "randomize.light.temperature[0]: expected at least 1667"),
    ("mass: {factor: [80 %,", "mass: {factor: [0 %,", "randomize.mass.factor[0]: expected at least 1 %, found '0 %'"),
    ("friction: {factor: [85 %,", "friction: {factor: [0,", "randomize.friction.factor[0]: expected at least 0.01"),
    ("camera: {position: 5 cm", "camera: {position: 1e300", "randomize.camera.position: expected at most 10"),
    ("{tint: 25 %}", "{table: [woood]}", "unknown texture 'woood'; did you mean 'wood'?"),
    ("front: {position: [1.5,", "front: {position: [1e308,", "cameras.front.position[0]: expected at most 100"),
    ("vertical_fov: 45 deg", "vertical_fov: 1e-9", "cameras.front.vertical_fov: expected at least 0.01"),
    ("vertical_fov: 45 deg", "vertical_fov: 179 deg", "vertical_fov: expected less than 171.8 deg, found '179 deg'"),
    ("vertical_fov: 45 deg", "vertical_fov: 0.1 deg", "vertical_fov: expected at least 0.573 deg, found '0.1 deg'"),
    ("size: [0.4, 0.5]", "size: [1e308, 0.5]", "regions.start.size[0]: expected at most 100"),
]


@pytest.mark.parametrize(("good", "bad", "line"), WRONG, ids=[bad for _, bad, _ in WRONG])
def test_an_impossible_value_is_one_line_with_its_place(good: str, bad: str, line: str) -> None:
    assert TEXT.count(good) == 1
    told = refusal(parse_task, TEXT.replace(good, bad))
    assert line in told and told.startswith("task.yaml:")
