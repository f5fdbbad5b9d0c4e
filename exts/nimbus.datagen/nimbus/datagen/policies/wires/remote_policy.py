"""Policy behind a wire. It connects, compares conventions, sends queries, and reconnects when its server was lost.

Several servers may serve one policy. A worker uses one of them, and switches to the next one when its server is lost.
"""

from __future__ import annotations

import hashlib
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.episode.trajectory import Reason
from nimbus.datagen.errors import InputError
from nimbus.datagen.files import strict_yaml
from nimbus.datagen.policies.policy import Needs, Policy, PolicyEpisode, PolicyFault, PolicyObservation, PolicyTask
from nimbus.datagen.policies.wires.conventions import Declaration, compare_conventions
from nimbus.datagen.policies.wires.frame_structure import FrameError
from nimbus.datagen.policies.wires.name_map import NameMap, Question, Translation
from nimbus.datagen.progress import allow

T = TypeVar("T")

OPTIONS = ("map", "checkpoint", "timeout", "opening")
"""Options of a remote policy: file of names, name of the weights, time limits of answers and of the opening [s]."""
_MOST_STEPS = 10_000
"""Longest episode that a server may ask for [steps]; ``--limit`` sets any other length."""
_FIRST = 10.0
"""Factor on the time limit of the first answer, for which a model compiles."""
_MARGIN = 10.0
"""Additional time that the watchdog allows beyond the limit of a wait [s]."""
_PAUSES = 0.2, 2.0
"""Shortest and longest time between two attempts to connect [s]."""


class Wire(ABC):
    """Client side of a protocol; errors of the server are raised as :class:`PolicyFault`."""

    name: str
    camera_prefix = ""
    """Prefix of a camera's name on the wire, unless a map gives another name."""

    @abstractmethod
    def open(self, *, seconds: float) -> Mapping[object, object]:
        """Connect, and return the server's declaration."""

    @abstractmethod
    def declare(self, metadata: Mapping[object, object], *, where: str) -> Declaration:
        """Read the metadata."""

    @abstractmethod
    def default_names(self, declared: Declaration, task: PolicyTask) -> NameMap:
        """Return the wire's default names."""

    @abstractmethod
    def begin(self, episode: PolicyEpisode, task: PolicyTask, *, seconds: float) -> None:
        """Begin an episode."""

    @abstractmethod
    def ask(self, question: Question, *, seconds: float) -> Mapping[object, object]:
        """Request arrays of actions (K, n) by name."""

    @abstractmethod
    def close(self) -> None:
        """End the connection, if there is one."""


@dataclass(frozen=True)
class RemoteServer:
    """A server of a policy."""

    wire: Wire
    """Client of the server."""
    flag: str
    address: str

    @property
    def where(self) -> str:
        """Address, for messages."""
        return f"{self.flag} {self.address}"


