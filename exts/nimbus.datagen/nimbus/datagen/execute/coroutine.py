"""Function that runs in a separate thread, and only while the thread that resumed it waits."""

from __future__ import annotations

import threading
from collections.abc import Callable


class _TurnStopped(BaseException):
    """Raised inside a function to end it where it pauses."""

    def __init__(self, turn: Coroutine) -> None:
        self.turn = turn


class Coroutine:
    """Function that runs in turns; a turn lasts from :meth:`resume` until the function pauses or ends.

    It runs in a thread, because a skill is a plain function that pauses deep inside its calls. Only one of the threads
    runs at a time.
    """

    def __init__(self, work: Callable[[], None]) -> None:
        self._work = work
        self._go, self._back = threading.Semaphore(0), threading.Semaphore(0)
        self._stop = False
        self.done = False
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        self._go.acquire()
        try:
            if not self._stop:
                self._work()
        except _TurnStopped as stopped:
            # If an enclosing coroutine is being stopped, its exception must leave this function as well.
            if stopped.turn is not self:
                self.error = stopped
        except BaseException as error:  # the caller of resume() reads it
            self.error = error
        self.done = True
        self._back.release()

    def resume(self) -> None:
        """Run until it pauses or ends."""
        self._go.release()
        self._back.acquire()

    def pause(self) -> None:
        """Wait for the next turn; only the function may call this, in its own thread or in one that it waits for."""
        if not self._stop:
            self._back.release()
            self._go.acquire()
        if self._stop:
            raise _TurnStopped(self)

    def stop(self) -> None:
        """End the function where it pauses."""
        if not self.done:
            self._stop = True
            self.resume()
        self._thread.join()
