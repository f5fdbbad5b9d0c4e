"""Client of the editor process, in the host. It starts the process, sends requests, and keeps the last state.

No call blocks: Kit's loop calls :meth:`EditorConnection.poll` a few times per second.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import tempfile
from collections.abc import Callable
from typing import IO, Any, Protocol

from nimbus.datagen.errors import InputError
from nimbus.datagen.ui.remote.messages import ANSWER, EditorRequest, EditorState, empty_state, parse_order, parse_state
from nimbus.datagen.ui.runs.launch import environment, find_interpreter

_CHUNK_SIZE = 1 << 16
_END_TIMEOUT = 3.0
"""Time that an editor may take to exit [s]."""
_MAX_STARTS = 3
"""Number of consecutive starts without an open task after which there is no automatic restart."""


class EditorChannel(Protocol):
    """Connection that carries lines to and from an editor."""

    def send(self, line: str) -> None:
        """Send one line."""
        ...

    def receive(self) -> list[str]:
        """Return the lines that have arrived, without waiting.

        Raises:
            InputError: The editor has ended; the message contains its last line.
        """
        ...

    def wait(self, seconds: float) -> bool:
        """Wait until a line arrives; return False if none does."""
        ...

    def close(self) -> None:
        """End the editor."""
        ...


class ProcessChannel:
    """Editor in a separate process with Nimbus's Python.

    Args:
        interpreter: A Python that has Nimbus's dependencies; empty to look for one.

    Raises:
        InputError: No interpreter was found.
    """

    def __init__(self, interpreter: str = "") -> None:
        python = find_interpreter(interpreter)
        self._errors: IO[bytes] = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            [python, "-P", "-m", "nimbus.runner.isaac.editor"],
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
        """Send one line; bytes that do not fit into the pipe are sent by the next call."""
        self._out += line.encode() + b"\n"
        self._push()

    def receive(self) -> list[str]:
        """Return the lines that have arrived."""
        self._push()
        assert self._from is not None
        ended = False
        with contextlib.suppress(BlockingIOError):
            while not ended:
                piece = os.read(self._from.fileno(), _CHUNK_SIZE)
                self._in, ended = self._in + piece, not piece
        *lines, self._in = self._in.split(b"\n")
        if ended and not lines:
            raise InputError(f"the editor ended: {self._last_error_line()}", instead="open the task again")
        return [line.decode(errors="replace") for line in lines]

    def wait(self, seconds: float) -> bool:
        """Wait until a line arrives; return False if none does."""
        assert self._from is not None
        self._push()
        return bool(select.select([self._from], [], [], seconds)[0])

    def close(self) -> None:
        """Close the editor's input, at which it exits; kill it if it does not."""
        for stream in (self._to, self._from):
            with contextlib.suppress(OSError):
                assert stream is not None
                stream.close()
        self.process.terminate()
        try:
            self.process.wait(_END_TIMEOUT)
        except subprocess.TimeoutExpired:  # the editor is in a call that cannot be interrupted
            self.process.kill()
            self.process.wait()
        self._errors.close()

    def _push(self) -> None:
        assert self._to is not None
        with contextlib.suppress(BlockingIOError, BrokenPipeError):
            while self._out:
                self._out = self._out[os.write(self._to.fileno(), self._out) :]

    def _last_error_line(self) -> str:
        self._errors.seek(0)
        lines = [line for line in self._errors.read().decode(errors="replace").splitlines() if line.strip()]
        return lines[-1] if lines else f"exit code {self.process.poll()}"


class EditorConnection:
    """Connection to an editor process, started on demand and restarted with the same text after a crash.

    Args:
        start: Starts an editor.
    """

    def __init__(self, start: Callable[[], EditorChannel]) -> None:
        self._start = start
        self._channel: EditorChannel | None = None
        self._deaths = 0
        self._orders: list[dict[str, Any]] = []
        self._last_open: EditorState = empty_state()
        """Last state with an open task, which the next editor opens if this one crashes."""
        self.state: EditorState = empty_state()
        """The last state that arrived."""
        self.problem = ""
        """Reason why there is no editor, in one line; empty if there is one."""

    def act(self, name: str, value: Any = None) -> None:
        """Send a user's action on a control; the editor is started if there is none."""
        self.problem = ""
        if self._channel is None:
            self._deaths = 0
            self._open()
        self._send(name, value)

    def poll(self) -> bool:
        """Process the messages that have arrived; return True if there is something new to show."""
        if self._channel is None:
            return False
        try:
            lines = self._channel.receive()
            states: list[str] = []
            for line in lines:
                if (order := parse_order(line)) is not None:
                    self._orders.append(order)
                else:
                    states.append(line)
            if not states:
                return False
            self.state = parse_state(states[-1])
        except InputError as error:
            self._restart(str(error))
            return True
        if self.state["path"]:  # the first state of an editor has no path, and does not prove that the task opens
            self._last_open, self._deaths = self.state, 0
        return True

    def wait(self, seconds: float) -> bool:
        """Wait until a message arrives; False when none does."""
        return self._channel is not None and self._channel.wait(seconds)

    def answer(self, value: dict[str, Any]) -> None:
        """Send the answer to an order, unless the editor that sent the order has ended."""
        self._send(ANSWER, value)

    def take_orders(self) -> list[dict[str, Any]]:
        """Return the orders about the open stage that have arrived."""
        orders, self._orders = self._orders, []
        return orders

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
            request: EditorRequest = {"id": name, "value": value}
            self._channel.send(json.dumps(request))

    def _restart(self, problem: str) -> None:
        """Start another editor with the same text, so that nothing is lost."""
        self.close()
        self._orders = [{"do": "end"}]  # the skills ended with the editor
        self._deaths += 1
        self.problem = problem
        if self._deaths < _MAX_STARTS:
            self._open()
            last = self._last_open
            if last["source"]:
                self._send("open", last["source"])
                if last["unsaved"]:
                    self._send("text", last["text"])
