"""Start of Nimbus in separate processes: the host of a panel never plans, simulates or stores anything itself."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from nimbus.datagen.errors import InputError, quote_words
from nimbus.datagen.files.installation import PACKAGE_FOLDER, checkout_folder
from nimbus.datagen.files.own_files import is_own
from nimbus.datagen.files.variables import variable_program

_COMMAND_LINE = "import sys; from nimbus.runner.cli import main; sys.exit(main())"
_HOSTS_OWN = ("PYTHONHOME", "PYTHONPATH", "PYTHONSTARTUP", "LD_LIBRARY_PATH", "LD_PRELOAD", "CARB_APP_PATH", "EXP_PATH")
"""Variables that Kit sets for its own interpreter and that would break another one."""


class RunningProcess(Protocol):
    """Started process."""

    def poll(self) -> int | None:
        """Return the exit code without blocking; None while it runs."""
        ...

    def output(self) -> str:
        """Return its output so far."""
        ...

    def cancel(self) -> None:
        """Request a stop after the work in progress; a second call stops at once."""
        ...


class Launcher(Protocol):
    """Starter of commands of Nimbus."""

    def start(self, words: Sequence[str]) -> RunningProcess:
        """Start ``nimbus <words>``.

        Raises:
            InputError: The process cannot be started.
        """
        ...


class ProcessLauncher:
    """Launcher of processes that outlive a crash of the host.

    Args:
        folder: Folder for their output.
        interpreter: A Python that has Nimbus's dependencies; empty to look for one.
    """

    def __init__(self, folder: Path, *, interpreter: str = "") -> None:
        self._folder, self._interpreter, self._count = folder, interpreter, 0

    def start(self, words: Sequence[str]) -> Process:
        """Start a command in a new session."""
        python = find_interpreter(self._interpreter)
        self._folder.mkdir(parents=True, exist_ok=True)
        self._count += 1
        path = self._folder / f"{os.getpid()}-{self._count:03d}-{words[0]}.log"
        with path.open("wb") as output:
            process = subprocess.Popen(
                [python, "-P", "-c", _COMMAND_LINE, *words],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=environment(os.environ),
                start_new_session=True,
            )
        return Process(process, path)


class Process:
    """A process with its output in a file."""

    def __init__(self, process: subprocess.Popen[bytes], path: Path) -> None:
        self._process, self._path = process, path

    def poll(self) -> int | None:
        """Return the exit code; None while it runs."""
        return self._process.poll()

    def output(self) -> str:
        """Return its output so far."""
        return self._path.read_text(encoding="utf-8", errors="replace")

    def cancel(self) -> None:
        """Interrupt the process like Ctrl-C, after which it stores work in progress; a second call stops it at once."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)


def environment(host: Mapping[str, str]) -> dict[str, str]:
    """Return the environment for a process started from a host with its own interpreter."""
    kept = {name: value for name, value in host.items() if name not in _HOSTS_OWN}
    return kept | {"PYTHONPATH": str(PACKAGE_FOLDER)}


def find_interpreter(wanted: str = "") -> str:
    """Find a Python with Nimbus's dependencies: the given one, that of the checkout, or that of the command ``nimbus``.

    Raises:
        InputError: There is no interpreter; the message gives the fix.
    """
    checkout = checkout_folder()
    where, make = ("", ("make", "-C", checkout)) if checkout else ("in a checkout of Nimbus, ", ("make",))
    instead = f"{where}type: {quote_words(*make, '.venv/installed')}; then name its .venv/bin/python in the panel"
    if given := wanted or os.environ.get("NIMBUS_PYTHON", ""):
        wanted = variable_program("interpreter" if wanted else "NIMBUS_PYTHON", given)
        if shutil.which(wanted) is None:
            raise InputError("no such Python interpreter", where=wanted, instead=instead)
        return wanted
    # Another user may have put the environment into a checkout in a shared folder.
    if checkout and (python := checkout / ".venv/bin/python").is_file() and is_own(checkout / ".venv"):
        return str(python)
    if script := shutil.which("nimbus"):
        beside = Path(script).resolve().with_name("python")
        if beside.is_file():
            return str(beside)
    raise InputError("no Python with Nimbus's dependencies was found", instead=instead)
