"""Execution of functions in a child process with limits, for parsers of files that may crash or never end.

A server process (:mod:`.limited_server`) starts with the first call and ends with this process. Limits of CPU time can
only reject a file; they do not affect content.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.asset_folders import folders_of
from nimbus.datagen.files.cache import full_disk, shared_folders
from nimbus.datagen.files.own_files import refuse_links

SECONDS = 60
"""Limit of a call's CPU time [s]; the largest accepted mesh takes 20 s."""
MEMORY = 3 << 30
"""Limit of the memory that a call may add to the process [bytes]; the largest accepted mesh takes about 1.5 GB."""
_ENDING = 2.0
"""Time for a server to end [s]."""
_SECRET = re.compile(
    "TOKEN|SECRET|PASS|CREDENTIAL|CONNECTION_STRING|COOKIE|JWT|DSN|WEBHOOK|IDENTITY_HEADER|_PWD"
    "|KEYS?(?![A-Z])|(?<![A-Z])(AUTH|PAT|SAS)(?![A-Z])",
    re.IGNORECASE,
)
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
            [sys.executable, "-P", "-m", "nimbus.datagen.files.limited_server"],
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
