"""Status of teleoperation on the page."""

from __future__ import annotations

import html
import re
from typing import Any

from nimbus.datagen.teleoperate.control_loop import LoopState
from nimbus.datagen.teleoperate.session import SessionPhase, SessionState
from nimbus.datagen.ui.browser.operator_status import describe_making, describe_state
from nimbus.datagen.ui.runs.run_panel import RunStatus


def shown(*, latency: float = 0.0, **values: Any) -> list[str]:
    """Return the visible lines for a state of a session."""
    own = {"phase": SessionPhase.RECORDING, "index": 2, "step_count": 45, "seconds": 3.0, "is_success": False}
    state = SessionState(
        **{**own, "failure": "on: cup has 4.0 cm still to go to goal", "openings": {"arm": 1.0}, **values}
    )
    (block,) = re.findall(
        "<div[^>]*>(.*)</div>", describe_state(LoopState(session=state, rate=15.0, work=0.01), latency=latency)
    )
    return [html.unescape(re.sub("<[^>]*>", "", line)) for line in block.split("<br>")]


def test_every_hint_has_its_own_line():
    hints = {"way": "move cup 4.0 cm toward +x (W)", "heights": {"arm": 0.01}, "pressing": ("arm",)}
    assert shown(**hints, blocked=("arm",), message="paused: the gamepad is gone", latency=0.1) == [
        "Layout 2: recording 3 s",
        "on: cup has 4.0 cm still to go to goal",
        "move cup 4.0 cm toward +x (W)",
        "gripper: open",
        "above the surface below: 1.0 cm",
        "fingers press on something: raise the tool (E)",
        "blocked by something, or out of reach",
        "control 15 Hz, input to image 100 ms",
        "paused: the gamepad is gone",
    ]
    assert shown(is_success=True) == [
        "Layout 2: recording 3 s",
        "success: press Keep",
        "gripper: open",
        "control 15 Hz",
    ]


def test_several_arms_are_named():
    hands = {"openings": {"left": 0.0, "right": 0.25}, "held": {"left": "cup"}, "heights": {"left": 0.1, "right": 0.02}}
    lines = shown(**hands, blocked=("right",))
    assert "gripper: left closed, holds cup; right 25 % open" in lines
    assert "above the surface below: left 10.0 cm, right 2.0 cm" in lines
    assert "blocked by something, or out of reach (right)" in lines


def test_the_way_to_an_object_has_its_own_line():
    assert "cup is 4.0 cm toward +x (W) from the tool" in shown(reach="cup is 4.0 cm toward +x (W) from the tool")


def test_making_episodes_shows_counts_and_the_time_of_the_demonstration():
    assert describe_making(None) == "making episodes: loading the scene …"
    status = RunStatus(
        state="running", activity="physics at 40 of 85 s", target=3, settled=1, stored=1, failed=0, remaining=None
    )
    assert describe_making(status) == "making episodes: 2 of 3, physics at 40 of 85 s"


def test_text_of_a_device_is_not_interpreted():
    assert shown(message="<img src=x onerror=alert(1)> \x1b[2J")[-1] == r"<img src=x onerror=alert(1)> \x1b[2J"
