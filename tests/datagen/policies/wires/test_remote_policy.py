"""A policy gives the same answers over each wire as in this process, to the bit; conventions are compared first."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nimbus.datagen.errors import InputError
from nimbus.datagen.policies.open_policy import open_policy
from nimbus.datagen.policies.policy import PolicyFault
from nimbus.datagen.policies.signal_view import SignalView
from nimbus.datagen.policies.wires import remote_policy
from nimbus.datagen.policies.wires.codec import GROOT, GROOT_N17, Marking
from nimbus.datagen.policies.wires.groot import GrootWire
from tests.support.policy_servers import (
    TASK,
    Chooser,
    choose,
    episode,
    free_port,
    groot_server,
    observation,
    openpi_server,
    served,
    vla_eval_server,
)

GROOT_MAP = """
state: {arm: [a, b, left, right]}
actions: {arm: [a, b], hand: [gripper]}
"""


def begun(address: str, **options: str) -> Any:
    policy = open_policy(address, options={"checkpoint": "c"} | options)
    policy.begin_task(TASK)
    return policy


def file(folder: Path, text: str) -> str:
    (folder / "map.yaml").write_text(text)
    return str(folder / "map.yaml")


@pytest.mark.parametrize("server", [served, vla_eval_server])
def test_answers_are_those_of_this_process(server: Any):
    local = Chooser()
    with server() as address:
        policy = begun(address.replace("ws:", "vla-eval:") if server is vla_eval_server else address)
        for index in range(2):
            policy.reset(episode(index))
            local.reset(episode(index))
            for step in (0, 3):
                seen = observation(step)
                np.testing.assert_array_equal(policy.act(seen), local.act(seen))
        policy.close()


@pytest.mark.parametrize("marking", [GROOT, GROOT_N17], ids=["n16", "n17"])
def test_groot_answers_are_those_of_this_process(marking: Marking, tmp_path: Path):
    with groot_server(marking) as address:
        policy = begun(address, map=file(tmp_path, GROOT_MAP))
        assert policy.horizon == 4
        policy.reset(episode(1))
        seen = observation()
        assert policy._wire._marking is marking
        chosen = choose(seen.state.astype(np.float32), seen.images, seen.instruction, episode(1).seed)
        np.testing.assert_array_equal(policy.act(seen), chosen.astype(float))
        policy.close()


def test_map_renames_resizes_splits_and_orders(tmp_path: Path):
    heard: dict[Any, Any] = {}

    def answer(held: Any) -> object:
        heard.update(held)
        return {"hand": np.array([[9], [8]]), "arm": np.array([[1.0, 2.0], [3.0, 4.0]], np.float32), "more": 1}

    text = """
    cameras:
      base: {camera: front, size: [32, 32], fit: pad}
      hand: {camera: wrist, channels: first}
    pictures_in: images
    state: {joints: [b, a], fingers: [right]}
    velocity: {}
    prompt: task
    actions: {arm: [b, a], hand: [gripper]}
    """
    with openpi_server(answer) as address:
        policy = begun(address, map=file(tmp_path, text))
        assert policy.needs.cameras == ("front", "wrist")
        policy.reset(episode())
        seen = observation()
        np.testing.assert_array_equal(policy.act(seen), [[2, 1, 9], [4, 3, 8]])
        policy.close()
    assert set(heard) == {"images", "joints", "fingers", "task", "nimbus"}
    base, hand = heard["images"]["base"], heard["images"]["hand"]
    assert (
        base.shape == (32, 32, 3) and not base[:4].any() and base[4:28].any(axis=(1, 2)).all() and not base[28:].any()
    )
    np.testing.assert_array_equal(hand, seen.images["wrist"].transpose(2, 0, 1))
    np.testing.assert_array_equal(heard["joints"], seen.state[[1, 0]])
    np.testing.assert_array_equal(heard["fingers"], seen.state[[3]])
    own = heard["nimbus"]
    assert (own["episode"]["id"], own["episode"]["seed"], own["step"]) == (episode().id, 17, 0)
    assert own["task"]["action_names"] == TASK.action_names and heard["task"] == "do 0"


@pytest.mark.parametrize(
    ("declared", "said"),
    [
        ({"robot": "panda"}, "the server expects the robot panda, the task has two_joints"),
        ({"rate": 30.0}, "the server expects the rate 30.0, the task has 15.0"),
        ({"rate": "fast"}, "the metadata have another form"),
        ({"rate": float("nan")}, "the metadata have another form"),
        ({"limit": -5}, "the metadata have another form"),
        ({"limit": 2**60}, "the metadata have another form"),
        ({"checkpoint": "c" * 1000}, "the metadata have another form"),
        ({"units": "degrees"}, "the server has the units 'degrees', but actions are absolute positions in rad and m"),
        ({"control_mode": "delta"}, "the server has the control mode 'delta', but it is evaluated in 'joint'"),
        ({"control_mode": "tool_pose"}, "the server has the control mode 'tool_pose', but it is evaluated in 'joint'"),
        (
            {"action_names": ["b", "a", "gripper"]},
            "the server's actions are b, a, gripper; the task's are a, b, gripper",
        ),
        ({"action_dim": 7}, "the server's actions have 7 entries, the task's 3: a, b, gripper"),
        ({"joint_names": ["a"]}, "the server's state are a; the task's are a, b, left, right"),
        ({"cameras": {"observation.images.top": None}}, "the server wants a picture 'observation.images.top'"),
        ({"cameras": {"observation.images.front": [224, 224]}}, "with 224 x 224, but the image has 64 x 48"),
    ],
)
def test_other_conventions_are_refused(declared: dict[str, object], said: str):
    with openpi_server(lambda _: None, **declared) as address, pytest.raises(InputError) as caught:
        begun(address)
    assert said in str(caught.value) and str(caught.value).startswith("--policy ws://127.0.0.1:")


def test_a_server_asks_for_no_endless_episodes():
    with openpi_server(lambda _: None, limit=1_000_000) as address, closing(begun(address)) as policy:
        assert policy.limit == 10_000


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"video": ["front", "ego"]}, "the server wants a picture 'ego'; there are front"),
        ({"state": ["arm", "hand"]}, "the server wants a state 'hand'"),
        ({"action": ["arm"]}, "the server answers arm, not 'hand'"),
    ],
)
def test_other_modalities_of_groot_are_refused(changes: dict[str, Any], said: str, tmp_path: Path):
    with groot_server(**changes) as address, pytest.raises(InputError, match=said):
        begun(address, map=file(tmp_path, GROOT_MAP))


def test_groot_type_of_an_action_may_be_anything():
    """Comparing an array with a text gives an array instead of a truth value."""
    action = {"modality_keys": ("arm",), "action_configs": ({"type": np.zeros(3)},)}
    assert GrootWire("tcp://x").declare({"action": action}, where="").poses == ()


def test_groot_without_a_map_is_refused():
    with groot_server() as address, pytest.raises(InputError, match="'a' is given 0 times; name each action once"):
        begun(address)


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"action_spec": {"position": {"name": "position", "dims": 3, "format": "delta_xyz"}}}, "'delta_xyz'"),
        ({"action_spec": {"gripper": {"name": "gripper", "dims": 1, "format": "continuous_01"}}}, "'continuous_01'"),
        (
            {"observation_spec": {"state": {"dims": 8, "format": "eef_pos3_quat4_gripper1"}}},
            "'eef_pos3_quat4_gripper1'",
        ),
        ({"action_spec": {"position": {"format": np.zeros(3)}}}, "has the format"),
    ],
)
def test_other_formats_of_vla_eval_are_refused(spec: dict[str, object], said: str):
    with vla_eval_server(**spec) as address, pytest.raises(InputError, match=said):
        begun(address.replace("ws:", "vla-eval:"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("camera: {}", "map.yaml:1:1: camera: unknown"),
        ("cameras: {base: {camera: top}}", "map.yaml:1:17: cameras.base: no camera 'top' in the task; known: front"),
        (
            "cameras: {base: {camera: front, size: [9, 9]}}",
            "'front' has 64 x 48, another aspect ratio than 9 x 9; write fit",
        ),
        ("cameras: {base: {camera: front, size: [0, 9]}}", "cameras.base.size[0]"),
        ("state: {x: [c]}", "state.x: the robot has no 'c'; known: a, b, left, right"),
        ("actions: {x: [a, b, b, gripper]}", "actions: 'b' is given 2 times; name each action once: a, b, gripper"),
        ("actions: {x: [a, b]}", "'gripper' is given 0 times"),
    ],
)
def test_mistakes_in_a_map_have_their_place(text: str, said: str, tmp_path: Path):
    with openpi_server(lambda _: None) as address, pytest.raises(InputError) as caught:
        begun(address, map=file(tmp_path, text))
    assert said in str(caught.value)


def test_identity_follows_metadata_checkpoint_and_map(tmp_path: Path):
    def identity(address: str, **options: str) -> str:
        policy = open_policy(address, options=options)
        policy.close()
        return policy.identity

    with openpi_server(lambda _: None, seen=1) as one, openpi_server(lambda _: None, seen=2) as other:
        mapped = file(tmp_path, "prompt: text")
        found = [identity(one), identity(other), identity(one, checkpoint="d"), identity(one, map=mapped)]
        assert len(set(found)) == 4 and identity(one) == found[0]


def test_server_without_a_name_is_refused():
    with openpi_server(lambda _: None, checkpoint="") as address:
        with pytest.raises(InputError, match="does not name its checkpoint.*; add --checkpoint NAME"):
            open_policy(address)


def test_options_of_servers_are_not_for_files(tmp_path: Path):
    path = tmp_path / "mine.py"
    path.write_text("")
    with pytest.raises(InputError, match="--map: .*mine.py:make does not accept this option; leave it out"):
        open_policy(f"{path}:make", options={"map": "x"})


@pytest.mark.parametrize(
    "text",
    [
        "ws://here",
        "ws:8000",
        "ws://h:1,groot://h:2",
        "ws://h:1,",
        "groot://:5555",
        "vla-eval://a:b",
        "ws://u@h:1",
        "ws://h:99999",
    ],
)
def test_addresses_have_a_host_and_a_port(text: str):
    with pytest.raises(InputError, match=r"is not an address; write (ws|groot|vla-eval)://HOST:PORT"):
        open_policy(text)


def test_each_worker_has_its_own_connection():
    with served() as address:
        policies = [begun(address) for _ in range(3)]
        for index, policy in enumerate(policies):
            policy.reset(episode(index))
        for index, policy in enumerate(policies):
            local = Chooser()
            local.reset(episode(index))
            np.testing.assert_array_equal(policy.act(observation()), local.act(observation()))
            policy.close()


def test_worker_has_a_server_of_its_own(monkeypatch: pytest.MonkeyPatch):
    opened: list[str] = []

    class Counted(Chooser):
        def __init__(self, name: str) -> None:
            opened.append(name)

    with served(lambda: Counted("a")) as one, served(lambda: Counted("b")) as other:
        for worker, expected in (("0", "a"), ("1", "b"), ("2", "a")):
            monkeypatch.setenv("NIMBUS_WORKER", worker)
            opened.clear()
            policy = begun(f"{one},{other}")
            policy.reset(episode())
            policy.act(observation())
            policy.close()
            assert opened == [expected]


def test_next_server_goes_on_when_one_is_gone(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(remote_policy, "_PAUSES", (0.02, 0.05))
    with served() as other:
        with served() as one:
            policy = begun(f"{one},{other}")
            policy.reset(episode())
            before = policy.act(observation())
        with pytest.raises(PolicyFault):
            policy.act(observation(8))
        policy.reset(episode())
        np.testing.assert_array_equal(policy.act(observation()), before)
        policy.close()
        late = begun(f"{one},{other}")  # of a worker that is started afterwards
        assert late.identity == policy.identity
        late.close()


def test_servers_of_other_policies_are_refused():
    with openpi_server(lambda _: None, seen=1) as one, openpi_server(lambda _: None, seen=2) as other:
        with pytest.raises(
            InputError, match=f"--policy {other}: the policy at this address differs from the one at {one}; serve"
        ):
            open_policy(f"{one},{other}", options={"opening": "5"})
        with pytest.raises(InputError, match="is given twice; give each server once"):
            open_policy(f"{one},{one}")


def test_all_servers_must_be_there_at_the_start():
    with openpi_server(lambda _: None) as one:
        gone = f"ws://127.0.0.1:{free_port()}"
        with pytest.raises(InputError, match=f"--policy {gone}: no server: connection refused"):
            open_policy(f"{one},{gone}", options={"opening": "5"})


def test_error_of_a_served_policy_is_a_fault_with_its_line():
    class Broken(Chooser):
        def act(self, observation: object) -> np.ndarray:
            raise RuntimeError("lost its way")

    with served(Broken) as address:
        policy = begun(address)
        for _ in range(2):  # the connection is closed after it, and opened again
            policy.reset(episode())
            with pytest.raises(PolicyFault, match="the server failed: RuntimeError: lost its way"):
                policy.act(observation())


def test_view_of_a_server_is_taken():
    with served(control_mode="tool_pose", rotation="euler", state_form="commanded") as address:
        policy = open_policy(address, options={"checkpoint": "c"})
        assert policy.view == SignalView(actions="tool_pose", rotation="euler", state="commanded")
        policy.close()
    with served(control_mode="absolute") as address:
        policy = open_policy(address, options={"checkpoint": "c"})
        assert policy.view == SignalView()
        policy.close()
