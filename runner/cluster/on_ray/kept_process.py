"""Program that is restarted when it dies, by a thread that lives as long as this process."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from nimbus.runner.system.child_module import module_environment
from nimbus.runner.system.processes import describe

_MOST_ENDS = 6
"""Number of exits without progress after which a program is not restarted."""
_KEPT_VARIABLES = ("PATH", "HOME", "USER", "LOGNAME", "LANG", "TMPDIR", "TZ", "LD_LIBRARY_PATH", "PYTHONPATH")
_KEPT_PREFIXES = ("NIMBUS_", "AWS_", "GOOGLE_", "AZURE_", "XDG_", "LC_")
"""Environment variables passed to a program; Ray sets others, such as ``OMP_NUM_THREADS``."""


class KeptProcess:
    """Child program that dies with this process.

    The death signal follows the thread that started the program, which is a thread of this object that never ends
    earlier.

    Args:
        words: Command; the last word is the id of this process.
        log: File for its standard error.
        text: Standard input.
        is_over: Called with its exit code and standard output: its work is done.
    """

    def __init__(self, words: Sequence[str], log: Path, *, text: str = "", is_over: Callable[[int, str], bool]) -> None:
        self._words, self._log, self._text, self._is_over = words, log, text, is_over
        self._process: subprocess.Popen[str] | None = None
        self._ends = 0
        self._is_stopping = False
        self.output = ""
        """Standard output of the last start."""
        self.failure = ""
        """Reason why it is not restarted."""
        self.over = threading.Event()
        """Set once it is not restarted."""
        self._thread = threading.Thread(target=self._keep, daemon=True, name="keeper")

    def start(self) -> None:
        """Start the program."""
        self._thread.start()

    @property
    def pid(self) -> int:
        """Process id; 0 if it is not running."""
        process = self._process
        return process.pid if process and process.poll() is None else 0

    def note_progress(self) -> None:
        """Reset the count of exits, after progress."""
        self._ends = 0

    def stop(self) -> None:
        """Stop it, and do not restart it."""
        self._is_stopping = True
        if pid := self.pid:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)

    def kill(self) -> None:
        """Kill it."""
        self._is_stopping = True
        if self._process and self._process.poll() is None:
            self._process.kill()

    def _keep(self) -> None:
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
            if self._is_stopping:  # stop was requested between the check and the start
                self._process.terminate()
            self.output, _ = self._process.communicate(self._text)
            code = self._process.returncode
            if self._is_over(code, self.output):
                break
            self._ends += 1
            if self._ends >= _MOST_ENDS:
                last = self._log.read_text(errors="replace").strip().splitlines()[-1:]
                self.failure = f"ended {self._ends} times, the last time {describe(code)}: {''.join(last)}"
                break
            if not self._is_stopping:
                time.sleep(min(10.0, 0.2 * 2**self._ends) if self._ends > 1 else 0.0)
        self.over.set()
        threading.Event().wait()  # the death signal of its children may follow this thread


def kept_environment(given: Mapping[str, str]) -> dict[str, str]:
    """Return the environment variables for a head or an agent."""
    kept = module_environment()
    return {
        name: value
        for name, value in kept.items()
        if (name in given or name == "PYTHONPATH") and (name in _KEPT_VARIABLES or name.startswith(_KEPT_PREFIXES))
    }
