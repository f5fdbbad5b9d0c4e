"""Additions described in the docs; the skill that moves the robot has the documented effect in physics."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from nimbus.datagen import registry
from nimbus.datagen.files.scene_files import scene_folder
from nimbus.datagen.tasks.plugins import discover
from tests.support import ROOT
from tests.support.task_attempts import first_success

DOCS = ROOT / "docs"
TASK = """
robot: {robot}
scene: table
regions:
  start: {{on: table, center: [0.38, 0.1], size: [0.1, 0.1]}}
  goal: {{on: table, center: [0.38, -0.12], size: [0.12, 0.12]}}
objects:
  block: {{library: blocks, kinds: [red_cube, blue_cube], region: start}}
steps:
{steps}
success:
{success}
instructions: ["Do something with {{block}}."]
"""


@pytest.mark.slow
def test_the_skill_of_the_page_taps_without_pushing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    discover()
    monkeypatch.setattr(registry, "_components", dict(registry._components))
    (code,) = re.findall(r"```python\n(.*?)```", (DOCS / "skills.md").read_text(), re.DOTALL)
    assert len(code.splitlines()) < 60
    (tmp_path / "skills").mkdir()
    (tmp_path / "skills/tap.py").write_text(code)
    steps, success = "  - tap: block\n  - home", "  - not_moved: block\n  - gripper_clear"
    (tmp_path / "tap.yaml").write_text(TASK.format(robot="panda", steps=steps, success=success))
    found = first_success(tmp_path / "tap.yaml", skills=(tmp_path / "skills",))
    phases = {segment.phase for segment in found.segments if segment.skill == "tap"}
    assert {"approach", "tap", "retreat"} <= phases


def test_the_robot_of_the_page_is_the_one_that_comes_with_nimbus():
    text = (DOCS / "robots.md").read_text()
    (robot,) = (block for block in re.findall(r"```yaml\n(.*?)```", text, re.DOTALL) if "name: z1" in block)
    shipped = (scene_folder("robots") / "z1.yaml").read_text()
    assert [
        line for line in shipped.splitlines() if line[0] != "#" and "description:" not in line
    ] == robot.splitlines()
