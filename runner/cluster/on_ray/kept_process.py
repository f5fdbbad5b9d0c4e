"""A program that is started again when it dies, by a thread that lives as long as this process."""

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
"""A program that ends so often without progress in between is not started again."""
_KEPT_VARIABLES = ("PATH", "HOME", "USER", "LOGNAME", "LANG", "TMPDIR", "TZ", "LD_LIBRARY_PATH", "PYTHONPATH")
_KEPT_PREFIXES = ("NIMBUS_", "AWS_", "GOOGLE_", "AZURE_", "XDG_", "LC_")
"""Variables that a program gets: an engine sets others, such as ``OMP_NUM_THREADS`` and ``CUDA_VISIBLE_DEVICES``."""


class KeptProcess:
    """One program below this process, which dies with it.

    The death signal follows the thread that started the program: it is one of this object, which never ends before.

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
        """Reason for which it is not started again."""
        self.over = threading.Event()
        """Set once it is not started again."""
        self._thread = threading.Thread(target=self._keep, daemon=True, name="keeper")

    def start(self) -> None:
        """Start it."""
        self._thread.start()

    @property
    def pid(self) -> int:
        """Process id; 0 where it is not running."""
        process = self._process
        return process.pid if process and process.poll() is None else 0

    def note_progress(self) -> None:
        """Forget earlier ends: something was done."""
        self._ends = 0

    def stop(self) -> None:
        """Ask it to end, and start it no more."""
        self._is_stopping = True
        if pid := self.pid:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)

    def kill(self) -> None:
        """End it."""
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
            if self._is_stopping:  # asked between the check and the start
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
        threading.Event().wait()  # the death signal of what it started may follow this thread


def kept_environment(given: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of an environment that a head or an agent gets."""
    kept = module_environment()
    return {
        name: value
        for name, value in kept.items()
        if (name in given or name == "PYTHONPATH") and (name in _KEPT_VARIABLES or name.startswith(_KEPT_PREFIXES))
    }
