"""A visit to the studio in a real browser: from a task that comes with Nimbus to a dataset and its report.

With ``NIMBUS_SCREENSHOTS=DIR`` every screen is saved there. Takes minutes, as the run that it starts does.
"""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import pytest
from browser import CHROMIUM, Browser
from visit import drag_region, served

from nimbus.datagen.scene_files import scene_folder
from nimbus.datagen.strict_yaml import parse

SORT = (scene_folder("tasks") / "sort_trash.yaml").read_text()
pytestmark = [
    pytest.mark.skipif(not CHROMIUM, reason="no Chromium"),
    pytest.mark.skipif(importlib.util.find_spec("viser") is None, reason="viser is not installed"),
]


def test_a_task_is_changed_saved_and_run_in_the_browser(tmp_path: Path):
    shots = Path(os.environ.get("NIMBUS_SCREENSHOTS", tmp_path / "screens"))
    saved = tmp_path / "sort_trash.yaml"
    with served(tmp_path, "sort_trash", "--port", "8200") as address:
        browser = Browser(tmp_path, size=(1200, 780))
        try:
            browser.open(address)
            browser.wait_for("Nothing to save", within=120)
            browser.settle("ready")
            browser.dismiss()
            browser.picture(shots / "1_task.png")

            drag_region(browser, (0.5, 0.0), 0.0, by=0.08)
            browser.wait_for("Not saved")
            browser.unfold("Regions")
            browser.settle("ready")
            browser.picture(shots / "2_region.png")
            browser.unfold("Regions")

            browser.unfold("Steps")
            browser.choose("skill", "home")
            browser.click("add after")
            browser.wait_for("5. home")
            browser.picture(shots / "3_steps.png")
            browser.unfold("Steps")

            browser.unfold("Randomization")
            browser.fill("camera.position [cm]", "3")
            browser.settle("ready")
            browser.picture(shots / "4_range.png")
            browser.unfold("Randomization")

            browser.click("Save")
            browser.wait_for("Nothing to save")
            changed = parse(saved.read_text(), "saved").data
            before = parse(SORT, "before").data
            assert changed["regions"]["start"]["center"][0] > 0.52
            assert str(changed["steps"]).count("home") == 2
            assert changed["randomize"]["camera"]["position"] == "3 cm" != before["randomize"]["camera"]["position"]
            lines = set(saved.read_text().splitlines()) ^ set(SORT.splitlines())
            assert len(lines) == 5, lines  # two lines changed, one added

            browser.click("Layouts")
            browser.click("Sample 50")
            browser.wait_for("50 layouts in", within=240)
            browser.click("This one")
            browser.wait_for("objects.", within=120)
            browser.settle("ready")
            browser.picture(shots / "5_layouts.png")

            browser.click("Run")
            browser.fill("episodes", "2")
            browser.click("Run", kind="button:not([role=tab])")
            browser.wait_for("done, 2 of 2 episodes", within=570)
            browser.picture(shots / "6_run.png")
            browser.click("Report")
            browser.wait_for("Report of sort_trash")
            browser.picture(shots / "7_report.png")
            browser.click("Close")

            browser.click("Data")
            browser.click("Open dataset")
            browser.wait_for("stored.", within=60)
            browser.click("Replay")
            browser.settle("reading the episode", gone=True)
            browser.settle("ready")
            browser.picture(shots / "8_data.png")
            assert browser.errors == []
        finally:
            browser.picture(shots / "last.png")
            browser.close()
    assert len(list((tmp_path / "out/sort_trash/episodes").glob("*.hdf5"))) >= 1
