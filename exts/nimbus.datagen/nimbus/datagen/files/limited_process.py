"""Execution of functions in a child process with limits, for parsers of files that may crash or never end.

A server process starts with the first call and ends with this process. It imports the function's modules, and forks a
child for each call, which costs a few ms and isolates the child's state. Limits of CPU time can only reject a file;
they do not affect content.

The working folder of each call is new and empty, because that of the user may contain files of others, and libraries
open files there by relative names. Where the kernel can enforce it, a call opens the files that were named for it and
no others, starts no other programs than those of the system, and uses no sockets, terminals and shared memory; see
:mod:`.access_limits`.
"""

from __future__ import annotations

import errno
import importlib
import json
import os
import re
import resource
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NoReturn

from nimbus.datagen.errors import InputError, StorageError
from nimbus.datagen.files.access_limits import AccessLimits, limit_access, python_places
from nimbus.datagen.files.asset_folders import folders_of
from nimbus.datagen.files.cache import full_disk, full_folder, shared_folders
from nimbus.datagen.files.own_files import refuse_links

SECONDS = 60
"""Limit of a call's CPU time [s]; the largest accepted mesh takes 20 s."""
MEMORY = 3 << 30
"""Limit of the memory that a call may add to the process [bytes]; the largest accepted mesh takes about 1.5 GB."""
FILE_BYTES = 16 << 30
"""Limit of the files that a call writes [bytes]."""
ANSWER_BYTES = 512 << 20
"""Limit of a call's answer [bytes]; a library of a million meshes, the limit of an import, is described by 508 MB."""
_WAIT = 3.0
"""Wall-clock limit of a call as a multiple of its CPU limit; it ends calls that sleep, for example on a pipe."""
_ENDING = 2.0
"""Time for a server to end [s]."""
_SECRET = re.compile("TOKEN|SECRET|PASS|CREDENTIAL|API_?KEY|_KEY(_|$)", re.IGNORECASE)
"""Parts of the names of variables that a parser does not see; nor does it see addresses with a password."""
_PASSWORD = re.compile(r"://[^/@]*:[^/@]*@")
_SIMPLER = "make it smaller or simpler, or export it again"


class LimitedProcessError(RuntimeError):
    """Raised for a bug in a function that ran in a child process; the text is the child's traceback."""


def run_limited(
    function: str,
    arguments: dict[str, Any],
    *,
    where: str,
    seconds: int = SECONDS,
    memory: int = MEMORY,
    reads: Iterable[Path] | None = (),
    writes: Iterable[Path] = (),
) -> Any:
    """Run a function in a child process with limits; it has no shared memory, so no locks and pools of processes.

    Args:
        function: ``package.module:name``; it takes and returns plain JSON values.
        arguments: Arguments by name. Paths, alone or in lists, arrive as texts of absolute paths; errors state them as
            given.
        where: File that is read, for errors.
        seconds: CPU time that the call may use [s].
        memory: Memory that the call may add to the process [bytes].
        reads: Files and folders that the call may read, besides the paths among its arguments and the folders of these
            files; None for all.
        writes: Existing folders that the call may read and change, besides its working folder.

    Raises:
        InputError: The function raises it, exceeds a limit, or crashes.
        StorageError: The disk of a folder into which it writes is full.
        LimitedProcessError: The function raises another error.
    """
    return _Call(function, arguments, where, seconds, memory, reads, tuple(writes)).run_on(_server())


class LimitedPool:
    """Pool of servers for simultaneous calls of several threads; :meth:`close` ends them.

    Args:
        count: Number of servers.
    """

    def __init__(self, count: int) -> None:
        self._free: SimpleQueue[_Server] = SimpleQueue()
        self._servers = [_Server() for _ in range(count)]
        for server in self._servers:
            self._free.put(server)

    def run(
        self,
        function: str,
        arguments: dict[str, Any],
        *,
        where: str,
        seconds: int,
        memory: int = MEMORY,
        reads: Iterable[Path] | None = (),
        writes: Iterable[Path] = (),
    ) -> Any:
        """Run a function like :func:`run_limited`, on a free server; waits until one is free."""
        server = self._free.get()
        try:
            return _Call(function, arguments, where, seconds, memory, reads, tuple(writes)).run_on(server)
        finally:
            self._free.put(server)

    def close(self) -> None:
        """End the servers and their children."""
        for server in self._servers:
            server.end()


