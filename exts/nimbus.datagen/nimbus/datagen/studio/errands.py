"""Long work beside the browser's callbacks: one thread, one piece of work at a time, the newest wish of a kind only."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from nimbus.datagen.errors import InputError

_log = logging.getLogger("nimbus.studio")


class Errands:
    """Does what takes longer than a click.

    Args:
        tell: Called with what is being done, and with "" when nothing is.
        complain: Called with one line when it could not be done.
    """

    def __init__(self, tell: Callable[[str], None], complain: Callable[[str], None]) -> None:
        self._tell, self._complain = tell, complain
        self._wishes: dict[str, tuple[float, Callable[[], object]]] = {}
        """When each is due [s monotonic], and what is done."""
        self._changed = threading.Condition()
        self._busy = self._closed = False
        self._thread = threading.Thread(target=self._work, name="nimbus-studio", daemon=True)
        self._thread.start()

    def send(self, what: str, work: Callable[[], object], *, rest: float = 0.0) -> None:
        """Do it when its turn comes; a wish of the same name that has not begun is forgotten.

        Args:
            what: Its name.
            work: What is done.
            rest: [s] Not before nobody has wished for the same for so long.
        """
        with self._changed:
            self._wishes.pop(what, None)
            self._wishes[what] = time.monotonic() + rest, work
            self._changed.notify_all()

    def wait(self, *, timeout: float) -> bool:
        """Until nothing is left to do; False when that takes longer [s]."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._wishes and not self._busy, timeout)

    def close(self) -> None:
        """Forget what has not begun."""
        with self._changed:
            self._closed = True
            self._wishes.clear()
            self._changed.notify_all()

    def _work(self) -> None:
        while True:
            with self._changed:
                self._busy = False
                self._changed.notify_all()
                while (what := self._due()) is None and not self._closed:
                    self._changed.wait(self._seconds_to_next())
                if what is None or self._closed:
                    return
                _, work = self._wishes.pop(what)
                self._busy = True
            self._tell(what)
            try:
                work()
            except InputError as error:
                self._complain(str(error))
            except Exception:  # the end of a thread: nobody above would hear of it, and the next errand must go on
                _log.exception("%s failed", what)
                self._complain(f"{what}: a bug in Nimbus; the traceback is in the terminal, nothing is lost")
            finally:
                self._tell("")

    def _due(self) -> str | None:
        """The first wish whose time has come."""
        now = time.monotonic()
        return next((what for what, (due, _) in self._wishes.items() if due <= now), None)

    def _seconds_to_next(self) -> float | None:
        dues = [due for due, _ in self._wishes.values()]
        return max(0.0, min(dues) - time.monotonic()) if dues else None
