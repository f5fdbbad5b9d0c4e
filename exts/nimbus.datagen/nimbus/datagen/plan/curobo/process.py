"""Client of cuRobo's process, which finds cuRobo, starts the process and sends requests."""

from __future__ import annotations

import atexit
import os
import select
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.search_paths import script_environment
from nimbus.datagen.files.variables import variable_program
from nimbus.datagen.geometry.torch_folder import torch_settings
from nimbus.datagen.machine import INSTANCE_GPU
from nimbus.datagen.plan.curobo import wire
from nimbus.datagen.progress import tick

PYTHON = "NIMBUS_CUROBO_PYTHON"
"""Environment variable with the path of the interpreter that has cuRobo; by default the one that runs Nimbus."""

# The other interpreter gets Nimbus's own files only, not the packages installed beside them. It may be older than the
# option -P, so the script itself removes the current folder, whose files could have the names of modules.
_START = (
    "import sys; sys.path[:] = filter(None, sys.path); "
    "import types; nimbus = types.ModuleType('nimbus'); nimbus.__path__ = [sys.argv[1]]; "
    "sys.modules['nimbus'] = nimbus; from nimbus.datagen.plan.curobo.server import main; main(int(sys.argv[2]))"
)
_REPOSITORY = "https://github.com/NVlabs/curobo"
_INSTEAD = {
    "missing": f"install cuRobo V2 from {_REPOSITORY} and name its interpreter in {PYTHON}, or use --planner ompl",
    "version_1": f"install cuRobo V2 (0.8 or newer) from {_REPOSITORY}, or use --planner ompl",
    "no_torch": f"install PyTorch with CUDA beside it, or name another interpreter in {PYTHON}, or use --planner ompl",
    "no_cuda": "run it on a machine with an NVIDIA GPU, or use --planner ompl",
}
_WHAT = {
    "missing": "there is no cuRobo in {python}",
    "version_1": "the cuRobo in {python} is version 1, which is not supported",
    "no_torch": "there is no PyTorch beside the cuRobo in {python}",
    "no_cuda": "PyTorch {torch} in {python} finds no CUDA device, and cuRobo has no other",
}


class CuroboProcess:
    """Process of cuRobo's interpreter; it ends with this object, or with the process that started it.

    Args:
        where: Option that requested cuRobo, for messages.

    Raises:
        InputError: cuRobo cannot be used; the message gives the fix.
    """

    def __init__(self, *, where: str = "--planner") -> None:
        named = os.environ.get(PYTHON, "")
        python = variable_program(PYTHON, named) if named else sys.executable
        environment = _environment(python)
        # A socket pair is used instead of pipes on stdin and stdout, because cuRobo and CUDA print to these.
        ours, theirs = socket.socketpair()
        self._channel = ours
        self._log = tempfile.TemporaryFile()
        package = str(Path(__file__).parents[3])
        with theirs:
            try:
                self._process = subprocess.Popen(
                    [python, "-c", _START, package, str(theirs.fileno())],
                    cwd="/",  # libraries open files of the current folder, which may be a dataset of others
                    pass_fds=(theirs.fileno(),),
                    stdin=subprocess.DEVNULL,
                    stdout=self._log,
                    stderr=self._log,
                    env=environment,
                )
            except OSError as error:
                ours.close()
                instead = f"set {PYTHON} to the interpreter that has cuRobo"
                raise InputError(f"{python}: {error.strerror or error}", where=PYTHON, instead=instead) from None
        try:
            found, _ = self._receive_at_last()
        except (EOFError, OSError, wire.MalformedMessageError):
            raise InputError(
                f"{python} cannot be checked for cuRobo: {self._last_words(1)}",
                where=where,
                instead=f"set {PYTHON} to the interpreter that has it, or use --planner ompl",
            ) from None
        if found["state"] != "ready":
            self.close()
            what = _WHAT[found["state"]].format_map({"torch": "", **found})
            raise InputError(what, where=where, instead=_INSTEAD[found["state"]])
        self.device = str(found["device"])

    def ask(self, header: dict[str, Any], arrays: wire.Arrays) -> tuple[dict[str, Any], wire.Arrays]:
        """Send a request and wait for the response.

        Raises:
            RuntimeError: An error in cuRobo's process; its traceback is shown.
        """
        try:
            wire.send(self._channel, header, arrays)
            answer, found = wire.receive(self._channel)
            while "notice" in answer:
                answer, found = self._receive_at_last()
        except (EOFError, OSError) as error:
            raise RuntimeError(f"cuRobo's process ended: {self._last_words(60)}") from error
        if "error" in answer:
            raise RuntimeError(f"in cuRobo's process:\n{answer['error']}\nits last output:\n{self._tail(20)}")
        return answer, found

    def _receive_at_last(self) -> tuple[dict[str, Any], wire.Arrays]:
        """Wait for imports and compiled kernels, with the heartbeat limit extended."""
        while not select.select([self._channel], [], [], 1.0)[0]:
            tick()
        return wire.receive(self._channel)

    @property
    def is_alive(self) -> bool:
        """Return True if it accepts requests."""
        return self._process.poll() is None

    def interrupt(self) -> None:
        """End the process from another thread; the pending request fails and shows where the process was."""
        self._process.terminate()  # its stacks go to its output
        try:
            self._process.wait(timeout=5.0)
        except subprocess.TimeoutExpired:
            self._process.kill()

    def close(self) -> None:
        """End the process."""
        self._channel.close()
        try:
            self._process.wait(timeout=5.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._log.close()

    def _last_words(self, count: int) -> str:
        self._process.kill()
        self._process.wait()
        return self._tail(count) or f"no output, exit code {self._process.returncode}"

    def _tail(self, count: int) -> str:
        """Return the last lines of the process's output; the offset is shared with the process, so it is not moved."""
        size = os.fstat(self._log.fileno()).st_size
        start = max(0, size - 500 * count)
        text = os.pread(self._log.fileno(), size - start, start).decode(errors="replace")
        return "\n".join(text.strip().splitlines()[-count:])


def check_curobo(*, where: str = "--planner") -> None:
    """Check that cuRobo can be used here.

    Raises:
        InputError: It cannot; the message gives the fix.
    """
    CuroboProcess(where=where).close()


_running: dict[int, CuroboProcess] = {}
"""cuRobo's process by the id of the process that started it. All attempts share one GPU context and one warm-up; a
forked process starts its own cuRobo process."""


def curobo_process() -> CuroboProcess:
    """Return the process of cuRobo, started at first use.

    Raises:
        InputError: cuRobo cannot be used.
    """
    running = _running.get(os.getpid())
    if running is None or not running.is_alive:
        _running.clear()
        running = _running[os.getpid()] = CuroboProcess()
        atexit.register(running.close)
    return running


def interrupt_curobo() -> None:
    """End this process's cuRobo from another thread, if it runs."""
    if running := _running.get(os.getpid()):
        running.interrupt()


def _environment(python: str) -> dict[str, str]:
    """Return the environment without our package paths, which do not fit another interpreter.

    An instance of Isaac Sim sees all GPUs; its cuRobo uses the first visible one, so it only sees the instance's own.

    Raises:
        InputError: The folder of compiled code cannot be used.
    """
    left_out = () if python == sys.executable else ("PYTHONPATH", "PYTHONHOME")
    kept = script_environment({name: value for name, value in os.environ.items() if name not in left_out})
    kept |= torch_settings()
    return kept | ({"CUDA_VISIBLE_DEVICES": gpu} if (gpu := os.environ.get(INSTANCE_GPU)) else {})
