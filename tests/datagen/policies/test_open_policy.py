"""Conversion of the value of --policy to a policy, or to an error in one line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nimbus.datagen.episode.trajectory import Reason
from nimbus.datagen.errors import InputError
from nimbus.datagen.policies.open_policy import absolute_policy, open_policy, options_from
from nimbus.datagen.policies.policy import PolicyFault, PolicyObservation

GOOD = """
import numpy as np

class Steady:
    limit = 40

    def act(self, observation):
        if observation.step > 8:
            raise ValueError("lost")
        return np.zeros((2, 3))

def make_policy():
    return Steady()

def make_number():
    return 3

def make_error():
    raise RuntimeError("no weights")
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(GOOD)
    return path


def observation(step: int = 0) -> PolicyObservation:
    zero = np.zeros(3)
    return PolicyObservation(
        step=step, state=zero, velocity=zero, images={}, environment_state=np.zeros(0), instruction=""
    )


def refused(text: str) -> str:
    with pytest.raises(InputError) as caught:
        open_policy(text)
    return str(caught.value)


def test_python_file_is_a_policy(path: Path):
    policy = open_policy(f"{path}:make_policy")
    assert policy.act(observation()).shape == (2, 3)
    assert policy.limit == 40 and len(policy.identity) == 16


def test_identity_follows_the_file(path: Path):
    before = open_policy(f"{path}:make_policy").identity
    path.write_text(GOOD + "\n# another\n")
    assert open_policy(f"{path}:make_policy").identity != before


def test_folder_of_a_trained_policy_is_a_policy(path: Path):
    path.rename(path.parent / "policy.py")
    before = open_policy(str(path.parent)).identity
    (path.parent / "weights.npz").write_bytes(b"1")
    assert open_policy(str(path.parent)).identity != before


def identity(path: Path, **options: str) -> str:
    return open_policy(f"{path}:make_policy", options=options).identity


@pytest.mark.parametrize("weights", ["weights.npz", "weights"])
def test_declared_weights_enter_the_identity(path: Path, weights: str):
    """A file or a folder, stated by the policy or given as the checkpoint; nothing else of the folder counts."""
    bare, file = identity(path), path.parent / weights
    if not file.suffix:
        file.mkdir()
        file = file / "deep" / "shard"
        file.parent.mkdir()
    file.write_bytes(b"1")
    assert identity(path) == bare
    given = {"checkpoint": str(path.parent / weights)}
    stated = path.with_name("stated.py")
    stated.write_text(GOOD.replace("limit = 40", f"limit = 40; files = [{weights!r}]"))
    named = path.with_name("named.py")
    named.write_text(GOOD.replace("limit = 40", f"limit = 40; files = {weights!r}; identity = 'mine'"))
    before = [identity(path, **given), identity(stated), identity(named)]
    assert [identity(path, **given), identity(stated), identity(named)] == before
    file.write_bytes(b"2")
    after = [identity(path, **given), identity(stated), identity(named)]
    assert len({bare, *before, *after}) == 7 and before[2].startswith("mine ")


def test_function_with_a_checkpoint_receives_it(path: Path):
    path.write_text(
        GOOD.replace("def make_policy():", "def make_policy(checkpoint):\n    Steady.limit = len(str(checkpoint))")
    )
    (path.parent / "w").write_bytes(b"")
    weights = str(path.parent / "w")
    assert open_policy(f"{path}:make_policy", options={"checkpoint": weights}).limit == len(weights)
    assert refused(f"{path}:make_policy").endswith("takes a checkpoint, and none is given; add --checkpoint PATH")


@pytest.mark.parametrize(
    ("files", "checkpoint", "said"),
    [
        ("3", None, "its files are not a list of paths"),
        ("['gone.npz']", None, "gone.npz, which does not exist"),
        ("()", "gone", "--checkpoint: no such file or folder: "),
        ("()", "", "--checkpoint: names no file"),
        ("()", "empty", "empty: the folder holds no file"),
    ],
)
def test_weights_that_cannot_be_hashed_are_refused(
    path: Path, files: str, checkpoint: str | None, said: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(path.parent)
    Path("empty").mkdir()
    path.write_text(GOOD.replace("limit = 40", f"limit = 40; files = {files}"))
    with pytest.raises(InputError, match=said):
        identity(path, **({} if checkpoint is None else {"checkpoint": checkpoint}))


def test_checkpoint_of_a_function_is_a_path_and_of_a_server_a_name(tmp_path: Path):
    given = {"map": "m.yaml", "checkpoint": "c", "timeout": "3"}
    at_folder = {name: f"{tmp_path}/{value}" for name, value in given.items()}
    assert options_from(tmp_path, "mine.py:make", given) == given | {
        name: at_folder[name] for name in ("map", "checkpoint")
    }
    assert options_from(tmp_path, "ws://h:1", given) == given | {"map": at_folder["map"]}


def test_error_in_a_policy_is_a_fault_with_its_place(path: Path):
    policy = open_policy(f"{path}:make_policy")
    with pytest.raises(PolicyFault, match="mine.py:9: ValueError: lost") as caught:
        policy.act(observation(9))
    assert caught.value.reason is Reason.POLICY_ERROR


@pytest.mark.parametrize(
    ("function", "said"),
    [
        ("make_polcy", "has no function 'make_polcy'"),
        ("make_number", "returned int, which has no method act"),
        ("make_error", "make_error\\(\\) failed: .*mine.py:19: RuntimeError: no weights"),
    ],
)
def test_file_without_a_policy_is_refused(path: Path, function: str, said: str):
    with pytest.raises(InputError, match=said):
        open_policy(f"{path}:{function}")


def test_file_that_cannot_be_imported_is_refused(path: Path):
    path.write_text("import nothing_of_that_name\n")
    assert "cannot be imported: " in refused(f"{path}:make_policy")


def test_text_that_names_no_policy_lists_the_forms(path: Path):
    assert refused(str(path)).endswith("mine.py:make_policy")
    assert "replay:DATASET" in refused("nothing")
    assert "did you mean 'replay'" in refused("repaly:out")
    assert "no such file" in refused("none.py:make_policy")


def test_replay_of_no_dataset_is_refused(tmp_path: Path):
    assert str(tmp_path) in refused(f"replay:{tmp_path}")


def test_a_folder_with_the_name_of_a_policy_is_not_one(path: Path, monkeypatch: pytest.MonkeyPatch):
    """The current folder may be of others, and a policy's folder holds code."""
    monkeypatch.chdir(path.parent)
    for name in ("demonstrator", "ws:/127.0.0.1:8000", "state:policies/v001", "mine"):
        Path(name).mkdir(parents=True)
    for given in ("demonstrator", "ws://127.0.0.1:8000", "state:policies/v001"):
        assert absolute_policy(given) == given
    assert absolute_policy("mine") == f"{path.parent}/mine"
    assert absolute_policy("replay:mine") == f"replay:{path.parent}/mine"
    assert absolute_policy("mine.py:make") == f"{path.parent}/mine.py:make"