@dataclass(frozen=True)
class _Call:
    """Call of a function; the fields are the arguments of :func:`run_limited`."""

    function: str
    arguments: dict[str, Any]
    where: str
    seconds: int
    memory: int
    reads: Iterable[Path] | None
    writes: tuple[Path, ...]

    def run_on(self, server: _Server) -> Any:
        result = self._result(server.call(self._request()))
        for folder in self.writes:  # this process follows links that a parser, taken over by a file, could leave there
            try:
                refuse_links(folder.resolve())
            except InputError:
                what, instead = "its reader left a link or a pipe", "do not use this file"
                raise InputError(what, where=self.where, instead=instead) from None
        return result

    def _request(self) -> dict[str, Any]:
        def plain(value: Any) -> Any:
            if isinstance(value, list):
                return [plain(one) for one in value]
            return str(value.absolute()) if isinstance(value, Path) else value

        given = {name: plain(value) for name, value in self.arguments.items()}
        allowed = None if self.reads is None else plain([*self._named(), *self.reads, *shared_folders()])
        limits = {"seconds": self.seconds, "memory": self.memory, "reads": allowed, "writes": plain(list(self.writes))}
        return {"function": self.function, "arguments": given} | limits

    def _named(self) -> list[Path]:
        """Return the files and folders among the arguments, and the folders of assets in which files lie."""
        paths = self._paths()
        folders = {path if path.is_dir() else path.parent for path in paths}
        return [*paths, *(place for folder in folders for place in folders_of(folder))]

    def _paths(self) -> list[Path]:
        values = [one for value in self.arguments.values() for one in (value if isinstance(value, list) else [value])]
        return [value for value in values if isinstance(value, Path)]

    def _as_given(self, where: str) -> str:
        """Write the path at the beginning of an error's location as the caller gave it."""
        for path in self._paths():
            if where.startswith(whole := str(path.absolute())):
                return f"{path}{where[len(whole) :]}"
        return where

    def _result(self, reply: dict[str, Any]) -> Any:
        if "refused" in reply:
            what, there, instead = reply["refused"]
            raise InputError(what, where=self._as_given(there), instead=instead)
        if "full" in reply:
            raise full_disk(Path(reply["full"]))
        if "failed" in reply:
            raise InputError(f"cannot be read: {reply['failed']}", where=self.where, instead=_SIMPLER)
        if "traceback" in reply:
            raise LimitedProcessError(reply["traceback"])
        return reply["result"]


def _is_secret(name: str, value: str) -> bool:
    return bool(_SECRET.search(name) or _PASSWORD.search(value))


class _Server:
    """Server process that forks a child for each call; calls of several threads run one after another."""

    def __init__(self) -> None:
        self.owner = os.getpid()
        self._turn = threading.Lock()
        # The search path may have been extended, as in Isaac Sim's Python. Relative entries such as "" are left out.
        path = os.pathsep.join(place for place in sys.path if os.path.isabs(place))
        environment = {name: value for name, value in os.environ.items() if not _is_secret(name, value)}
        environment |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": path}
        if folder := os.environ.get("TMPDIR"):  # it may be relative to the working folder
            environment["TMPDIR"] = os.path.abspath(os.path.expanduser(folder))
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "nimbus.datagen.files.limited_process"],
            env=environment,
            cwd="/",
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

    @property
    def is_alive(self) -> bool:
        """Return True if the server accepts calls and belongs to this process."""
        return self.owner == os.getpid() and self._process.poll() is None

    def end(self) -> None:
        """End the process, and any call that is running in it."""
        with suppress(OSError):
            self._process.stdin.close() if self._process.stdin else None  # the server then kills the call's process
        try:
            self._process.wait(_ENDING)
        except subprocess.TimeoutExpired:  # a forked process of this one keeps the input open
            self._process.kill()
            self._process.wait()

    def call(self, request: dict[str, Any]) -> dict[str, Any]:
        """Request a call, and wait for its end."""
        pipe, answers = self._process.stdin, self._process.stdout
        assert pipe and answers
        with self._turn:
            pipe.write(json.dumps(request).encode() + b"\n")
            pipe.flush()
            line = answers.readline()
        if not line:
            raise LimitedProcessError("the server of limited processes ended")
        return json.loads(line)


_known: list[_Server] = []
_turn = threading.Lock()


def _server() -> _Server:
    with _turn:
        if not _known or not _known[0].is_alive:
            _known[:] = [_Server()]
        return _known[0]


