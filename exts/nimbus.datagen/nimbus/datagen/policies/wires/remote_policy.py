"""A policy behind a wire: it connects, compares conventions, asks, and connects again when its server went away."""

from __future__ import annotations

import hashlib
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

import numpy as np

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.episode.trajectory import Reason
from nimbus.datagen.errors import InputError
from nimbus.datagen.files import strict_yaml
from nimbus.datagen.policies.policy import Needs, Policy, PolicyEpisode, PolicyFault, PolicyObservation, PolicyTask
from nimbus.datagen.policies.wires.codec import FrameError
from nimbus.datagen.policies.wires.conventions import Declaration, compare_conventions
from nimbus.datagen.policies.wires.name_map import NameMap, Question, Translation
from nimbus.datagen.progress import allow

T = TypeVar("T")

OPTIONS = ("map", "checkpoint", "timeout", "opening")
"""Options of a remote policy: the map's file, the name of the weights, seconds for an answer and for the greeting."""
_FIRST = 10.0
"""Factor on the time limit for the first answer, before which a model compiles."""
_MARGIN = 10.0
"""[s] After a wait that the watchdog allows beyond its limit."""
_PAUSES = 0.2, 2.0
"""[s] Shortest and longest time between two attempts to connect."""


class Wire(ABC):
    """Client side of a protocol. Errors of the server are :class:`PolicyFault`."""

    name: str
    camera_prefix = ""
    """Before a camera's name, where no map gives another."""

    @abstractmethod
    def open(self, *, seconds: float) -> Mapping[object, object]:
        """Connect; returns the server's declaration."""

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
        """Ask for arrays of actions (K, n) by name."""

    @abstractmethod
    def close(self) -> None:
        """End the connection, if there is one."""


class RemotePolicy(Policy):
    """The policy of a server.

    Args:
        wire: To it.
        address: Of it, for messages.
        options: Those of :data:`OPTIONS`.

    Raises:
        InputError: No server answers, it does not name its checkpoint, or an option is wrong.
    """

    def __init__(self, wire: Wire, address: str, options: Mapping[str, str]) -> None:
        self._wire, self._where = wire, address
        self._answer_time = _seconds(options, "timeout", 30.0)
        self._first_time = _FIRST * self._answer_time
        path = options.get("map")
        self._document = strict_yaml.read(Path(path)) if path else None
        self._map = self._document.validate(NameMap) if self._document else NameMap()
        self._task: PolicyTask | None = None
        self._is_open = self._has_answered = False
        try:
            metadata = self._open(_seconds(options, "opening", self._first_time))
        except PolicyFault as fault:
            wire.close()
            raise InputError(fault.detail, where=address, instead="start the policy's server first") from None
        self._digest = _digest(metadata)
        self._declared = declared = wire.declare(metadata, where=address)
        checkpoint = options.get("checkpoint") or declared.checkpoint
        if not checkpoint:
            wire.close()
            what = "the server does not name its checkpoint, so that two could mix in one folder"
            raise InputError(what, where=address, instead="add --checkpoint NAME")
        named = "" if self._document is None else f" {hashlib.sha256(self._document.text.encode()).hexdigest()[:8]}"
        self.identity = f"{wire.name} {checkpoint} {self._digest}{named}"
        self.limit, self.horizon, self.view = declared.limit, declared.action_horizon, declared.view
        self.needs = Needs(
            cameras=self._wanted_cameras(declared),
            environment_state=declared.environment_state or bool(self._map.environment_state),
        )

    def _wanted_cameras(self, declared: Declaration) -> tuple[str, ...] | None:
        if self._map.cameras is not None:
            return tuple(dict.fromkeys(view.camera for view in self._map.cameras.values()))
        if declared.cameras is None:
            return None
        return tuple(name.removeprefix(self._wire.camera_prefix) for name in declared.cameras)

    def begin_task(self, task: PolicyTask) -> None:
        """Compare the conventions.

        Raises:
            InputError: The server has others.
        """
        defaults = self._wire.default_names(self._declared, task)
        names = self._map.over(defaults)
        self._translation = Translation(names, task, document=self._document, where=self._where)
        mapped = {name for name in NameMap.model_fields if getattr(self._map, name) is not None}
        compare_conventions(self._declared, task, self._translation, mapped=mapped)
        self._task = task

    def reset(self, episode: PolicyEpisode) -> None:
        """Begin an episode; connect again before, when the server went away.

        Raises:
            PolicyFault: It does not come back.
            InputError: It came back as another.
        """
        if not self._is_open:
            self._connect()
        task = self._task
        assert task is not None, "begin_task comes first"
        self._call(lambda seconds: self._wire.begin(episode, task, seconds=seconds))

    def act(self, observation: PolicyObservation) -> FloatArray:
        """Ask the server.

        Raises:
            PolicyFault: It does not answer, or not with actions.
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

    def _connect(self) -> None:
        end, pause = time.monotonic() + self._first_time, _PAUSES[0]
        while True:
            try:
                metadata = self._open(max(1.0, end - time.monotonic()))
                break
            except PolicyFault as fault:
                self.close()
                if time.monotonic() + pause > end:
                    detail = f"no server for {self._first_time:.0f} s: {fault.detail}"
                    raise PolicyFault(Reason.POLICY_TIMEOUT, detail) from None
            with allow(pause + _MARGIN):
                time.sleep(pause)
            pause = min(_PAUSES[1], 1.5 * pause)
        if _digest(metadata) != self._digest:
            what = "another policy answers there now"
            raise InputError(what, where=self._where, instead="evaluate it into a folder of its own")

    def _call(self, speak: Callable[[float], T]) -> T:
        seconds = self._answer_time if self._has_answered else self._first_time
        try:
            with allow(seconds + _MARGIN):
                return speak(seconds)
        except PolicyFault:
            self.close()  # an answer that comes late would be taken for the next one
            raise
        except FrameError as error:
            raise InputError(f"an observation {error}", where=self._where, instead="resize in --map FILE") from None


def _seconds(options: Mapping[str, str], name: str, default: float) -> float:
    return float(options[name]) if name in options else default


def _digest(metadata: Mapping[object, object]) -> str:
    return hashlib.sha256(repr(_sorted(metadata)).encode()).hexdigest()[:16]


def _sorted(value: object) -> object:
    """Sort content, so that equal content compares equal however it was sent."""
    if isinstance(value, Mapping):
        return sorted((repr(key), _sorted(entry)) for key, entry in value.items())
    if isinstance(value, tuple):
        return [_sorted(entry) for entry in value]
    return (value.dtype.str, value.shape, value.tobytes()) if isinstance(value, np.ndarray) else value
