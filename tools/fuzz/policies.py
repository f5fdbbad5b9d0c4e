"""Damaged answers of policy servers, and damaged results of evaluations."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from tools.fuzz.mutations import NUMBERS, PLAIN, TEXTS, pick, replace_file, spoil_bytes, spoil_json, spoil_plain
from tools.fuzz.sort import Sort, command

_WIRES = ("openpi", "groot", "vla-eval")
_FRAME, _WIRE = "frame", "wire"


def make_frames(folder: Path) -> None:
    """Write nothing, because each input draws its own frame."""
    folder.mkdir()


def spoil_frame(folder: Path, random: np.random.Generator) -> str:
    """Write a server's first frame with damaged values, damaged bytes, or both."""
    import msgpack

    wire = pick(_WIRES, random)
    value = _good(wire)
    for _ in range(int(random.integers(1, 4))):
        value = _spoil(value, random)
    try:
        frame = bytes(msgpack.Packer(default=_plain).pack(value))
    except (OverflowError, TypeError, ValueError, UnicodeEncodeError):
        frame = b"\x81\xa1a\xc0"
    spoilt = pick((False, False, True), random)
    if random.random() < 0.05:
        frame, spoilt = _bomb(random), False
    (folder / _FRAME).write_bytes(spoil_bytes(frame, random) if spoilt else frame)
    (folder / _WIRE).write_text(wire)
    return f"{wire}: {value!r:.200}"


def read_frame(folder: Path, random: np.random.Generator) -> None:
    """Decode the frame as a policy's metadata, compare it with a task, and decode it as an answer."""
    from nimbus.datagen.errors import InputError
    from nimbus.datagen.policies.policy import PolicyFault
    from nimbus.datagen.policies.wires.remote_policy import RemotePolicy, RemoteServer
    from tests.support.policy_servers import TASK, episode, observation

    frame = (folder / _FRAME).read_bytes()
    wire = _scripted(str((folder / _WIRE).read_text()), frame)
    try:
        options = {"opening": "0.01", "timeout": "1"} | ({"checkpoint": "c"} if random.random() < 0.7 else {})
        policy = RemotePolicy([RemoteServer(wire, "--policy", "ws://fuzz")], options)
        policy.begin_task(TASK)
        wire.begin(episode(), TASK, seconds=1.0)
        policy.act(observation())
    except PolicyFault as fault:
        raise InputError(fault.detail) from None


def _scripted(name: str, frame: bytes) -> Any:
    """Return a wire whose server answers every request with one frame."""
    from nimbus.datagen.policies.wires import groot, openpi, vla_eval

    class Silent:
        """Connection without a server."""

        def send(self, frame: bytes, *, seconds: float = 0.0) -> None:
            """Send nothing."""

        def receive(self, *, seconds: float) -> bytes:
            """Return the frame."""
            return frame

        def close(self) -> None:
            """Do nothing."""

    if name == "groot":

        class Groot(groot.GrootWire):
            """GR00T's wire without a network."""

            def open(self, *, seconds: float) -> Any:
                """Decode the frame as modalities."""
                return groot._decoded(frame)

            def _call(self, endpoint: str, data: Any = None, *, seconds: float) -> Any:
                return groot._decoded(frame)

        return Groot("tcp://fuzz")
    kind = openpi.OpenpiWire if name == "openpi" else vla_eval.VlaEvalWire

    class Wire(kind):  # type: ignore[misc, valid-type]
        """The wire without a network."""

        def open(self, *, seconds: float) -> Any:
            """Decode the frame as metadata."""
            self._socket, self._count = Silent(), 1
            if name == "openpi":
                return openpi.decode_map(openpi.OPENPI, frame)
            return self._receive("hello", 1, seconds=seconds)

    return Wire("ws://fuzz")


def _good(wire: str) -> Any:
    from nimbus.datagen.policies.wires.codec import GROOT, OPENPI, VLA_EVAL

    array = np.zeros((4, 3), "<f4")
    if wire == "openpi":
        about = {"checkpoint": "c", "rate": 15.0, "limit": 100, "action_names": ["a", "b", "gripper"], "cameras": {}}
        return about | {"actions": OPENPI.encode(array), "state_form": "measured", "rotation": "6d"}
    if wire == "vla-eval":
        spec = {"arm": {"name": "arm", "dims": 3, "format": "raw"}, "array": VLA_EVAL.encode(array)}
        payload = {"checkpoint": "c", "action_spec": spec, "observation_spec": spec, "actions": VLA_EVAL.encode(array)}
        return {"type": "hello", "payload": payload, "seq": 1, "timestamp": 0.0}
    inner = {"delta_indices": [0], "modality_keys": ["front"], "action_configs": [{"type": "EEF"}]}
    mark = {"__ModalityConfig_class__": True, "as_json": inner}
    return {name: mark for name in ("video", "state", "action", "language")} | {"actions": GROOT.encode(array)}


