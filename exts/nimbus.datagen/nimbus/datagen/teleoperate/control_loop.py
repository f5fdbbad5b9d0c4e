"""Real-time control: a thread polls the input, advances physics by one control period, and displays the result."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from nimbus.datagen.errors import InputError
from nimbus.datagen.teleoperate.operator_input import IDLE, DeviceLost, InputDevice
from nimbus.datagen.teleoperate.recording import SHORTEST, RecordingFolder
from nimbus.datagen.teleoperate.session import SessionPhase, SessionState, TeleoperationSession

_SAVED_EVERY = 5.0
"""Time between two saves of an unfinished recording [s]."""
_WINDOW = 30
"""Number of periods over which the control rate is measured."""
_Result = TypeVar("_Result")
_log = logging.getLogger("nimbus.teleoperate")


@dataclass(frozen=True, kw_only=True)
class LoopState:
    """State of the loop after a period."""

    session: SessionState
    rate: float
    """Measured control rate [Hz]; if it is below the task's rate, the robot moves slower than in real time."""
    work: float
    """Median computing time per period [s]."""


class ControlLoop:
    """Thread that runs a session in real time until it is closed.

    A period that takes too long delays the next one. The robot then moves more slowly, but the recorded commands are
    the same as at full speed.

    Args:
        session: Session to run; other threads must access it through :meth:`do`.
        device: Source of the operator's input.
        folder: Folder of recordings, including unfinished ones.
        show: Called after each period, in the loop's thread.
        fail: Called in the loop's thread when an unexpected error ends the loop; the unfinished recording is saved
            before.
    """

    def __init__(
        self,
        session: TeleoperationSession,
        device: InputDevice,
        folder: RecordingFolder,
        *,
        show: Callable[[LoopState], None],
        fail: Callable[[], None],
    ) -> None:
        self._session, self._device, self._folder = session, device, folder
        self._show, self._fail = show, fail
        # The lock is reentrant, because viser runs the callbacks of a value in the thread that sets it, even inside
        # ``do``.
        self._lock = threading.RLock()
        self._closed = threading.Event()
        self._begun: deque[float] = deque(maxlen=_WINDOW)
        self._work: deque[float] = deque(maxlen=_WINDOW)
        self._saved, self._saved_count = time.monotonic(), 0
        self._thread = threading.Thread(target=self._run, name="nimbus-teleoperation", daemon=True)

    def start(self) -> None:
        """Start the loop."""
        self._thread.start()

    def do(self, act: Callable[[TeleoperationSession], _Result]) -> _Result:
        """Call a function with the session between two periods, for example to apply a button.

        Raises:
            InputError: The function refuses the call.
        """
        with self._lock:
            return act(self._session)

    def close(self) -> None:
        """Stop the loop; an unfinished recording stays on disk. The loop's thread may also call this."""
        self._closed.set()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join()
        self._saved_count = 0  # save even if only the prompt has changed
        self._save()
        self._device.close()

    def _run(self) -> None:
        try:
            self._control()
        except Exception:  # at the top of a thread, no caller sees the error
            _log.exception("teleoperation stopped")
            try:
                self._save()
            finally:
                self._fail()

    def _control(self) -> None:
        period = 1.0 / self._session.task.rate
        due = time.monotonic()
        while not self._closed.is_set():
            begin = time.monotonic()
            self._begun.append(begin)
            state = self._advance()
            if begin - self._saved > _SAVED_EVERY:
                self._save()
            self._work.append(time.monotonic() - begin)
            self._show(LoopState(session=state, rate=self._rate(), work=sorted(self._work)[len(self._work) // 2]))
            due = max(due + period, time.monotonic())
            self._closed.wait(max(0.0, due - time.monotonic()))

    def _advance(self) -> SessionState:
        with self._lock:
            try:
                given = self._device.poll()
                return self._session.step(given)
            except DeviceLost as error:
                self._session.pause(
                    f"{error}; nothing is lost: press record to continue the recording, or keep to finish it"
                )
            except InputError as error:
                self._session.pause(str(error))
            if self._session.phase is SessionPhase.PRACTICE:
                return self._session.step(IDLE)
            return self._session.state()

    def _rate(self) -> float:
        if len(self._begun) < 2 or self._begun[-1] <= self._begun[0]:
            return 0.0
        return (len(self._begun) - 1) / (self._begun[-1] - self._begun[0])

    def _save(self) -> None:
        with self._lock:
            self._saved = time.monotonic()
            session = self._session
            if not session.is_recording or session.step_count < SHORTEST or session.step_count == self._saved_count:
                return
            self._saved_count = session.step_count
            # The lock is held, so that a recording that is kept or discarded at this moment is not saved again.
            try:
                self._folder.save_unfinished(session.recording())
            except (OSError, InputError) as error:
                _log.warning("the unfinished recording is not saved: %s", error)
