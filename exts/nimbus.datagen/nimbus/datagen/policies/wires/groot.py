"""GR00T's wire: requests over ZeroMQ, as msgpack with arrays. The names come from the server's modalities.

Arrays are npy files up to N1.6 and maps of msgpack-numpy from N1.7 on; the form of the modalities shows the version.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from nimbus.datagen.episode.trajectory import Reason
from nimbus.datagen.policies.policy import PolicyEpisode, PolicyFault, PolicyTask
from nimbus.datagen.policies.wires.codec import GROOT, GROOT_N17
from nimbus.datagen.policies.wires.conventions import Declaration
from nimbus.datagen.policies.wires.frame_structure import FrameError
from nimbus.datagen.policies.wires.name_map import NameMap, PictureView, Question
from nimbus.datagen.policies.wires.openpi import decode_map
from nimbus.datagen.policies.wires.remote_policy import Wire
from nimbus.datagen.policies.wires.zmtp import Requests

_N17_MARK = b"__ModalityConfig__"


class GrootWire(Wire):
    """Client of GR00T's wire.

    Args:
        address: ``tcp://HOST:PORT``.
    """

    name = "groot"

    def __init__(self, address: str) -> None:
        self._address = address
        self._marking = GROOT
        self._requests: Requests | None = None

    def open(self, *, seconds: float) -> Mapping[object, object]:
        """Connect, and return the modalities."""
        self.close()
        self._requests = Requests(self._address, seconds=seconds)
        self._call("ping", seconds=seconds)
        return self._call("get_modality_config", seconds=seconds)

    def declare(self, metadata: Mapping[object, object], *, where: str) -> Declaration:
        """Read the modalities."""
        keys = {name: _keys(metadata, name) for name in ("video", "state", "action", "language")}
        return Declaration(
            action_horizon=len(_indices(metadata, "action")),
            cameras=dict.fromkeys(keys["video"]),
            state_keys=keys["state"],
            action_keys=keys["action"],
            prompt=next(iter(keys["language"]), ""),
            poses=tuple(_poses(metadata)),
            problems=tuple(_problems(metadata)),
        )

    def default_names(self, declared: Declaration, task: PolicyTask) -> NameMap:
        """Return the names of the modalities; a server with several states or action arrays needs a map."""
        cameras, states, actions = declared.cameras or {}, declared.state_keys, declared.action_keys
        return NameMap(
            cameras={name: PictureView(camera=name) for name in cameras if name in task.cameras},
            state={states[0]: task.state_names} if len(states) == 1 else {},
            prompt=declared.prompt or None,
            actions={actions[0]: task.action_names} if len(actions) == 1 else {},
        )

    def begin(self, episode: PolicyEpisode, task: PolicyTask, *, seconds: float) -> None:
        """Reset the policy."""
        options = {"episode_id": episode.id, "seed": episode.seed, "task": task.name}
        self._call("reset", {"options": options}, seconds=seconds)

    def ask(self, question: Question, *, seconds: float) -> Mapping[object, object]:
        """Send an observation, as a batch of one with one time step, and wait for the actions."""
        observation = {
            "video": {name: picture[None, None] for name, picture in question.pictures.items()},
            "state": {name: part[None, None].astype(np.float32) for name, part in question.numbers.items()},
            "language": {name: [[text]] for name, text in question.prompt.items()},
        }
        answer = self._call("get_action", {"observation": observation, "options": None}, seconds=seconds)
        actions = answer.get("action")
        if not isinstance(actions, dict):
            raise PolicyFault(Reason.BAD_ACTION, "the answer is not a map of actions")
        return {
            name: part[0] if isinstance(part, np.ndarray) and part.ndim == 3 and len(part) == 1 else part
            for name, part in actions.items()
        }

    def close(self) -> None:
        """End the connection."""
        if self._requests is not None:
            self._requests.close()
            self._requests = None

    def _call(
        self, endpoint: str, data: Mapping[str, object] | None = None, *, seconds: float
    ) -> Mapping[object, object]:
        assert self._requests is not None, "open comes first"
        request = self._marking.pack({"endpoint": endpoint} | ({} if data is None else {"data": data}))
        frame = self._requests.call(request, seconds=seconds)
        if endpoint == "get_modality_config":
            self._marking = GROOT_N17 if _N17_MARK in frame else GROOT
        answer = _decoded(frame)
        if isinstance(error := answer.get("error"), str):
            raise PolicyFault(Reason.POLICY_ERROR, f"the server failed: {error[:300]}")
        return answer


def _decoded(frame: bytes) -> Mapping[object, object]:
    """Decode an answer into a map: the pair of ``get_action`` becomes ``action``; the answer of ``reset`` is empty."""
    try:
        value = GROOT.unpack(frame)
    except FrameError as error:
        raise PolicyFault(Reason.POLICY_ERROR, f"the server sent {error}") from None
    if isinstance(value, tuple) and len(value) == 2:
        return {"action": value[0]}
    return decode_map(GROOT, frame) if value is not None else {}


def _keys(metadata: Mapping[object, object], name: str) -> tuple[str, ...]:
    held = metadata.get(name)
    keys = held.get("modality_keys") if isinstance(held, dict) else None
    return tuple(str(key) for key in keys) if isinstance(keys, tuple) else ()


def _indices(metadata: Mapping[object, object], name: str) -> tuple[object, ...]:
    held = metadata.get(name)
    found = held.get("delta_indices") if isinstance(held, dict) else None
    return found if isinstance(found, tuple) else ()


def _problems(metadata: Mapping[object, object]) -> Iterator[str]:
    """Yield a problem for each modality that needs several time steps."""
    for name in ("video", "state", "language"):
        if len(_indices(metadata, name)) > 1:
            yield f"the server wants {len(_indices(metadata, name))} time steps of {name}, there is one"


def _poses(metadata: Mapping[object, object]) -> Iterator[str]:
    """Yield the names of actions that are poses of the hand."""
    held = metadata.get("action")
    configs = held.get("action_configs") if isinstance(held, dict) else None
    for name, config in zip(_keys(metadata, "action"), configs if isinstance(configs, tuple) else (), strict=False):
        kind = config.get("type") if isinstance(config, dict) else None
        if isinstance(kind, str) and kind == "EEF":
            yield name
