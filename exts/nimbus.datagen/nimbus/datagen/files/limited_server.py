"""Server of :mod:`.limited_process`: reads calls from standard input, and forks a child with limits for each.

The server imports the module of the function and keeps it; a fork costs a few ms and isolates the child's state.

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
import resource
import select
import shutil
import signal
import sys
import tempfile
import time
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from nimbus.datagen.errors import InputError, StorageError
from nimbus.datagen.files.access_limits import AccessLimits, limit_access, python_places
from nimbus.datagen.files.cache import full_folder

FILE_BYTES = 16 << 30
"""Limit of the files that a call writes [bytes]."""
ANSWER_BYTES = 512 << 20
"""Limit of a call's answer [bytes]; a library of a million meshes, the limit of an import, is described by 508 MB."""
_WAIT = 3.0
"""Wall-clock limit of a call as a multiple of its CPU limit; it ends calls that sleep, for example on a pipe."""


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
