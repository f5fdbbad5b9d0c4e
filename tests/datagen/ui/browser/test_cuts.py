"""Cuts of demonstrations in a real browser: opened, changed, saved, and used by ``nimbus multiply``.

With ``NIMBUS_SCREENSHOTS=DIR`` every screen is saved there.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
from pathlib import Path

import pytest

from nimbus.datagen.execute.demonstrations.demonstration_file import read_demonstration
from nimbus.runner.cli import main
from tests.support.runs import TINY
from tests.support.studio.browser import CHROMIUM, Browser
from tests.support.studio.visit import served, visited

SHOTS = os.environ.get("NIMBUS_SCREENSHOTS", "")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.long,
    pytest.mark.skipif(not CHROMIUM, reason="no Chromium"),
    pytest.mark.skipif(importlib.util.find_spec("viser") is None, reason="viser is not installed"),
]


def shoot(browser: Browser, name: str) -> None:
    if SHOTS:
        browser.picture(Path(SHOTS) / f"{name}.png")


def times(browser: Browser, number: int) -> list[float]:
    """Return the first and the last time of a subtask in the list."""
    line = re.search(rf"^\s*{number}\. .*$", browser.text(), re.MULTILINE)
    assert line, browser.text()
    return [float(found) for found in re.findall(r"(\d+\.\d\d) s", line[0])]


def test_cuts_are_changed_in_the_browser_and_multiplied(dataset: Path, tmp_path: Path):
    (tmp_path / "tiny.yaml").write_text(TINY.read_text())
    shutil.copytree(dataset, tmp_path / "demos")
    with (
        served(tmp_path, "tiny.yaml", "--port", "8270", "--cuts", "demos") as address,
        visited(address, tmp_path) as browser,
    ):
        browser.tab("Cuts")
        browser.wait_for("1 of 1 demonstrations are used: take")
        browser.wait_for("Not saved.")
        take, put = times(browser, 1), times(browser, 2)
        shoot(browser, "cuts_1_open")
        middle = (take[0] + take[1]) / 2
        browser.fill("time [s]", f"{middle:.2f}")
        browser.wait_for(f"step {round(middle * 15)}:")  # the scene is at that row
        browser.click("Split here", kind="label, button")
        browser.wait_for("3. put")
        shoot(browser, "cuts_2_split")
        browser.click("Remove", kind="label, button")
        browser.settle("3. put", gone=True)
        browser.click("Undo", kind="label, button")
        browser.settle("3. put")
        browser.choose("subtask", "1. take items_0")
        browser.click("Merge with next", kind="label, button")
        browser.settle("3. put", gone=True)
        assert [times(browser, 1), times(browser, 2)] == [take, put]
        browser.fill("time [s]", f"{put[0]:.2f}")
        browser.click("Merge with next", kind="label, button")
        browser.settle("2. put", gone=True)
        browser.click("Undo", kind="label, button")
        browser.wait_for("2. put")
        browser.click("Split here", kind="label, button")
        browser.wait_for("is not inside the subtask; choose a time between")
        assert browser.text().count("is not inside the subtask") == 2, "at the top, and beside the controls"
        browser.fill("first [s]", f"{take[0] + 0.4:.2f}")
        browser.wait_for(f"{take[0] + 0.4:.2f} s")
        browser.choose("kind", "move")
        browser.wait_for("1. move items_0")
        browser.click("Save cuts")
        browser.wait_for("Saved in")
        browser.wait_for("Run:")
        shoot(browser, "cuts_3_saved")
        assert browser.errors == []
    written = (tmp_path / "demos/cuts.yaml").read_text()
    assert "kind: move, frame: items_0" in written
    words = ["multiply", str(tmp_path / "demos"), "--task", str(tmp_path / "tiny.yaml"), "--cut-only"]
    assert main([*words, "--cuts", str(tmp_path / "demos/cuts.yaml"), "--out", str(tmp_path / "many")]) == 0
    (first,) = read_demonstration(tmp_path / "many.demonstrations/1_move_items.demo.json").takes
    start = round((take[0] + 0.4) * 15)
    assert f"[{start}:{round(take[1] * 15) + 1}]" in first.source
    assert main(["verify", str(tmp_path / "demos")]) == 0
