"""Background thread for work that takes longer than a click; of waiting tasks with one name, only the newest runs."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from nimbus.datagen.errors import InputError

_log = logging.getLogger("nimbus.ui")


def _ignore(_: str) -> None:
    return


class BackgroundTasks:
    """Queue of named tasks with one worker thread."""

    def __init__(self) -> None:
        self._report_activity: Callable[[str], None] = _ignore
        self._report_error: Callable[[str], None] = _ignore
        self._queue: dict[str, tuple[float, Callable[[], object]]] = {}
        """Due time [s monotonic] and work, by name."""
        self._changed = threading.Condition()
        self._is_busy = self._is_closed = False
        self._thread = threading.Thread(target=self._work, name="nimbus-ui", daemon=True)
        self._thread.start()

    def report_to(self, activity: Callable[[str], None], error: Callable[[str], None]) -> None:
        """Set the receivers of reports.

        Args:
            activity: Called with the name of the task at its start, and with "" at its end.
            error: Called with one line when a task fails.
        """
        self._report_activity, self._report_error = activity, error

    def submit(self, task: str, work: Callable[[], object], *, debounce: float = 0.0) -> None:
        """Queue a task; it replaces a pending one of the same name.

        Args:
            task: Name.
            work: Called in the worker thread.
            debounce: Delay, which restarts with each task of this name [s].
        """
        with self._changed:
            self._queue.pop(task, None)
            self._queue[task] = time.monotonic() + debounce, work
            self._changed.notify_all()

    def wait(self, *, timeout: float) -> bool:
        """Wait until the queue is empty; False after ``timeout`` [s]."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._queue and not self._is_busy, timeout)

    def close(self) -> None:
        """Drop all tasks that have not begun, and stop the thread."""
        with self._changed:
            self._is_closed = True
            self._queue.clear()
            self._changed.notify_all()

    def _work(self) -> None:
        while True:
            with self._changed:
                self._is_busy = False
                self._changed.notify_all()
                while (task := self._find_due()) is None and not self._is_closed:
                    self._changed.wait(self._seconds_to_next())
                if task is None or self._is_closed:
                    return
                _, work = self._queue.pop(task)
                self._is_busy = True
            self._report_activity(task)
            try:
                work()
            except InputError as error:
                self._report_error(str(error))
            except Exception:  # at the top of a thread, no caller sees the error, and the next task must run
                _log.exception("%s failed", task)
                self._report_error(f"{task}: a bug in Nimbus; see the traceback in the terminal; nothing is lost")
            finally:
                self._report_activity("")

    def _find_due(self) -> str | None:
        """Find the first task that is due."""
        now = time.monotonic()
        return next((task for task, (due, _) in self._queue.items() if due <= now), None)

    def _seconds_to_next(self) -> float | None:
        dues = [due for due, _ in self._queue.values()]
        return max(0.0, min(dues) - time.monotonic()) if dues else None
