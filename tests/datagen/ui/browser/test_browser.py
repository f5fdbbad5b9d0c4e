"""Visits to the studio in a real browser. Each begins with a task file or without one, and ends with a dataset and its
report.

With ``NIMBUS_SCREENSHOTS=DIR`` every screen is saved there. The tests take minutes, because they start real runs.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from nimbus.datagen.files.scene_files import scene_folder
from nimbus.datagen.files.strict_yaml import parse
from tests.support.runs import RUNNER, sound
from tests.support.studio.browser import CHROMIUM, Browser
from tests.support.studio.visit import drag_region, served, visited

SORT = (scene_folder("tasks") / "sort_trash.yaml").read_text()
SHOTS = os.environ.get("NIMBUS_SCREENSHOTS", "")
SHARP = ("--sharpness", "100") if SHOTS else ()
"""Saved screens are rendered in the quality of a GPU, which takes longer."""
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not CHROMIUM, reason="no Chromium"),
    pytest.mark.skipif(importlib.util.find_spec("viser") is None, reason="viser is not installed"),
]
Shoot = Callable[[str], None]


def photographer(browser: Browser) -> Shoot:
    """Return a function that saves the screen if requested."""
    return lambda name: browser.picture(Path(SHOTS) / f"{name}.png") if SHOTS else None


def test_a_task_is_changed_saved_and_run_in_the_browser(tmp_path: Path):
    with served(tmp_path, "sort_trash", "--port", "8200", *SHARP) as address, visited(address, tmp_path) as browser:
        shoot = photographer(browser)
        shoot("sort_1_task")
        change_sort_trash(browser, shoot)
        browser.click("Save")
        browser.wait_for("All changes are saved")
        check_changes((tmp_path / "sort_trash.yaml").read_text())
        browser.tab("Layouts")
        browser.click("Sample 50")
        browser.wait_for("50 layouts in", within=300)
        browser.click("This one")
        browser.wait_for("objects.", within=300)
        browser.settle("ready")
        shoot("sort_5_layouts")
        run_two(browser, "sort_trash")
        shoot("sort_6_run")
        browser.click("Report")
        browser.wait_for("Report of sort_trash")
        shoot("sort_7_report")
        browser.click("Close")
        replay(browser)
        shoot("sort_8_data")
        assert browser.errors == []
    sound(tmp_path / "out/sort_trash")


def change_sort_trash(browser: Browser, shoot: Shoot) -> None:
    """Drag a region, add a step, change a range; then disconnect the browser and connect it again."""
    drag_region(browser, (0.5, 0.0), 0.0, by=0.08)
    browser.wait_for("unsaved changes")
    browser.unfold("Regions")
    browser.settle("ready")
    shoot("sort_2_region")
    browser.unfold("Regions")
    browser.unfold("Steps")
    browser.choose("skill", "home")
    browser.wait_for("Go to the robot's home posture")
    browser.click("add after")
    browser.wait_for("5. home")
    shoot("sort_3_steps")
    browser.unfold("Steps")
    browser.unfold("Randomization")
    browser.fill("camera.position [cm]", "3")
    browser.fill("mass.factor [%]", "70")
    browser.settle("ready")
    shoot("sort_4_range")
    address = browser.run("location.href")
    browser.open("about:blank")
    browser.open(address)
    browser.wait_for("unsaved changes")
    browser.dismiss()


def check_changes(text: str) -> None:
    changed, before = parse(text, "saved").data, parse(SORT, "before").data
    assert changed["regions"]["start"]["center"][0] > 0.52
    assert str(changed["steps"]).count("home") == 2
    assert changed["randomize"]["camera"]["position"] == "3 cm" != before["randomize"]["camera"]["position"]
    assert changed["randomize"]["mass"]["factor"] == ("70 %", "125 %")
    lines = set(text.splitlines()) ^ set(SORT.splitlines())
    assert len(lines) == 6, lines  # three lines changed; one like another was added


def run_two(browser: Browser, name: str) -> None:
    """Run two episodes to the end."""
    browser.tab("Run")
    browser.fill("episodes", "2")
    browser.click("Run", kind="button:not([role=tab])")
    browser.wait_for("done, 2 of 2 episodes", within=900)


def replay(browser: Browser) -> None:
    """Open the dataset of the run and one of its episodes."""
    browser.tab("Data")
    browser.click("Open dataset")
    browser.wait_for("stored.", within=300)
    browser.click("Replay")
    browser.settle("reading the episode", gone=True)
    browser.settle("ready")


def test_a_new_task_is_made_in_the_browser_and_runs_headless_unchanged(tmp_path: Path):
    path = tmp_path / "pack_blocks.yaml"
    with served(tmp_path, path.name, "--port", "8250", *SHARP) as address, visited(address, tmp_path) as browser:
        shoot = photographer(browser)
        shoot("new_1_empty")
        make_pack_blocks(browser, shoot)
        browser.click("Save")
        browser.wait_for("All changes are saved")
        assert path.read_text() == PACK_BLOCKS
        browser.tab("Layouts")
        browser.click("Sample 50")
        browser.wait_for("50 layouts in", within=300)
        browser.click("Reach")
        browser.wait_for("within reach", within=300)
        shoot("new_6_layouts")
        browser.click("Clear")
        browser.click("Plan one")
        browser.wait_for("Success", within=300)
        browser.fill("step", "60")
        browser.settle("ready")
        shoot("new_7_plan")
        run_two(browser, "pack_blocks")
        shoot("new_8_run")
        replay(browser)
        browser.fill("step", "90")
        browser.choose("picture", "instance")
        browser.settle("ready")
        shoot("new_9_data")
        assert browser.errors == []
    sound(tmp_path / "out/pack_blocks")
    words = ["run", "--serial", "--task", str(path), "--episodes", "1", "--out", str(tmp_path / "headless")]
    assert subprocess.run([sys.executable, str(RUNNER), *words], cwd=tmp_path).returncode == 0
    sound(tmp_path / "headless")


PACK_BLOCKS = """\
# What the robot does, in one line.
robot: panda
scene: table
regions:
  start: {on: table, center: [0.5, -0.1], size: [0.26, 0.26]}    # x, y [m]
  side: {on: table, center: [0.45, 0.34], size: [0.04, 0.04]}
