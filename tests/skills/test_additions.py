"""What the docs add to Nimbus: a skill that moves does in physics what they say."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

import pytest

from nimbus.datagen import registry
from nimbus.datagen.discover import discover, discover_components
from nimbus.datagen.execute.planner import run_attempt
from nimbus.datagen.randomize.tabletop import draw_physical
from nimbus.datagen.scene_files import scene_folder
from nimbus.datagen.simulate.newton import NewtonSimulation
from nimbus.datagen.streams import stream
from nimbus.datagen.task import load_task
from nimbus.datagen.trajectory import Trajectory
from nimbus.datagen.usd.loader import load_assets

discover_components()

DOCS = Path(__file__).resolve().parents[2] / "docs"
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


def first_success(task_file: Path, *, skills: tuple[Path, ...] = ()) -> Trajectory:
    """The first of three attempts that succeeds."""
    task = load_task(task_file, skill_folders=skills)
    assets = load_assets(task)
    failures = []
    for index in range(3):
        layout = draw_physical(task, assets, seed=0, index=index)
        simulation = NewtonSimulation(assets.stage, assets.robot, rate=task.rate)
        streams = partial(stream, 0, index, "attempt", 0)
        trajectory = run_attempt(task, simulation, layout, streams=streams, planner="ompl")
        if trajectory.outcome.success:
            return trajectory
        failures.append(trajectory.outcome)
    raise AssertionError(failures)


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
