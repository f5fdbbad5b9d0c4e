"""Status of teleoperation on the page: phase, conditions of success, hands and hints, as HTML."""

from __future__ import annotations

import html
from collections.abc import Mapping
from typing import TYPE_CHECKING

from nimbus.datagen.errors import visible
from nimbus.datagen.teleoperate.session import SessionPhase

if TYPE_CHECKING:
    from nimbus.datagen.teleoperate.control_loop import LoopState
    from nimbus.datagen.teleoperate.session import SessionState
    from nimbus.datagen.ui.runs.run_panel import RunStatus

_LINE_HEIGHT, _LINES = 19, 10
"""Height of a line [px], and number of lines for which there is always room. Hints come and go, and long ones wrap; the
images below stay in place."""
_STYLE = f"font-size: 13px; line-height: {_LINE_HEIGHT}px; min-height: {_LINES * _LINE_HEIGHT}px; margin: 0 2px 0 11px"


def draw_status(*lines: str) -> str:
    """Return lines of HTML as one block."""
    return f'<div style="{_STYLE}">{"<br>".join(lines)}</div>'


def describe_state(state: LoopState, *, latency: float) -> str:
    """Return the status in a period.

    Args:
        state: State of the loop.
        latency: Time from an input to the image that shows it [s]; 0 if unknown.
    """
    now = state.session
    names = {
        SessionPhase.PRACTICE: "practice, nothing is recorded",
        SessionPhase.ARMED: "<b>armed</b>: recording begins with your first motion",
        SessionPhase.RECORDING: f"<b>recording</b> {now.seconds:.0f} s",
        SessionPhase.PAUSED: f"<b>paused</b> at {now.seconds:.1f} s; press Record to continue",
    }
    lines = [f"Layout {now.index}: {names[now.phase]}"]
    lines.append("<b>success</b>: press Keep" if now.is_success else _text(now.failure))
    lines.append(_text(now.way))
    lines.append(_text(now.reach))
    lines.append(_text(f"gripper: {_by_arm(_gripper_words(now), now, '; ')}"))
    if now.heights:
        words = {arm: f"{height * 100:.1f} cm" for arm, height in now.heights.items()}
        lines.append(_text(f"above the surface below: {_by_arm(words, now, ', ')}"))
    if now.pressing:
        lines.append("<b>fingers press on something: raise the tool (E)</b>")
    for arms, words in (
        (now.out_of_reach, "the tool stops at the end of its reach"),
        (now.blocked, "blocked by something, or out of reach"),
    ):
        if arms:
            lines.append(_text(words if len(now.openings) == 1 else f"{words} ({', '.join(arms)})"))
    lines.append(f"control {state.rate:.0f} Hz" + (f", input to image {latency * 1e3:.0f} ms" if latency else ""))
    lines.append(f"<b>{_text(now.message)}</b>" if now.message else "")
    return draw_status(*(line for line in lines if line))


def describe_making(status: RunStatus | None) -> str:
    """Return the progress of the process that makes episodes; None if it has not written its status yet."""
    if status is None:
        return "making episodes: loading the scene …"
    number = min(status.settled + 1, status.target)
    return f"making episodes: {number} of {status.target}" + (f", {status.activity}" if status.activity else "")


def _text(text: str) -> str:
    return html.escape(visible(text))


def _gripper_words(state: SessionState) -> dict[str, str]:
    """Return the opening of each gripper and the object that it holds, by name of the arm."""
    words: dict[str, str] = {}
    for arm, opening in state.openings.items():
        percent = round(100 * opening)
        word = {0: "closed", 100: "open"}.get(percent, f"{percent} % open")
        words[arm] = word + (f", holds {state.held[arm]}" if arm in state.held else "")
    return words


def _by_arm(words: Mapping[str, str], state: SessionState, separator: str) -> str:
    """Join words about arms, each after the name of its arm if the robot has several."""
    if len(state.openings) == 1:
        return "".join(words.values())
    return separator.join(f"{arm} {word}" for arm, word in words.items())