class RemotePolicy(Policy):
    """Policy that is served by one or several servers.

    Args:
        servers: Servers of the same policy; the others are used when the first one is lost.
        options: Options from :data:`OPTIONS`. With ``opening``, all servers are opened and compared.

    Raises:
        InputError: No server answers, a server does not name its checkpoint, two servers differ, or an option is
            invalid.
    """

    def __init__(self, servers: Sequence[RemoteServer], options: Mapping[str, str]) -> None:
        self._servers, self._turn = tuple(servers), 0
        self._answer_time = _seconds(options, "timeout", 30.0)
        self._first_time = _FIRST * self._answer_time
        path = options.get("map")
        self._document = strict_yaml.read(Path(path)) if path else None
        self._map = self._document.validate(NameMap) if self._document else NameMap()
        self._task: PolicyTask | None = None
        self._is_open = self._has_answered = False
        self._digest = ""
        metadata = self._greet(_seconds(options, "opening", 0.0))
        wire = self._wire
        self._declared = declared = wire.declare(metadata, where=self._where)
        checkpoint = options.get("checkpoint") or declared.checkpoint
        if not checkpoint:
            wire.close()
            what = "the server does not name its checkpoint, so results of two checkpoints could mix in one folder"
            raise InputError(what, where=self._where, instead="add --checkpoint NAME")
        named = "" if self._document is None else f" {hashlib.sha256(self._document.text.encode()).hexdigest()[:8]}"
        self.identity = f"{wire.name} {checkpoint} {self._digest}{named}"
        self.limit = min(declared.limit, _MOST_STEPS)
        self.horizon, self.view = declared.action_horizon, declared.view
        self.needs = Needs(
            cameras=self._wanted_cameras(declared),
            environment_state=declared.environment_state or bool(self._map.environment_state),
        )

    @property
    def _wire(self) -> Wire:
        return self._servers[self._turn].wire

    @property
    def _where(self) -> str:
        return self._servers[self._turn].where

    def _greet(self, opening: float) -> Mapping[object, object]:
        """Connect for the first time, and return the metadata.

        Args:
            opening: Time for each server to answer [s], after which all must have the same policy; 0 to wait for one
            server only.
        """
        if not opening:
            return self._first_metadata(self._connect)
        first = self._first_metadata(lambda: self._open(opening))
        self._digest = _digest(first)
        for turn in range(1, len(self._servers)):
            self._turn = turn
            found = self._first_metadata(lambda: self._open(opening))
            self._wire.close()
            if _digest(found) != self._digest:
                self._servers[0].wire.close()
                what = f"the policy at this address differs from the one at {self._servers[0].address}"
                raise InputError(what, where=self._where, instead="serve the same checkpoint everywhere")
        self._turn = 0
        return first

    def _first_metadata(self, connect: Callable[[], Mapping[object, object]]) -> Mapping[object, object]:
        try:
            return connect()
        except PolicyFault as fault:
            for server in self._servers:
                server.wire.close()
            raise InputError(fault.detail, where=self._where, instead="start the policy's server first") from None

    def _wanted_cameras(self, declared: Declaration) -> tuple[str, ...] | None:
        if self._map.cameras is not None:
            return tuple(dict.fromkeys(view.camera for view in self._map.cameras.values()))
        if declared.cameras is None:
            return None
        return tuple(name.removeprefix(self._wire.camera_prefix) for name in declared.cameras)

    def begin_task(self, task: PolicyTask) -> None:
        """Compare the conventions.

        Raises:
            InputError: The server has other conventions.
        """
        names = self._map.over(self._wire.default_names(self._declared, task))
        mapped = {name for name in NameMap.model_fields if getattr(self._map, name) is not None}
        try:
            self._translation = Translation(names, task, document=self._document, where=self._where)
            compare_conventions(self._declared, task, self._translation, mapped=mapped)
        except InputError:
            self.close()  # the garbage collector would close an abandoned connection in an arbitrary thread
            raise
        self._task = task

    def reset(self, episode: PolicyEpisode) -> None:
        """Begin an episode, after reconnecting if the server was lost.

        Raises:
            PolicyFault: No server answers.
            InputError: The server now serves another policy.
        """
        if not self._is_open:
            self._connect()
        task = self._task
        assert task is not None, "begin_task comes first"
        self._call(lambda seconds: self._wire.begin(episode, task, seconds=seconds))

    def act(self, observation: PolicyObservation) -> FloatArray:
        """Query the server.

        Raises:
            PolicyFault: The server does not answer, or its answer has no valid actions.
        """
        question = self._translation.ask(observation)
        answer = self._call(lambda seconds: self._wire.ask(question, seconds=seconds))
        self._has_answered = True
        return self._translation.actions(answer)

    def close(self) -> None:
        """End the connection."""
        self._is_open = False
        self._wire.close()

    def _open(self, seconds: float) -> Mapping[object, object]:
        with allow(seconds + _MARGIN):
            metadata = self._wire.open(seconds=seconds)
        self._is_open, self._has_answered = True, False
        return metadata

    def _connect(self) -> Mapping[object, object]:
        """Connect to the first server that answers, starting with the current one."""
        end, pause = time.monotonic() + self._first_time, _PAUSES[0]
        while True:
            try:
                metadata = self._open(max(1.0, (end - time.monotonic()) / len(self._servers)))
                break
            except PolicyFault as fault:
                self.close()
                self._turn = (self._turn + 1) % len(self._servers)
                if self._turn:
                    continue  # there is no pause, because the next server may answer at once
                if time.monotonic() + pause > end:
                    detail = f"no server answered within {self._first_time:.0f} s: {fault.detail}"
                    raise PolicyFault(Reason.POLICY_TIMEOUT, detail) from None
            with allow(pause + _MARGIN):
                time.sleep(pause)
            pause = min(_PAUSES[1], 1.5 * pause)
        if self._digest in ("", _digest(metadata)):
            self._digest = _digest(metadata)
        else:
            what = "the server now serves another policy"
            raise InputError(what, where=self._where, instead="evaluate it into another folder")
        return metadata

    def _call(self, speak: Callable[[float], T]) -> T:
        seconds = self._answer_time if self._has_answered else self._first_time
        try:
            with allow(seconds + _MARGIN):
                return speak(seconds)
        except PolicyFault:
            self.close()  # a late answer would be mistaken for the next one
            raise
        except FrameError as error:
            raise InputError(f"an observation {error}", where=self._where, instead="resize in --map FILE") from None


def _seconds(options: Mapping[str, str], name: str, default: float) -> float:
    return float(options[name]) if name in options else default


def _digest(metadata: Mapping[object, object]) -> str:
    return hashlib.sha256(repr(_sorted(metadata)).encode()).hexdigest()[:16]


def _sorted(value: object) -> object:
    """Sort content, so that equal content compares equal whatever its order."""
    if isinstance(value, Mapping):
        return sorted((repr(key), _sorted(entry)) for key, entry in value.items())
    if isinstance(value, tuple):
        return [_sorted(entry) for entry in value]
    return (value.dtype.str, value.shape, value.tobytes()) if isinstance(value, np.ndarray) else value
