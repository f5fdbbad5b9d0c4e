"""Policy servers on loopback: Nimbus's own, small ones with the protocols of GR00T and vla-eval, and hostile ones."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import zmq
from websockets.exceptions import ConnectionClosed
from websockets.sync.server import ServerConnection, serve

from nimbus.datagen.episode.layout import EpisodeKey
from nimbus.datagen.policies.policy import Needs, Policy, PolicyEpisode, PolicyObservation, PolicyTask
from nimbus.datagen.policies.wires.codec import GROOT, GROOT_N17, OPENPI, VLA_EVAL, Marking
from nimbus.datagen.policies.wires.server import PolicyServer

HOST = "127.0.0.1"
TASK = PolicyTask(
    name="t",
    robot="two_joints",
    rate=15.0,
    joint_names=("a", "b", "left", "right"),
    action_names=("a", "b", "gripper"),
    action_low=np.array([-1.0, -1.0, 0.0]),
    action_high=np.array([1.0, 1.0, 0.04]),
    cameras={"front": (64, 48), "wrist": (48, 48)},
)
HORIZON = 4


def episode(index: int = 0) -> PolicyEpisode:
    key = EpisodeKey(task="t", task_hash="1", seed=0, index=index, split="evaluation")
    return PolicyEpisode(key=key, instruction=f"do {index}", seed=17 + index)


def observation(step: int = 0, *, cameras: Mapping[str, tuple[int, int]] = TASK.cameras) -> PolicyObservation:
    rng = np.random.default_rng(step)
    return PolicyObservation(
        step=step,
        state=rng.normal(size=4) / 3,
        velocity=rng.normal(size=4),
        images={name: rng.integers(0, 256, (size[1], size[0], 3), np.uint8) for name, size in cameras.items()},
        environment_state=np.zeros(0),
        instruction="do 0",
    )


def choose(state: np.ndarray, pictures: Mapping[str, np.ndarray], prompt: str, seed: int) -> np.ndarray:
    """Return actions (K, 3) that depend on every bit of an observation."""
    sums = [int(np.einsum("i,i->", picture.ravel(), np.arange(picture.size) % 251)) for picture in pictures.values()]
    rng = np.random.default_rng([seed, len(prompt), *sums])
    return np.asarray(state[:3] + rng.normal(size=(HORIZON, 3)), dtype=state.dtype)


class Chooser(Policy):
    """A reference policy; its answers depend on the seed of the episode."""

    needs = Needs()
    identity = "chooser"
    horizon = HORIZON

    def reset(self, episode: PolicyEpisode) -> None:
        self._seed = episode.seed

    def act(self, observation: PolicyObservation) -> np.ndarray:
        return choose(observation.state, observation.images, observation.instruction, self._seed)


@contextlib.contextmanager
def served(make: Callable[[], Policy] = Chooser, **metadata: object) -> Iterator[str]:
    """Return the address of Nimbus's own server."""
    server = PolicyServer(make, metadata=metadata)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.address
    finally:
        server.close()
        thread.join()


@contextlib.contextmanager
def websocket_server(talk: Callable[[ServerConnection], None]) -> Iterator[str]:
    """Return the address of a server that runs a function for each connection."""

    def quietly(connection: ServerConnection) -> None:
        with contextlib.suppress(ConnectionClosed):
            talk(connection)

    server = serve(quietly, HOST, 0, compression=None, max_size=None, ping_interval=None)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"ws://{HOST}:{server.socket.getsockname()[1]}"
    finally:
        server.shutdown()
        thread.join()


def openpi_server(answer: Callable[[Mapping[Any, Any]], object], **metadata: object) -> Any:
    """Start a server with openpi's protocol; an answer of bytes or text is the frame itself, None is no answer."""

    def talk(connection: ServerConnection) -> None:
        connection.send(OPENPI.pack({"checkpoint": "c", **metadata}))
        for frame in connection:
            assert isinstance(frame, bytes)
            held = answer(OPENPI.unpack(frame))  # type: ignore[arg-type]
            if held is not None:
                connection.send(held if isinstance(held, str | bytes) else OPENPI.pack(held))

    return websocket_server(talk)


