"""A thread that does nothing but wake: where it comes late, the machine stood still, not just the loop beside it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


class Pulse:
    """Calls a function again and again, while the main thread waits for a disk.

    Args:
        period: [s] between two calls.
        beat: Called with the time [s monotonic], by the thread.
    """

    def __init__(self, period: float, beat: Callable[[float], object]) -> None:
        self._period, self._beat = period, beat
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin; where it beats already, nothing happens."""
        if self._thread is None:
            self._over.clear()
            self._thread = threading.Thread(target=self._run, name="pulse", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """End the thread, so that this process may be forked; a second time does nothing."""
        if self._thread is not None:
            self._over.set()
            self._thread.join()
            self._thread = None

    def _run(self) -> None:
        while not self._over.wait(self._period):
            self._beat(time.monotonic())
