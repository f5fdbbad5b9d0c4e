"""The host's side of an editor: starts it as a process, sends what was done, and keeps the last screen.

Nothing of it waits: Kit's loop calls :meth:`EditorLink.poll` some times a second.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, Protocol

from nimbus.datagen.errors import InputError
from nimbus.datagen.panel.launch import environment, find_interpreter

EMPTY: dict[str, Any] = {
    **{
        "path": "",
        "source": "",
        "text": "",
        "unsaved": False,
        "activity": "",
        "said": "",
        "problems": [],
        "sections": [],
    },
    **{"marks": {"regions": [], "cameras": [], "spots": []}, "stage": None, "pictures": {}},
}
"""A screen before there is an editor."""
_PIECE = 1 << 16
_LEAVING = 3.0
"""[s] An editor may take to end."""
_STARTS = 3
"""An editor that died so often without a sign of life is not started again by itself."""


class Channel(Protocol):
    """What speaks with an editor."""

    def send(self, line: str) -> None:
        """Hand over one line."""
        ...

    def receive(self) -> list[str]:
        """The lines that came; returns at once.

        Raises:
            InputError: It is gone; the message is its last line.
        """
        ...

    def close(self) -> None:
        """Let it end."""
        ...


class ProcessChannel:
    """An editor in a process of its own, in Nimbus's Python.

    Args:
        interpreter: A Python that has Nimbus's dependencies; empty to look for one.

    Raises:
        InputError: There is none.
    """

    def __init__(self, interpreter: str = "") -> None:
        python = find_interpreter(interpreter)
        self._errors: IO[bytes] = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            [python, "-m", "nimbus.runner.editor"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env=environment(os.environ),
            start_new_session=True,
        )
        self._to, self._from = self.process.stdin, self.process.stdout
        assert self._to is not None and self._from is not None
        for stream in (self._to, self._from):
            os.set_blocking(stream.fileno(), False)
        self._out, self._in = b"", b""

    def send(self, line: str) -> None:
        """Hand over one line; what does not fit into the pipe now goes with the next look."""
        self._out += line.encode() + b"\n"
        self._push()

    def receive(self) -> list[str]:
        """The lines that came."""
        self._push()
        assert self._from is not None
        ended = False
        with contextlib.suppress(BlockingIOError):
            while not ended:
                piece = os.read(self._from.fileno(), _PIECE)
                self._in, ended = self._in + piece, not piece
        *lines, self._in = self._in.split(b"\n")
        if ended and not lines:
            raise InputError(f"the editor ended: {self._last_words()}", instead="look at its last line")
        return [line.decode(errors="replace") for line in lines]

    def close(self) -> None:
        """Close its input, at which it ends; what does not is ended."""
        for stream in (self._to, self._from):
            with contextlib.suppress(OSError):
                assert stream is not None
                stream.close()
        self.process.terminate()
        try:
            self.process.wait(_LEAVING)
        except subprocess.TimeoutExpired:  # in the middle of what cannot be interrupted
            self.process.kill()
            self.process.wait()
        self._errors.close()

    def _push(self) -> None:
        assert self._to is not None
        with contextlib.suppress(BlockingIOError, BrokenPipeError):
            while self._out:
                self._out = self._out[os.write(self._to.fileno(), self._out) :]

    def _last_words(self) -> str:
        self._errors.seek(0)
        lines = [line for line in self._errors.read().decode(errors="replace").splitlines() if line.strip()]
        return lines[-1] if lines else f"exit code {self.process.poll()}"


class EditorLink:
    """One editor, started when it is needed, and started again with the same text when it dies.

    Args:
        start: Starts what speaks with an editor.
    """

    def __init__(self, start: Callable[[], Channel]) -> None:
        self._start = start
        self._channel: Channel | None = None
        self._deaths = 0
        self._open_task: dict[str, Any] = EMPTY
        """The last screen with a task: what the next editor is to open, should this one die."""
        self.screen: dict[str, Any] = EMPTY
        """What there is to show."""
        self.problem = ""
        """Why there is no editor, in one line."""

    def act(self, name: str, value: Any = None) -> None:
        """Say what was done to a control."""
        self.problem = ""
        if self._channel is None:
            self._deaths = 0
            self._open()
        self._send(name, value)

    def poll(self) -> bool:
        """Take what came; whether there is something new to show."""
        if self._channel is None:
            return False
        try:
            lines = self._channel.receive()
        except InputError as error:
            self._restart(str(error))
            return True
        if not lines:
            return False
        self.screen = json.loads(lines[-1])
        if self.screen["path"]:  # an editor's first screen has none, and is no sign that it will live
            self._open_task, self._deaths = self.screen, 0
        return True

    def close(self) -> None:
        """End the editor."""
        if self._channel is not None:
            self._channel.close()
            self._channel = None

    def _open(self) -> None:
        try:
            self._channel = self._start()
        except (InputError, OSError) as error:
            self.problem = str(error)

    def _send(self, name: str, value: Any) -> None:
        if self._channel is not None:
            self._channel.send(json.dumps({"id": name, "value": value}))

    def _restart(self, what: str) -> None:
        """Nothing that was typed is lost: the text goes to the next editor."""
        self.close()
        self._deaths += 1
        self.problem = what
        if self._deaths < _STARTS:
            self._open()
            last = self._open_task
            if path := last["path"]:
                self._send("open", path if Path(path).exists() else last["source"])
                if last["unsaved"]:
                    self._send("text", last["text"])
