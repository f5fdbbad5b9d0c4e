"""Long work beside the browser's callbacks: one thread, one piece of work at a time, the newest wish of a kind only."""

from __future__ import annotations

import logging
import threading
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
        self._wishes: dict[str, Callable[[], object]] = {}
        self._changed = threading.Condition()
        self._busy = self._closed = False
        self._thread = threading.Thread(target=self._work, name="nimbus-studio", daemon=True)
        self._thread.start()

    def send(self, what: str, work: Callable[[], object]) -> None:
        """Do it when its turn comes; a wish of the same name that has not begun is forgotten."""
        with self._changed:
            self._wishes.pop(what, None)
            self._wishes[what] = work
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
                self._changed.wait_for(lambda: self._wishes or self._closed)
                if self._closed:
                    return
                what = next(iter(self._wishes))
                work = self._wishes.pop(what)
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