def vla_eval_server(**hello: object) -> Any:
    """Start a server with vla-eval's protocol and the reference policy."""

    def talk(connection: ServerConnection) -> None:
        seed = 0
        for frame in connection:
            message: Any = VLA_EVAL.unpack(frame)  # type: ignore[arg-type]
            kind, payload = message["type"], message["payload"]
            if kind == "hello":
                kind, payload = "hello", {"model_server": "Chooser", **hello}
            elif kind == "observation":
                chosen = choose(payload["state"], payload["images"], payload["task_description"], seed)
                kind, payload = "action", {"actions": chosen}
            else:
                seed = payload["task"]["seed"] if kind == "episode_start" else 0
                continue
            connection.send(VLA_EVAL.pack({"type": kind, "payload": payload, "seq": message["seq"], "timestamp": 0.0}))

    return websocket_server(talk)


def modalities(mark: str, **changes: object) -> dict[str, object]:
    """Return modalities in the form of GR00T's server."""
    keys = {"video": ["front", "wrist"], "state": ["arm"], "action": ["arm", "hand"], "language": ["task"]} | changes
    return {
        name: {
            mark: True,
            "as_json": {"delta_indices": [*range(HORIZON if name == "action" else 1)], "modality_keys": held},
        }
        for name, held in keys.items()
    }


@contextlib.contextmanager
def groot_server(marking: Marking = GROOT, **changes: object) -> Iterator[str]:
    """Return the address of a server with GR00T's protocol and the reference policy, or with a given answer."""
    mark = "__ModalityConfig__" if marking is GROOT_N17 else "__ModalityConfig_class__"
    context, instead = zmq.Context(), changes.pop("answer", None)
    rep = context.socket(zmq.REP)
    rep.setsockopt(zmq.LINGER, 0)
    port = rep.bind_to_random_port(f"tcp://{HOST}")
    stop = threading.Event()

    def talk() -> None:
        seed = 0
        while not stop.is_set():
            if not rep.poll(20):
                continue
            request: Any = GROOT.unpack(rep.recv())
            match request["endpoint"]:
                case "ping":
                    answer: object = {"status": "ok", "message": "Server is running"}
                case "get_modality_config":
                    answer = modalities(mark, **changes)
                case "reset":
                    seed, answer = request["data"]["options"]["seed"], {}
                case _:
                    seen = request["data"]["observation"]
                    pictures = {name: video[0, 0] for name, video in seen["video"].items()}
                    chosen = choose(seen["state"]["arm"][0, 0], pictures, seen["language"]["task"][0][0], seed)
                    answer = [{"arm": chosen[None, :, :2], "hand": chosen[None, :, 2:]}, {}]
                    answer = answer if instead is None else instead
            rep.send(answer if isinstance(answer, bytes) else marking.pack(answer))

    thread = threading.Thread(target=talk, daemon=True)
    thread.start()
    try:
        yield f"groot://{HOST}:{port}"
    finally:
        stop.set()
        thread.join()
        rep.close(0)
        context.term()


@contextlib.contextmanager
def raw_server(talk: Callable[[socket.socket], None]) -> Iterator[int]:
    """Return the port of a plain socket server; each connection is passed to a function and then closed."""
    listener = socket.create_server((HOST, 0))
    listener.settimeout(0.05)
    stop = threading.Event()

    def accept() -> None:
        while not stop.is_set():
            with contextlib.suppress(OSError):
                connection, _ = listener.accept()
                with connection:
                    talk(connection)

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        stop.set()
        thread.join()
        listener.close()


def free_port() -> int:
    with socket.create_server((HOST, 0)) as held:
        return held.getsockname()[1]
