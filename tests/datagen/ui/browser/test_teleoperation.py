"""Teleoperation in a real browser: keys move the tool, a demonstration is kept and becomes an episode.

With ``NIMBUS_SCREENSHOTS=DIR`` every screen is saved there.
"""

from __future__ import annotations

import importlib.util
import os
import re
import time
from pathlib import Path

import h5py
import pytest

from nimbus.datagen.store.info import read_info
from nimbus.datagen.teleoperate.recording import RecordingFolder
from tests.support.runs import TINY, sound
from tests.support.studio.browser import CHROMIUM, Browser
from tests.support.studio.visit import served, visited

SHOTS = os.environ.get("NIMBUS_SCREENSHOTS", "")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not CHROMIUM, reason="no Chromium"),
    pytest.mark.skipif(importlib.util.find_spec("viser") is None, reason="viser is not installed"),
]


def shoot(browser: Browser, name: str) -> None:
    if SHOTS:
        browser.picture(Path(SHOTS) / f"{name}.png")


def press(browser: Browser, key: str, *, is_down: bool) -> None:
    browser.send("Input.dispatchKeyEvent", type="keyDown" if is_down else "keyUp", code=key, key=key[-1].lower())


def hold(browser: Browser, key: str, *, until: int) -> None:
    """Hold a key down until some seconds are recorded."""
    press(browser, key, is_down=True)
    deadline = time.monotonic() + 300
    while not ((found := re.search(r"recording (\d+) s", browser.text())) and int(found[1]) >= until):
        assert time.monotonic() < deadline, browser.text()
        time.sleep(0.1)
    press(browser, key, is_down=False)


def test_keys_record_a_demonstration_that_becomes_an_episode(tmp_path: Path):
    (tmp_path / "tiny.yaml").write_text(TINY.read_text())
    with (
        served(tmp_path, "tiny.yaml", "--port", "8260", "--teleoperate") as address,
        visited(address, tmp_path) as browser,
    ):
        browser.tab("Teleoperate")
        browser.wait_for("practice, nothing is recorded")
        browser.fill("operator", "Ada")
        browser.enter("images")
        browser.run("document.activeElement.blur()")
        shoot(browser, "teleoperation_1_practice")
        browser.click("Record", kind="label, button")
        browser.wait_for("armed")
        press(browser, "KeyE", is_down=True)
        press(browser, "KeyE", is_down=False)
        browser.wait_for("recording 0 s")  # a press of a millisecond is a motion
        hold(browser, "KeyQ", until=2)
        press(browser, "Space", is_down=True)
        press(browser, "Space", is_down=False)
        browser.wait_for("gripper: closed")
        hold(browser, "KeyA", until=4)
        browser.wait_for("input to image")
        shoot(browser, "teleoperation_2_recording")
        browser.click("1 s", kind="label, button")
        browser.wait_for("paused")
        shoot(browser, "teleoperation_3_undone")
        browser.click("Keep", kind="label, button")
        browser.wait_for("1 kept")
        browser.wait_for("Layout 1")
        folder = RecordingFolder.beside(tmp_path / "out" / "demonstrations_tiny")
        recording = folder.read(0)
        assert recording.operator == "Ada" and recording.device == "keyboard" and recording.undone == 1
        browser.wait_for("gripper: open")
        wait_for_episode(folder.folder.with_name("demonstrations_tiny-states"))
        browser.wait_for("dataset ready")
        shoot(browser, "teleoperation_4_kept")
        assert browser.errors == []


def names_of(file: h5py.File) -> list[str]:
    found: list[str] = []
    file.visit(found.append)
    return found


def wait_for_episode(folder: Path, *, within: float = 300.0) -> None:
    """Wait until the attempt is in the ledger, as a failure because the can is not in its bin."""
    deadline = time.monotonic() + within
    while not list(folder.glob("failures/*.hdf5")):
        assert time.monotonic() < deadline
        time.sleep(0.5)
    assert read_info(folder).task == "tiny" and read_info(folder).episode_count == 0 and sound(folder)
    with h5py.File(next(folder.glob("failures/*.hdf5"))) as file:
        assert not [name for name in names_of(file) if "images" in name], "the episodes have states only"
