"""The loop in real time: a lost device pauses the recording without losing any of it."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest

from nimbus.datagen.load.scene_loader import load_assets
from nimbus.datagen.tasks.task import load_task
from nimbus.datagen.teleoperate.control_loop import ControlLoop, LoopState
from nimbus.datagen.teleoperate.operator_input import (
    DeviceLost,
    InputDevice,
    OperatorInput,
    ToolCommand,
    ToolTwist,
)
from nimbus.datagen.teleoperate.recording import RecordingFolder
from nimbus.datagen.teleoperate.session import SessionPhase, TeleoperationSession
from tests.support.runs import TINY


class Unplugged(InputDevice):
    """Device that moves for some polls, then is disconnected, then comes back idle."""

    name = "stick"

    def __init__(self) -> None:
        self.count = 0

    def poll(self) -> OperatorInput:
        self.count += 1
        if self.count == 10:
            raise DeviceLost("is disconnected", where="stick")
        down = ToolTwist(linear=np.array([0.0, 0.0, -0.1]), angular=np.zeros(3))
        return OperatorInput(arms={"arm": ToolCommand(motion=down)})


def press_within_press(loop: ControlLoop) -> threading.Event:
    """Press a button in a separate thread; its callback presses another button. The event is set at the end."""
    done = threading.Event()

    def press() -> None:
        loop.do(lambda _: loop.do(lambda _: None))
        done.set()

    threading.Thread(target=press, daemon=True).start()
    return done


def test_lost_device_pauses_and_loses_nothing(tmp_path: Path):
    task = load_task(TINY)
    session, folder = TeleoperationSession(task, load_assets(task)), RecordingFolder(tmp_path / "recordings")
    session.record()
    paused, seen = threading.Event(), list[LoopState]()

    def show(state: LoopState) -> None:
        seen.append(state)
        if state.session.phase is SessionPhase.PAUSED and len(seen) > 12:
            paused.set()

    loop = ControlLoop(session, Unplugged(), folder, show=show, fail=paused.set)
    loop.start()
    assert paused.wait(300)
    assert press_within_press(loop).wait(60)  # viser sets values, and so calls back, within a button
    loop.close()
    assert session.step_count == 9 and "stick: is disconnected; nothing is lost" in seen[-1].session.message
    found = folder.unfinished()
    assert found and len(found.actions) == 9


def test_error_ends_the_loop_and_keeps_the_recording(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    """Display fails, as when a thread changes the page at the same time."""
    task = load_task(TINY)
    session, folder = TeleoperationSession(task, load_assets(task)), RecordingFolder(tmp_path / "recordings")
    session.record()
    failed = threading.Event()

    def show(state: LoopState) -> None:
        if state.session.step_count == 7:
            raise RuntimeError("deque mutated during iteration")

    def fail() -> None:
        loop.close()
        failed.set()

    loop = ControlLoop(session, Unplugged(), folder, show=show, fail=fail)
    loop.start()
    assert failed.wait(300)
    found = folder.unfinished()
    assert found and len(found.actions) == 7 and "Traceback" in caplog.text