objects:
  things: {library: blocks, region: start, count: 2, kinds: [red_cube, blue_cube]}
  crate: {library: containers, region: side, kinds: [crate], yaw: 0}
steps:
  - {for thing in things: [{pick: thing}, {place: {object: thing, into: crate}}]}
  - home
success:
  - inside: {object: things, container: crate}
  - gripper_clear
cameras: front+wrist
randomize: medium
instructions: [Put the blocks into the crate., "Pack {things} into the crate."]
"""


def make_pack_blocks(browser: Browser, shoot: Shoot) -> None:
    """Enter the whole content of the task, as a new user of the studio would."""
    browser.unfold("Regions")
    browser.fill("start center", "[0.5, -0.1]")
    browser.fill("start size", "[0.26, 0.26]")
    browser.fill("new region", "side")
    browser.click("add a region")
    browser.fill("side center", "[0.45, 0.34]")
    browser.fill("side size", "[0.04, 0.04]")
    browser.settle("ready")
    shoot("new_2_regions")
    browser.unfold("Regions")
    browser.unfold("Objects")
    browser.fill("things count", "2")
    browser.fill("things kinds", "[red_cube, blue_cube]")
    browser.fill("new things", "crate")
    browser.click("add objects")
    browser.choose("crate library", "containers")
    browser.choose("crate region", "side")
    browser.fill("crate kinds", "[crate]")
    browser.fill("crate yaw", "0")
    shoot("new_3_objects")
    browser.unfold("Objects")
    browser.unfold("Steps")
    browser.choose("skill", "pick")
    browser.wait_for("Grasp an object and lift it.")
    browser.fill("object", "things")
    browser.click("change this one")
    browser.wait_for("1. pick: object things")
    browser.choose("for each of", "things")
    browser.wait_for("2. pick: object thing")
    browser.choose("select", "2. pick: object thing")
    browser.settle("ready")
    browser.choose("skill", "place")
    browser.wait_for("Put the held object into, on or beside a thing")
    browser.fill("object", "thing")
    browser.fill("into (may be empty)", "crate")
    browser.click("add after")
    browser.wait_for("3. place: object thing, into crate")
    browser.choose("select", "1. for thing in things")
    browser.settle("ready")
    browser.choose("skill", "home")
    browser.wait_for("Go to the robot's home posture")
    browser.click("add after")
    browser.wait_for("4. home")
    shoot("new_4_steps")
    browser.unfold("Steps")
    browser.unfold("Success")
    browser.choose("predicate", "inside")
    browser.enter("container")
    browser.fill("object", "things")
    browser.fill("container", "crate")
    browser.click("add after")
    browser.wait_for("2. inside")
    browser.click("up")
    browser.wait_for("1. inside")
    browser.unfold("Success")
    browser.unfold("Randomization")
    browser.choose("how much", "medium")
    browser.wait_for("sensor.exposure")
    shoot("new_5_ranges")
    browser.unfold("Randomization")
    browser.unfold("Language")
    browser.fill("instructions", "Put the blocks into the crate.\nPack {things} into the crate.")
    browser.unfold("Language")
    browser.wait_for("No mistake found")
