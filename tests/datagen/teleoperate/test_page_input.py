"""Input reported by a page: axes, grips, drags, lost devices, and invalid texts."""

from __future__ import annotations

import numpy as np
import pytest

from nimbus.datagen.errors import InputError
from nimbus.datagen.teleoperate.operator_input import DeviceLost, PoseTarget, ToolTwist
from nimbus.datagen.teleoperate.page_input import SPEED, PageInput, PageReport, read_report


def test_full_deflection_moves_one_arm_at_full_speed():
    page = PageInput(("left", "right"))
    page.report(PageReport(number=3, axes=(1.0, 0.0, 0.0, 0.0, 0.0, 0.0), arm=1, device="gamepad"))
    given = page.poll()
    motion = given.arms["right"].motion
    assert isinstance(motion, ToolTwist) and np.allclose(motion.linear, (SPEED, 0, 0)) and not motion.angular.any()
    assert page.number == 3 and page.name == "gamepad" and set(given.arms) == {"right"}


def test_page_that_falls_silent_stops_and_is_then_lost(monkeypatch: pytest.MonkeyPatch):
    now = [100.0]
    monkeypatch.setattr("nimbus.datagen.teleoperate.page_input.time.monotonic", lambda: now[0])
    page = PageInput(("arm",))
    page.report(PageReport(number=1, axes=(1.0, 0.0, 0.0, 0.0, 0.0, 0.0)))
    assert not page.poll().is_idle()
    now[0] += 1
    assert page.poll().is_idle()
    now[0] += 10
    with pytest.raises(DeviceLost, match="no longer reports"):
        page.poll()
    assert page.poll().is_idle()


def test_worn_stick_is_idle():
    page = PageInput(("arm",))
    page.report(PageReport(number=1, axes=(0.07, -0.05, 0.0, 0.0, 0.0, 0.08)))
    assert page.poll().is_idle()


def test_grip_and_drag_are_given_once():
    page = PageInput(("arm",))
    page.report(PageReport(number=1, closed=True))
    page.drag("arm", np.eye(4))
    given = page.poll()
    assert given.arms["arm"].opening == 0.0 and isinstance(given.arms["arm"].motion, PoseTarget)
    assert page.poll().is_idle() and page.name == "keyboard+mouse"


def test_short_press_moves_for_one_period():
    """A key goes down and up between two polls, in one report or in two."""
    page = PageInput(("arm",))
    page.report(PageReport(number=1, presses=(0, 0, -1, 0, 0, 0)))
    page.report(PageReport(number=2, axes=(1.0, 0.0, 0.0, 0.0, 0.0, 0.0), presses=(1, 0, 0, 0, 0, 0)))
    page.report(PageReport(number=3))
    motion = page.poll().arms["arm"].motion
    assert isinstance(motion, ToolTwist) and np.allclose(motion.linear, (SPEED, 0, -SPEED))
    assert page.poll().is_idle() and page.name == "keyboard"


def test_held_key_stops_when_released():
    """A press counts once: polls while the key is down are part of it."""
    page = PageInput(("arm",))
    page.report(PageReport(number=1, axes=(0.0, 1.0, 0.0, 0.0, 0.0, 0.0), presses=(0, 1, 0, 0, 0, 0)))
    assert not page.poll().is_idle() and not page.poll().is_idle()
    page.report(PageReport(number=2))
    assert page.poll().is_idle()


def test_many_short_presses_are_limited():
    page = PageInput(("arm",))
    page.report(PageReport(number=1, presses=(0, 0, 9, 0, 0, 0)))
    moved = [not page.poll().is_idle() for _ in range(5)]
    assert moved == [True, True, True, False, False]


def test_disconnected_device_is_reported_once():
    page = PageInput(("arm",))
    for _ in range(2):
        page.report(PageReport(number=1, lost="gamepad X"))
    with pytest.raises(DeviceLost, match="gamepad X: is disconnected"):
        page.poll()
    assert page.poll().is_idle()


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", '{"number": -1}', '{"number": 1, "axes": [2, 0, 0, 0, 0, 0]}', '{"number": 1, "axes": [0]}']
    + [
        '{"number": 1, "arm": 99}',
        '{"number": 1, "presses": [0.5, 0, 0, 0, 0, 0]}',
        '{"number": 1, "latency": NaN}',
        '{"number": 1, "device": 3}',
    ],
)
def test_text_that_is_no_report_is_refused(text: str):
    with pytest.raises(InputError):
        read_report(text)
