"""Process of an external renderer, with lines of JSON through pipes, and arrays as NPY files in a shared folder."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.codec import parse_json, to_json
from nimbus.datagen.files.npy_files import read_npy_header
from nimbus.datagen.files.owned_folder import make_owned
from nimbus.datagen.progress import allow, tick

PROTOCOL = 1
"""Version of the protocol; both sides name it in their first line."""
_LONGEST_LINE = 1 << 20
"""Longest accepted line from the program [bytes]."""
_LAST_WORDS = 2000
"""Length of the end of standard error that an error message quotes [bytes]."""
_READS = 32
"""Number of reads that are enough to empty a full pipe."""
_FAREWELL = 2.0
"""Time for the program to exit by itself [s]."""
_UNREADABLE = (OSError, EOFError, ValueError, MemoryError)
"""Errors that NumPy's reader raises for a file that ends early or changes."""


class ProgramLostError(Exception):
    """Raised when the program exits or does not answer in time; another program may succeed."""


class ExternalProgram:
    """One running program.

    Args:
        command: Program and arguments; ``python`` is the interpreter of Nimbus.
        patience: Time without a line from the program after which it is killed [s].
        cwd: Folder in which the program starts; the current one may be a dataset of others.

    Raises:
        InputError: The program cannot be started.
    """

    def __init__(self, command: Sequence[str], *, patience: float, cwd: str = "/") -> None:
        self._command, self._patience = tuple(command), patience
        self._place = make_owned("nimbus-render-")
        self.folder = self._place.path
        self._unread, self._heard = b"", b""
        words = [sys.executable if word == "python" and not at else word for at, word in enumerate(command)]
        # A Python script may import files beside it, which commands of Nimbus prevent.
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONSAFEPATH"}
        try:
            self._process = subprocess.Popen(
                words,
                env=environment,
                cwd=cwd,
                bufsize=0,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as error:
            self._place.remove()
            what = f"'{command[0]}' cannot be started: {error.strerror or error}"
            raise InputError(what, where="render: external: command", instead="name an existing program") from None
        assert self._process.stdin and self._process.stdout and self._process.stderr
        self._stdin, self._stdout, self._stderr = self._process.stdin, self._process.stdout, self._process.stderr
        os.set_blocking(self._stdin.fileno(), False)
        os.set_blocking(self._stderr.fileno(), False)

    def ask(self, message: dict[str, Any], *, answer: str) -> dict[str, Any]:
        """Send a message of plain values and dataclasses, and wait for an answer of the given type.

        Lines of type ``alive`` before the answer count as progress.

        Raises:
            InputError: The program reports an error, or sends an answer of another type.
            ProgramLostError: The program exited, or was silent for too long.
        """
        with allow(self._patience + 10.0):
            self._send(to_json(message).encode() + b"\n")
            while (found := self._line()).get("type") == "alive":
                tick("render")
        if found.get("type") == "error":
            what = f"'{self._command[0]}' reports: {str(found.get('what'))[:300]}"
            raise InputError(what, where="render: external", instead="see its own messages, or change the task")
        if found.get("type") != answer:
            raise self.wrong(f"answers '{str(found.get('type'))[:40]}' to {message['type']}, expected '{answer}'")
        return found

    def _send(self, line: bytes) -> None:
        """Write a line without blocking this process when the program does not read and its pipe is full."""
        pipe, left = self._stdin.fileno(), memoryview(line)
        end = time.monotonic() + self._patience
        while left:
            if (wait := end - time.monotonic()) <= 0:
                raise ProgramLostError(f"it read nothing for {self._patience:g} s: {self._last_words()}")
            if not self._wait([], [pipe], wait):
                continue
            try:
                left = left[os.write(pipe, left) :]
            except BlockingIOError:
                continue
            except OSError:
                raise ProgramLostError(f"ended: {self._last_words()}") from None
            end = time.monotonic() + self._patience

    def _line(self) -> dict[str, Any]:
        """Read the next line as an object."""
        end = time.monotonic() + self._patience
        while b"\n" not in self._unread:
            left = end - time.monotonic()
            if left <= 0:
                raise ProgramLostError(f"no line from it in {self._patience:g} s: {self._last_words()}")
            if not self._wait([self._stdout.fileno()], [], left):
                continue
            part = os.read(self._stdout.fileno(), 1 << 16)
            if not part:
                raise ProgramLostError(f"ended: {self._last_words()}")
            self._unread += part
            if len(self._unread) > _LONGEST_LINE:
                raise self.wrong(f"sends a line of more than {_LONGEST_LINE} bytes")
        line, _, self._unread = self._unread.partition(b"\n")
        try:
            found = parse_json(line.decode())
        except ValueError:
            raise self.wrong(f"writes '{line[:60].decode(errors='replace')}' to its output") from None
        if not isinstance(found, dict):
            raise self.wrong("sends JSON that is not an object")
        return found

    def _wait(self, reading: Sequence[int], writing: Sequence[int], seconds: float) -> bool:
        """Wait for a pipe for at most a second; meanwhile read standard error, so that it does not block the program.

        Returns:
            True if one of the pipes is ready.
        """
        messages = [] if self._stderr.closed else [self._stderr.fileno()]
        ready, room, _ = select.select([*reading, *messages], writing, [], min(seconds, 1.0))
        if not set(messages).isdisjoint(ready):
            self._hear()
        return bool(room) or not set(reading).isdisjoint(ready)

    def _hear(self) -> None:
        """Read standard error of the program; only the end of it is kept."""
        with suppress(BlockingIOError):
            part = os.read(self._stderr.fileno(), 1 << 16)
            self._heard = (self._heard + part)[-_LAST_WORDS:]
            if not part:
                self._stderr.close()

    def wrong(self, what: str) -> InputError:
        """Return an error about invalid data from the program."""
        instead = "see docs/external-renderer.md for the protocol; print to stderr, not to stdout"
        return InputError(f"'{self._command[0]}' {what}", where="render: external", instead=instead)

    def write(self, name: str, values: NDArray[Any]) -> str:
        """Write an array for the program; return the name of its file in the folder."""
        np.save(self.folder / f"{name}.npy", np.ascontiguousarray(values), allow_pickle=False)
        return f"{name}.npy"

    def read(self, name: object, shape: tuple[int, ...], dtype: type[np.generic]) -> NDArray[Any]:
        """Read an array that the program wrote, and remove its file.

        Raises:
            InputError: The array does not exist, or has another shape or type.
        """
        text = str(name)[:255]
        path = self.folder / text
        if text != name or path.parent != self.folder or path.is_symlink() or not path.is_file():
            raise self.wrong(f"names '{text[:60]}', which is not a file in the folder")
        try:
            with path.open("rb") as file:
                found_shape, _, found_type = read_npy_header(file)
                if found_shape != shape or found_type != np.dtype(dtype):
                    is_so = f"{found_type} {found_shape}"
                    raise self.wrong(f"wrote '{text}' as {is_so}, expected {np.dtype(dtype)} {shape}")
                file.seek(0)
                found = np.lib.format.read_array(file, allow_pickle=False)
        except _UNREADABLE as error:
            why = str(error).partition("\n")[0] or type(error).__name__
            raise self.wrong(f"wrote '{text}', which cannot be read: {why}") from None
        path.unlink()
        return found

    def close(self) -> None:
        """Close the program's input, give it time to exit, and kill it."""
        with suppress(OSError):
            self._stdin.close()
        end = time.monotonic() + _FAREWELL
        while self._process.poll() is None and (left := end - time.monotonic()) > 0:
            self._wait([], [], min(left, 0.02))
        self.kill()
        for pipe in (self._stdout, self._stderr):
            pipe.close()
        self._place.remove()

    def kill(self) -> None:
        """Kill the program and the processes that it started."""
        if self._process.returncode is None:  # after it was reaped, its number may belong to another process
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, 9)
            self._process.wait()

    def _last_words(self) -> str:
        self.kill()
        for _ in range(_READS):  # bounded, because a process that the program left behind may keep writing
            if not self._stderr.closed and select.select([self._stderr], [], [], 0.0)[0]:
                self._hear()
        text = self._heard.decode(errors="replace").strip()
        return text.splitlines()[-1] if text else f"no message, exit code {self._process.returncode}"
