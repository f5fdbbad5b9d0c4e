"""Gamepad and six-axis mouse in a real browser, through the page's script; the devices are simulated there."""

from __future__ import annotations

import importlib.util
import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from nimbus.datagen.teleoperate.recording import RecordingFolder
from tests.support.runs import TINY
from tests.support.studio.browser import CHROMIUM, Browser
from tests.support.studio.visit import served, visited

pytestmark = [
    pytest.mark.slow,
    pytest.mark.long,
    pytest.mark.skipif(not CHROMIUM, reason="no Chromium"),
    pytest.mark.skipif(importlib.util.find_spec("viser") is None, reason="viser is not installed"),
]
DEVICES = """
const buttons = Array.from({length: 17}, () => ({pressed: false, value: 0}));
window.pad = {id: "Test pad", index: 0, connected: false, axes: [0, 0, 0, 0], buttons};
navigator.getGamepads = () => [window.pad, null];
window.mouse = new EventTarget();
window.mouse.open = async () => {};
const hid = new EventTarget();
hid.requestDevice = async () => [window.mouse];
Object.defineProperty(navigator, "hid", {value: hid});
window.push = (id, values) => {
  const data = new DataView(new ArrayBuffer(2 * values.length));
  values.forEach((value, index) => data.setInt16(2 * index, value, true));
  const event = new Event("inputreport");
  window.mouse.dispatchEvent(Object.assign(event, {reportId: id, data}));
};
"""
"""A gamepad, and a six-axis mouse that sends reports like those of its manufacturer."""


def seconds(browser: Browser) -> int:
    """Return the recorded time [s]; -1 if nothing is recorded."""
    found = re.search(r"recording (\d+) s", browser.text())
    return int(found[1]) if found else -1


def wait_until(browser: Browser, is_done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 300
    while not is_done():
        assert time.monotonic() < deadline, browser.text()
        time.sleep(0.1)


def test_a_gamepad_and_a_six_axis_mouse_record_a_demonstration(tmp_path: Path):
    (tmp_path / "tiny.yaml").write_text(TINY.read_text())
    with (
        served(tmp_path, "tiny.yaml", "--port", "8280", "--teleoperate") as address,
        visited(address, tmp_path) as browser,
    ):
        browser.send("Page.addScriptToEvaluateOnNewDocument", source=DEVICES)
        browser.open(address)
        browser.wait_for("Layouts")
        browser.tab("Teleoperate")
        browser.wait_for("practice, nothing is recorded")
        browser.dismiss()
        browser.click("Record", kind="label, button")
        browser.wait_for("armed")
        # The left stick to the left moves the tool to the left, +y.
        browser.run(
            "pad.connected = true; window.dispatchEvent(Object.assign(new Event('gamepadconnected'), "
            "{gamepad: pad})); pad.axes[0] = -1"
        )
        wait_until(browser, lambda: seconds(browser) >= 1)
        browser.run("pad.axes[0] = 0; pad.buttons[0].pressed = true")
        browser.wait_for("gripper: closed")
        browser.run(
            "pad.buttons[0].pressed = false; pad.connected = false; "
            "window.dispatchEvent(Object.assign(new Event('gamepaddisconnected'), {gamepad: pad}))"
        )
        browser.wait_for("Test pad")
        browser.wait_for("paused")
        # M connects the mouse; a report 1 with a negative third value is a push upward.
        browser.run("window.dispatchEvent(new Event('gamepadconnected'))")
        browser.click("Record", kind="label, button")
        browser.run("document.activeElement.blur()")
        browser.send("Input.dispatchKeyEvent", type="keyDown", code="KeyM", key="m")
        browser.send("Input.dispatchKeyEvent", type="keyUp", code="KeyM", key="m")
        before = seconds(browser)
        time.sleep(0.5)
        browser.run("push(1, [0, 0, -350])")
        wait_until(browser, lambda: seconds(browser) >= max(before, 1) + 2)
        browser.run("push(1, [0, 0, 0]); push(3, [1])")
        browser.wait_for("gripper: open")
        browser.run("navigator.hid.dispatchEvent(Object.assign(new Event('disconnect'), {device: mouse}))")
        browser.wait_for("six-axis mouse")
        browser.wait_for("paused")
        browser.fill("time [s]", "0.5")
        browser.click("Go back to this time")
        browser.wait_for("paused at 0.5 s")
        browser.click("Keep", kind="label, button")
        browser.wait_for("1 kept")
        recording = RecordingFolder.beside(tmp_path / "out" / "demonstrations_tiny").read(0)
        assert recording.device == "gamepad+six-axis mouse"
        assert len(recording.actions) == round(0.5 * 15) and recording.undone == 1
        assert browser.errors == []
