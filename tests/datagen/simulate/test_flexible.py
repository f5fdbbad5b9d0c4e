"""Tasks with cloth or cables: mistakes get one line."""

from __future__ import annotations

import pytest

from nimbus.datagen.errors import InputError
from nimbus.datagen.load.scene_loader import load_assets
from nimbus.datagen.objects.libraries import open_library
from nimbus.datagen.tasks.task import parse_task

TOWEL = ("towel: {library: cloths, region: start, yaw: any}", "fold: towel")
CABLE = (
    "cable: {library: cables, kinds: [red_cable], region: start, yaw: any}",
    "route: {object: cable, through: [clip]}",
)


@pytest.mark.parametrize(
    ("parts", "old", "new", "message"),
    [
        (TOWEL, "- fold: towel", "- fold: block", "a red cube is not cloth"),
        (TOWEL, "rate: 15", "rate: 16", "16 Hz does not divide the 600 Hz of physics with cloth"),
        (TOWEL, "rate: 15", "rate: 15\nmodalities: [flow]", "stores flow, which is computed for rigid bodies"),
        (CABLE, "object: cable", "object: block", "a red cube is not a cable"),
        (CABLE, "[clip]", "[cable]", "has no frame 'gate'"),
        (CABLE, "rate: 15", "rate: 16", "16 Hz does not divide the 600 Hz of physics with a cable"),
    ],
)
def test_bad_input_gets_one_line(parts: tuple[str, str], old: str, new: str, message: str):
    item, step = parts
    text = f"""robot: panda
scene: table
rate: 15
regions: {{start: {{on: table, center: [0.5, 0.0], size: [0.5, 0.7]}}}}
objects:
  {item}
  block: {{library: blocks, kinds: [red_cube], region: start}}
  clip: {{library: cables, kinds: [cable_clip], region: start}}
steps:
  - {step}
success: [gripper_clear]
instructions: ["Handle {{block}}."]
"""
    with pytest.raises(InputError) as caught:
        load_assets(parse_task(text.replace(old, new)))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("library", "kind", "message"),
    [
        ("cloths", "blue_towel", "is cloth and exists in one size only"),
        ("cables", "red_cable", "is a cable and exists in one size only"),
    ],
)
def test_flexible_kinds_have_one_size(library: str, kind: str, message: str):
    with pytest.raises(InputError, match=message):
        open_library(library).model(kind, 0, 1.2)
