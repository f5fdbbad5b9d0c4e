"""Ray's relay actor: keeps the agent of one node running, and forwards its messages to the head actor."""

from __future__ import annotations

import os
import signal
import tempfile
import threading
from contextlib import suppress
from typing import Any

import ray  # pyright: ignore[reportMissingImports]
from ray.exceptions import ActorDiedError, RayError  # pyright: ignore[reportMissingImports]

from nimbus.datagen.files.owned_folder import make_owned
from nimbus.datagen.files.variables import variable_path
from nimbus.runner.cluster.line_socket import HeadUnreachableError, LineConnection, LineServer
from nimbus.runner.cluster.messages import FAILED, MOST_LETTERS, Leave, to_line
from nimbus.runner.cluster.on_ray.kept_process import KeptProcess
from nimbus.runner.cluster.on_ray.reach import own_node_folder, own_root
from nimbus.runner.cluster.on_ray.request import ANSWER_SECONDS, NAMESPACE
from nimbus.runner.system.child_module import last_line, module_command
from nimbus.runner.system.processes import cell_tag, sweep

WORKING, LEFT, UNFIT = "working", "left", "unfit"
"""States of an agent: running or being restarted; ended because the job needs fewer nodes; unable to work here."""
_POLL = 2.0
"""Interval between checks of the head actor after the agent has ended [s]."""


class RelayActor:
    """Runs a node's agent, and forwards its messages to the head actor.

    Args:
        name: Name of the run.
        node: Name of the node.
        slots: Number of workers of the node.
        tasks: Names of the job's tasks.
    """

    def __init__(self, name: str, node: str, slots: int, tasks: tuple[str, ...]) -> None:
        place = variable_path("NIMBUS_SPOOL", os.environ.get("NIMBUS_SPOOL") or tempfile.gettempdir())
        self._own = own_node_folder(own_root(place / f"nimbus-nodes-{os.getuid()}"), name, node)
        self._folder, self._tasks = self._own.path, tasks
        self._sweep()
        self._head: Any = ray.get_actor(f"head-{name}", namespace=NAMESPACE)
        self._private = make_owned("nimbus-relay-")
        socket = self._private.path / "head"
        self._server = LineServer(socket)
        words = module_command(
            "nimbus.runner.cluster.node_agent",
            str(socket),
            node,
            str(slots),
            str(self._folder),
            str(os.getpid()),
        )
        self._node, self._state, self._has_reported = node, WORKING, False
        self._agent = KeptProcess(words, self._folder / "agent.log", is_over=self._is_over)
        threading.Thread(target=self._carry, daemon=True, name="carry").start()
        self._agent.start()

    def pid(self) -> int:
        """Return the process id of this actor."""
        return os.getpid()

    def state(self) -> str:
        """Return the state of the agent: :data:`WORKING`, :data:`LEFT` or :data:`UNFIT`."""
        return UNFIT if self._agent.failure else self._state

    def _is_over(self, code: int, output: str) -> bool:
        self._state = {0: LEFT, FAILED: UNFIT}.get(code, WORKING)
        return self._state != WORKING

    def leave(self, is_done: bool) -> None:
        """Kill the agent and its cells; if ``is_done``, remove their files too."""
        self._agent.kill()
        self._agent.over.wait(ANSWER_SECONDS)
        self._sweep()
        self._private.remove()
        if is_done:
            self._own.remove()
            with suppress(OSError):
                self._folder.parent.rmdir()

    def _sweep(self) -> None:
        """Kill processes of cells that outlived an agent of this node."""
        for task in self._tasks:
            sweep(cell_tag(self._folder / task))

    def _carry(self) -> None:
        while True:
            self._server.serve(1.0, self._forward)
            if self._agent.over.wait(0 if self._agent.pid else _POLL):
                self._end_without_head()
                self._report_unfit()

    def _end_without_head(self) -> None:
        """Kill this actor if the head actor died without removing it."""
        with suppress(RayError):
            try:
                ray.get(self._head.pid.remote(), timeout=ANSWER_SECONDS)
            except ActorDiedError:
                ray.kill(ray.get_runtime_context().current_actor)

    def _report_unfit(self) -> None:
        """Send the reason why this node cannot work, once: its agent may have ended before it reached the head."""
        if self._has_reported or self.state() != UNFIT:
            return
        why = self._agent.failure or last_line(self._folder / "agent.log").removeprefix(f"node {self._node}: ")
        line = to_line(Leave(node=self._node, why=why[:MOST_LETTERS], has_failed=True))
        with suppress(RayError, HeadUnreachableError):
            ray.get(self._head.say.remote(line), timeout=ANSWER_SECONDS)
            self._has_reported = True

    def _forward(self, connection: LineConnection, line: bytes) -> None:
        try:
            answer: bytes = ray.get(self._head.say.remote(line), timeout=ANSWER_SECONDS)
        except ActorDiedError:
            os.kill(os.getpid(), signal.SIGKILL)  # without its head, this actor is useless, and Ray does not restart it
        except (RayError, HeadUnreachableError):
            connection.drop()
        else:
            connection.answer(answer)
            self._agent.note_progress()
