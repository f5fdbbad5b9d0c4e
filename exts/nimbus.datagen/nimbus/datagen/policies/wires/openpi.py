"""openpi's wire: a websocket on which the server sends its metadata, and then an answer for each observation.

The protocol has no message for the start of an episode, so each observation has an entry ``nimbus`` with the episode's
id, its seed and the step, and at step 0 the conventions of the task.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import cast

from nimbus.datagen.episode.trajectory import Reason
from nimbus.datagen.policies.policy import PolicyEpisode, PolicyFault, PolicyTask
from nimbus.datagen.policies.wires.codec import OPENPI, Marking
from nimbus.datagen.policies.wires.conventions import Declaration, read_declaration
from nimbus.datagen.policies.wires.frame_structure import FrameError
from nimbus.datagen.policies.wires.name_map import NameMap, PictureView, Question
from nimbus.datagen.policies.wires.remote_policy import Wire
from nimbus.datagen.policies.wires.websocket import Socket

EPISODE = "nimbus"
"""Entry of an observation that other servers ignore."""
IMAGES, STATE, VELOCITY, SCENE = (
    f"observation.{name}" for name in ("images.", "state", "velocity", "environment_state")
)


def decode_map(marking: Marking, frame: bytes) -> Mapping[object, object]:
    """Decode a frame that must be a map.

    Raises:
        PolicyFault: The frame is damaged, or not a map.
    """
    try:
        value = marking.unpack(frame)
    except FrameError as error:
        raise PolicyFault(Reason.POLICY_ERROR, f"the server sent {error}") from None
    if not isinstance(value, dict):
        raise PolicyFault(Reason.POLICY_ERROR, f"the server sent a {type(value).__name__} instead of a map")
    return cast(Mapping[object, object], value)


class OpenpiWire(Wire):
    """Client of openpi's wire.

    Args:
        address: ``ws://HOST:PORT``.
    """

    name = "openpi"
    camera_prefix = IMAGES

    def __init__(self, address: str) -> None:
        self._address = address
        self._socket: Socket | None = None

    def open(self, *, seconds: float) -> Mapping[object, object]:
        """Connect, and return the metadata."""
        self._socket = Socket(self._address, seconds=seconds)
        return decode_map(OPENPI, self._socket.receive(seconds=seconds))

    def declare(self, metadata: Mapping[object, object], *, where: str) -> Declaration:
        """Read the metadata, whose entries are named as in a declaration."""
        return read_declaration(metadata, where=where)

    def default_names(self, declared: Declaration, task: PolicyTask) -> NameMap:
        """Return LeRobot's names."""
        wanted = declared.cameras
        return NameMap(
            cameras={
                IMAGES + name: PictureView(camera=name)
                for name in task.cameras
                if wanted is None or IMAGES + name in wanted
            },
            state={STATE: task.state_names},
            velocity={VELOCITY: task.joint_names},
            environment_state=SCENE if declared.environment_state else None,
            prompt="prompt",
            actions={"actions": task.action_names},
        )

    def begin(self, episode: PolicyEpisode, task: PolicyTask, *, seconds: float) -> None:
        """Set the entry ``nimbus`` for the observations of an episode."""
        self._episode = {"id": episode.id, "seed": episode.seed, "key": asdict(episode.key)}
        self._task = asdict(task)

    def ask(self, question: Question, *, seconds: float) -> Mapping[object, object]:
        """Send an observation and wait for the answer."""
        own = {"episode": self._episode, "step": question.step} | ({} if question.step else {"task": self._task})
        assert self._socket is not None, "open comes first"
        self._socket.send(OPENPI.pack(question.entries() | {EPISODE: own}), seconds=seconds)
        return decode_map(OPENPI, self._socket.receive(seconds=seconds))

    def close(self) -> None:
        """End the connection."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None
