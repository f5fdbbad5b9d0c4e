"""vla-eval's wire: a websocket with messages ``{type, payload, seq, timestamp}``.

A server that splits its chunks itself answers each observation with one action; evaluate it with ``--execute 1``.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace

from nimbus.datagen.episode.trajectory import Reason
from nimbus.datagen.policies.policy import PolicyEpisode, PolicyFault, PolicyTask
from nimbus.datagen.policies.wires.codec import VLA_EVAL
from nimbus.datagen.policies.wires.conventions import Declaration, read_declaration
from nimbus.datagen.policies.wires.name_map import NameMap, PictureView, Question
from nimbus.datagen.policies.wires.openpi import decode_map
from nimbus.datagen.policies.wires.remote_policy import Wire
from nimbus.datagen.policies.wires.websocket import Socket

_PROTOCOL = 1
"""Version of the protocol in vla-eval 0.8."""
_JOINTS = ("raw", "joint_positions", "absolute_joint_positions")
"""Formats of actions and states that can be joints and grippers; ``raw`` can be anything."""
_PICTURE, _TEXT = "rgb_hwc_uint8", "language"


class VlaEvalWire(Wire):
    """Client of vla-eval's wire.

    Args:
        address: ``ws://HOST:PORT``.
    """

    name = "vla-eval"

    def __init__(self, address: str) -> None:
        self._address, self._count, self._is_in_episode = address, 0, False
        self._socket: Socket | None = None

    def open(self, *, seconds: float) -> Mapping[object, object]:
        """Connect and exchange greetings; return the server's greeting."""
        self._socket, self._count = Socket(self._address, seconds=seconds), 0
        hello = {"harness_version": "nimbus", "protocol_version": _PROTOCOL}
        return self._receive("hello", self._send("hello", hello, seconds=seconds), seconds=seconds)

    def declare(self, metadata: Mapping[object, object], *, where: str) -> Declaration:
        """Read the greeting, which has the declaration of openpi's wire and vla-eval's specifications."""
        declared = read_declaration(metadata, where=where)
        return replace(declared, problems=tuple(_problems(metadata)))

    def default_names(self, declared: Declaration, task: PolicyTask) -> NameMap:
        """Return the names that vla-eval recommends."""
        wanted = declared.cameras
        return NameMap(
            cameras={name: PictureView(camera=name) for name in task.cameras if wanted is None or name in wanted},
            pictures_in="images",
            state={"state": task.state_names},
            environment_state="environment_state" if declared.environment_state else None,
            prompt="task_description",
            actions={"actions": task.action_names},
        )

    def begin(self, episode: PolicyEpisode, task: PolicyTask, *, seconds: float) -> None:
        """Announce the end of the previous episode and the start of a new one; the server does not answer."""
        self._end_episode(seconds=seconds)
        about = {"name": task.name, "episode_id": episode.id, "seed": episode.seed, "instruction": episode.instruction}
        self._send("episode_start", {"task": about}, seconds=seconds)
        self._is_in_episode = True

    def _end_episode(self, *, seconds: float) -> None:
        if self._is_in_episode:
            self._is_in_episode = False
            self._send("episode_end", {}, seconds=seconds)

    def ask(self, question: Question, *, seconds: float) -> Mapping[object, object]:
        """Send an observation and wait for the action with its number."""
        number = self._send("observation", question.entries(), seconds=seconds)
        return self._receive("action", number, seconds=seconds)

    def close(self) -> None:
        """End the connection."""
        if self._socket is not None:
            with suppress(PolicyFault):
                self._end_episode(seconds=1.0)
            self._socket.close()
            self._socket = None

    def _send(self, kind: str, payload: Mapping[str, object], *, seconds: float) -> int:
        self._count += 1
        message = {"type": kind, "payload": payload, "seq": self._count, "timestamp": time.time()}
        assert self._socket is not None, "open comes first"
        self._socket.send(VLA_EVAL.pack(message), seconds=seconds)
        return self._count

    def _receive(self, kind: str, number: int, *, seconds: float) -> Mapping[object, object]:
        assert self._socket is not None, "open comes first"
        message = decode_map(VLA_EVAL, self._socket.receive(seconds=seconds))
        payload = message.get("payload")
        found_kind, found_number = str(message.get("type"))[:40], str(message.get("seq"))[:20]
        if found_kind == "error":
            error = payload.get("error", payload) if isinstance(payload, dict) else payload
            raise PolicyFault(Reason.POLICY_ERROR, f"the server failed: {str(error)[:300]}")
        if (found_kind, found_number) != (kind, str(number)) or not isinstance(payload, dict):
            found = f"{found_kind} {found_number}"
            raise PolicyFault(Reason.POLICY_ERROR, f"the server sent {found}, expected {kind} {number}")
        return payload


def _problems(hello: Mapping[object, object]) -> Iterator[str]:
    """Yield a problem for each format of actions or states other than absolute positions of joints and grippers."""
    for what, allowed in (("action", _JOINTS), ("observation", (*_JOINTS, _PICTURE, _TEXT))):
        spec = hello.get(f"{what}_spec")
        for name, entry in spec.items() if isinstance(spec, dict) else ():
            form = entry.get("format") if isinstance(entry, dict) else None
            if not isinstance(form, str) or form not in allowed:
                ours = "absolute positions of joints in rad and m"
                yield f"the server's {what} '{name}' has the format '{form}'; the task has {ours}"