def _spoil(value: Any, random: np.random.Generator) -> Any:
    """Damage a value of a frame; keys of its maps may be bytes."""
    if isinstance(value, dict) and value and random.random() < 0.85:
        key = pick(list(value), random)
        if random.random() < 0.1:
            return {name: entry for name, entry in value.items() if name != key}
        return value | {key: _spoil(value[key], random)}
    if isinstance(value, list | tuple) and value and random.random() < 0.6:
        at = int(random.integers(len(value)))
        return [*value[:at], _spoil(value[at], random), *value[at + 1 :]]
    other: Any = (np.zeros(3), np.float64("nan"), b"\x93NUMPY\x01\x00\x10\x00{'descr': '<f4',", b"", {b"nd": True})
    return pick((*PLAIN, *other, {"__ndarray_class__": True, "as_npy": b"\x93NUMPY"}), random)


def _plain(value: object) -> object:
    from nimbus.datagen.policies.wires.codec import OPENPI, VLA_EVAL

    if isinstance(value, np.ndarray):
        return OPENPI.encode(value) if value.size % 2 else VLA_EVAL.encode(value)
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(type(value).__name__)


def _bomb(random: np.random.Generator) -> bytes:
    """Return a frame that expands to very many entries or levels."""
    count = 400_000
    part = b"\xdd" + count.to_bytes(4, "big") + pick((b"\x80", b"\x90", b"\xc0"), random) * count
    return pick((b"\x95" + part * 5, b"\x91" * 1000 + b"\xc0", b"\x81\xa1a" * 900 + b"\xc0"), random)


def make_evaluations(folder: Path) -> None:
    """Write two evaluations of the same layouts."""
    from nimbus.datagen.files.codec import to_json
    from nimbus.runner.evaluation.results import FAULTS_NAME, Evaluation, LayoutResult, write_evaluation

    for name in ("one", "other"):
        (folder / name).mkdir(parents=True)
        layouts = tuple(
            LayoutResult(index=index, success=index % 2 == 0, reason="none" if index % 2 == 0 else "timeout", steps=9)
            for index in range(6)
        )
        shared = {"task": "tiny", "task_hash": "1", "split": "evaluation", "seed": 0, "execute": 8, "limit": 100}
        write_evaluation(folder / name, Evaluation(**shared, policy=name, layouts=layouts))  # type: ignore[arg-type]
        (folder / name / FAULTS_NAME).write_text(to_json({"1": 1}))


def spoil_evaluation(folder: Path, random: np.random.Generator) -> str:
    """Damage one file of an evaluation."""
    path = folder / pick(("one", "other"), random) / pick(("evaluation.json",) * 3 + ("faults.json",), random)
    if random.random() < 0.1:
        return f"{path.name} is a {replace_file(path, random)}"
    if random.random() < 0.2:
        path.write_text(json.dumps(pick((*NUMBERS, *TEXTS, [], {}, [[]]), random)))
        return f"{path.name} is another value"
    if random.random() < 0.2:
        value = json.loads(path.read_text())
        both = spoil_plain(value, random)
        for name in ("one", "other"):
            (folder / name / path.name).write_text(json.dumps(both))
        return f"both {path.name}"
    spoil_json(path, random)
    return path.name


def read_evaluation(folder: Path, random: np.random.Generator) -> None:
    """Compare the two evaluations, and write the page of one."""
    from nimbus.runner.evaluation.page import write_page
    from nimbus.runner.evaluation.results import read_evaluation as read
    from nimbus.runner.evaluation.show import lines_of

    words = ("--json",) if random.random() < 0.3 else ()
    command("evaluate", "--compare", folder / "one", folder / "other", *words)
    found = read(folder / "one")
    list(lines_of(found))
    found.to_text()
    write_page(folder / "one", found)


SORTS = (
    Sort(name="wires", make=make_frames, spoil=spoil_frame, read=read_frame),
    Sort(name="evaluations", make=make_evaluations, spoil=spoil_evaluation, read=read_evaluation),
)