def serve() -> None:
    """Answer calls from standard input until the input ends."""
    answers = os.fdopen(os.dup(1), "wb", buffering=0)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 1)
    python_places()  # each call is a fork of this process, which need not find them again
    while line := sys.stdin.buffer.readline():
        request = json.loads(line)
        module, _, name = request["function"].partition(":")
        function = getattr(importlib.import_module(module), name)
        answers.write(json.dumps(_fork(function, request, answers.fileno())).encode() + b"\n")


def _fork(function: Any, request: dict[str, Any], answers: int) -> dict[str, Any]:
    try:
        folder = tempfile.mkdtemp(prefix="nimbus-limited-")
    except OSError as error:
        return {"refused": [f"cannot make a temporary folder: {error}", "TMPDIR", "give a writable folder with space"]}
    try:
        return _fork_in(folder, function, request, answers)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _fork_in(folder: str, function: Any, request: dict[str, Any], answers: int) -> dict[str, Any]:
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.close(reader)
        os.close(answers)  # a parser that a file has taken over must not answer for other files
        _run(function, request, writer, folder)
    os.close(writer)
    content, failed = _answer(reader, request["seconds"])
    with suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    with suppress(ValueError, RecursionError):
        return json.loads(content)
    if status == -signal.SIGXCPU:
        failed = _late(request["seconds"])
    crashed = f"its reader crashed ({signal.Signals(-status).name if status < 0 else f'exit code {status}'})"
    return {"failed": failed or crashed}


def _answer(reader: int, seconds: int) -> tuple[bytearray, str]:
    """Return a child's answer, or else the reason why it is not awaited any more, for example a caller that ended."""
    content, end = bytearray(), time.monotonic() + _WAIT * seconds
    with os.fdopen(reader, "rb", buffering=0) as file:
        while ready := select.select([file, 0], [], [], max(0.0, end - time.monotonic()))[0]:
            if file not in ready:
                break
            block = file.read(1 << 20)
            if not block:
                return content, ""
            content += block
            if len(content) > ANSWER_BYTES:
                return bytearray(), f"its reader returns more than {ANSWER_BYTES >> 20} MB"
    return bytearray(), _late(seconds)


def _late(seconds: int) -> str:
    return f"it takes more than {seconds} s"


def _run(function: Any, request: dict[str, Any], writer: int, folder: str) -> NoReturn:
    try:
        os.chdir(folder)
        os.setsid()
        tempfile.tempdir = os.environ["TMPDIR"] = folder
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 0)
        reads = None if request["reads"] is None else tuple(map(Path, request["reads"]))
        limit_access(AccessLimits(reads, (Path(folder), *map(Path, request["writes"])), is_isolated=True))
        pages = int(Path("/proc/self/statm").read_text().split()[0]) if Path("/proc/self/statm").exists() else 0
        _limit(resource.RLIMIT_AS, pages * resource.getpagesize() + request["memory"])
        _limit(resource.RLIMIT_CPU, request["seconds"])
        _limit(resource.RLIMIT_CORE, 0)
        _limit(resource.RLIMIT_FSIZE, FILE_BYTES)
        reply = _reply(function, request)
        with os.fdopen(writer, "wb") as file:
            file.write(json.dumps(reply).encode())
    finally:
        os._exit(0)


def _limit(kind: int, wanted: int) -> None:
    """Lower a resource limit, unless it is already lower."""
    _, hard = resource.getrlimit(kind)
    value = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(kind, (value, hard))


def _reply(function: Any, request: dict[str, Any]) -> dict[str, Any]:
    try:
        return {"result": function(**request["arguments"])}
    except StorageError as error:
        return {"full": error.where}
    except InputError as error:
        return {"refused": [error.what, error.where, error.instead]}
    except Exception as error:  # any bug is reported; run_limited raises it in the caller, with this traceback
        if _is_out_of_memory(error):
            return {"failed": f"it takes more than {request['memory'] / 2**30:.1f} GB of memory"}
        if full := full_folder(error, [Path(tempfile.gettempdir()), *map(Path, request["writes"])]):
            return {"full": str(full)}
        return {"traceback": traceback.format_exc()}


def _is_out_of_memory(error: Exception) -> bool:
    """Return True for the errors that Python and its imports raise when an allocation fails."""
    if isinstance(error, OSError) and error.errno == errno.ENOMEM:
        return True
    if isinstance(error, SystemError):  # raised if C code returns an error without setting an exception
        return "without exception set" in str(error) or "without setting an exception" in str(error)
    if isinstance(error, ImportError):  # raised by the loader of shared libraries
        return "cannot allocate memory" in str(error).lower() or "failed to map segment" in str(error)
    return isinstance(error, MemoryError)


if __name__ == "__main__":
    serve()
