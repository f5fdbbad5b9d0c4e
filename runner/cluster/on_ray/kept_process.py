"""Child program that a thread of this process restarts when it dies."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from nimbus.runner.system.child_module import last_line, module_environment
from nimbus.runner.system.processes import describe

_MOST_ENDS = 6
"""Number of exits without progress after which the program is not restarted."""
_KEPT_VARIABLES = ("PATH", "HOME", "USER", "LOGNAME", "LANG", "TMPDIR", "TZ", "LD_LIBRARY_PATH", "PYTHONPATH")
_KEPT_PREFIXES = ("NIMBUS_", "AWS_", "GOOGLE_", "AZURE_", "XDG_", "LC_")
"""Prefixes of variables passed to the program, besides ``_KEPT_VARIABLES``; variables set by Ray, such as
``OMP_NUM_THREADS``, are dropped."""


class KeptProcess:
    """Child program that is restarted when it dies, and ends with this process.

    The kernel sends the death signal when the thread that started the program ends. Therefore a thread of this object
    starts the program, and that thread lives until the process ends.

    Args:
        words: Command line; its last word is the id of this process.
        log: File for the program's standard error.
        text: Text for the program's standard input.
        is_over: Called with exit code and standard output after each exit; returns True if no restart is needed.
    """

    def __init__(self, words: Sequence[str], log: Path, *, text: str = "", is_over: Callable[[int, str], bool]) -> None:
        self._words, self._log, self._text, self._is_over = words, log, text, is_over
        self._process: subprocess.Popen[str] | None = None
        self._ends = 0
        self._is_stopping = False
        self.output = ""
        """Standard output of the program's last run."""
        self.failure = ""
        """Reason why the program is not restarted, if it failed too often or cannot be started."""
        self.over = threading.Event()
        """Event that is set once the program has ended and is not restarted."""
        self._thread = threading.Thread(target=self._keep, daemon=True, name="keeper")

    def start(self) -> None:
        """Start the program."""
        self._thread.start()

    @property
    def pid(self) -> int:
        """Process id of the program; 0 if it is not running."""
        process = self._process
        return process.pid if process and process.poll() is None else 0

    def note_progress(self) -> None:
        """Reset the count of exits, because the program made progress."""
        self._ends = 0

    def stop(self) -> None:
        """Terminate the program for good."""
        self._is_stopping = True
        if pid := self.pid:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)

    def kill(self) -> None:
        """Kill the program for good."""
        self._is_stopping = True
        if self._process and self._process.poll() is None:
            self._process.kill()

    def _keep(self) -> None:
        try:
            self._restart()
        except Exception as error:  # top of a thread: the owner sees only `failure` and `over`
            traceback.print_exc()
            self.failure = f"cannot be kept running: {error}"
            self.kill()
        finally:
            self.over.set()
        threading.Event().wait()  # the end of this thread would send the death signal to its children

    def _restart(self) -> None:
        """Start the program, and start it again after each exit until it is over, fails too often or is stopped."""
        while not self._is_stopping:
            with self._log.open("a") as log:
                self._process = subprocess.Popen(
                    self._words,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    text=True,
                    env=kept_environment(os.environ),
                    start_new_session=True,
                )
            if self._is_stopping:  # requested between the check and the start
                self._process.terminate()
            self.output, _ = self._process.communicate(self._text)
            code = self._process.returncode
            if self._is_over(code, self.output):
                break
            self._ends += 1
            if self._ends >= _MOST_ENDS:
                self.failure = f"ended {self._ends} times, the last time {describe(code)}: {last_line(self._log)}"
                break
            if not self._is_stopping:
                time.sleep(min(10.0, 0.2 * 2**self._ends) if self._ends > 1 else 0.0)


def kept_environment(given: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a head or an agent: the variables that are kept from ``given``, and the module path."""
    kept = module_environment()
    return {
        name: value
        for name, value in kept.items()
        if (name in given or name == "PYTHONPATH") and (name in _KEPT_VARIABLES or name.startswith(_KEPT_PREFIXES))
    }
