"""Evaluations end to end: real physics, the demonstrator, its actions replayed, and a policy that fails."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import numpy as np
import pytest

from nimbus.datagen.store.episode_file.read import EpisodeFile
from nimbus.runner.cli import main
from nimbus.runner.evaluation.measures import read_answer_times
from nimbus.runner.evaluation.results import NAME, read_evaluation
from tests.support.runs import TINY, start

LAYOUTS = 2
IDLE = """
import numpy as np
from nimbus.datagen.policies.policy import Needs

class Idle:
    needs = Needs(cameras=())
    limit = 12

    def act(self, observation):
        if {condition}:
            raise RuntimeError("lost")
        return np.tile([observation.state[0] + 0.1, *observation.state[1:7], 0.04], (8, 1))

def make_policy():
    return Idle()
"""
STILL = """
import itertools
import numpy as np
from nimbus.datagen.policies.policy import Needs

WIDTHS = itertools.count()  # no two answers are the same


class Still:
    needs = Needs(cameras={cameras!r})
    limit = 12
    trained_layouts = {{"tiny:run:0": (0, 7)}}

    def act(self, observation):
        return np.tile([*observation.state[:7], min(0.02 + 0.002 * next(WIDTHS), 0.04)], (8, 1))

def make_policy():
    return Still()
"""

PLAYER = """
from pathlib import Path
import numpy as np
from nimbus.datagen.datasets.training.lerobot import LeRobotFrames
from nimbus.datagen.policies.policy import Needs

class Player:
    needs = Needs(cameras=())

    def __init__(self):
        self.frames = LeRobotFrames(Path({folder!r}))
        self.places = {{name: at for at, name in enumerate(self.frames.facts()["episode_id"])}}

    def begin_task(self, task):
        assert task.control_mode == "tool_pose" and len(task.state_names) == len(task.action_names)

    def reset(self, episode):
        self.rows = self.frames.signals(self.places[episode.id])["action"].astype(float)

    def act(self, observation):
        assert len(observation.state) == 8
        rest = self.rows[min(observation.step, len(self.rows) - 1) :]
        return np.concatenate([rest, np.repeat(rest[-1:], 8, axis=0)])

def make_policy():
    return Player()
"""


def evaluate(policy: str, out: Path, *words: str, layouts: int = LAYOUTS) -> int:
    words = ("--policy", policy, "--layouts", str(layouts), "--out", str(out), *words)
    return main(["evaluate", str(TINY), *words])


def idle(folder: Path, condition: str = "False") -> str:
    path = folder / "idle.py"
    path.write_text(IDLE.format(condition=condition))
    return f"{path}:make_policy"


@pytest.mark.slow
def test_replayed_demonstrations_succeed_with_equal_states(tmp_path: Path):
    assert evaluate("demonstrator", tmp_path / "demonstrated", "--serial", layouts=1) == 0
    shown = read_evaluation(tmp_path / "demonstrated")
    assert shown.split == "evaluation" and shown.success_count >= 1
    assert evaluate(f"replay:{tmp_path / 'demonstrated'}", tmp_path / "replayed", "--serial", layouts=1) in (0, 1)
    replayed = {one.index: one for one in read_evaluation(tmp_path / "replayed").layouts}
    assert all(replayed[one.index].success for one in shown.layouts if one.success)
    for one in (shown.measures, read_evaluation(tmp_path / "replayed").measures):
        assert 0.02 < one.lag < 0.5 and 0 < one.held_depth < 0.003 and one.clipped == 0
    for path in (tmp_path / "demonstrated" / "episodes").glob("*.hdf5"):
        with EpisodeFile(path) as one, EpisodeFile(tmp_path / "replayed" / "episodes" / path.name) as other:
            count = min(one.step_count, other.step_count)
            first, second = (episode.array("observations/qpos")[:count] for episode in (one, other))
            np.testing.assert_array_equal(first, second)
    view = ("--actions", "tool_pose", "--rotation", "quaternion", "--state", "commanded")
    exported = tmp_path / "exported"
    assert main(["export", str(tmp_path / "demonstrated"), "--out", str(exported), *view]) == 0
    (tmp_path / "player.py").write_text(PLAYER.format(folder=str(exported)))
    words = (f"{tmp_path}/player.py:make_policy", tmp_path / "played", "--trained-on", str(exported), "--serial")
    assert evaluate(*words, layouts=1) in (0, 1)
    played = {one.index: one for one in read_evaluation(tmp_path / "played").layouts}
    assert all(played[one.index].success for one in shown.layouts if one.success)


@pytest.mark.slow
@pytest.mark.parametrize("is_killed", [False, pytest.param(True, marks=pytest.mark.long)], ids=["whole", "killed"])
def test_results_do_not_depend_on_workers_or_kills(is_killed: bool, tmp_path: Path):
    policy = idle(tmp_path)
    path = Path(policy.partition(":")[0])
    path.write_text(path.read_text().replace("0.04]", "0.05]"))  # beyond the gripper's limit: clipped
    assert evaluate(policy, tmp_path / "serial", "--serial") == 0
    words = ["evaluate", str(TINY), "--policy", policy, "--layouts", str(LAYOUTS), "--out", str(tmp_path / "cell")]
    if is_killed:
        killed = start(*words)
        deadline = time.monotonic() + 300
        while not (tmp_path / "cell" / "ledger.sqlite").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        os.kill(killed.pid, signal.SIGKILL)
        killed.communicate()
    assert main(words) == 0
    assert (tmp_path / "cell" / NAME).read_bytes() == (tmp_path / "serial" / NAME).read_bytes()
    found = read_evaluation(tmp_path / "serial")
    assert (found.success_count, found.fault_count, found.is_valid) == (0, 0, True)
    assert {one.reason for one in found.layouts} == {"time_limit"}
    assert {one.measures.clipped for one in found.layouts} == {12} and found.measures.lag > 0.01
    assert found.measures.clipped_arm == 0 and found.measures.gripper_excess == 0.01
    if is_killed:
        assert main([*words, "--execute", "4"]) == 2  # results of two evaluations never mix
        assert (tmp_path / "cell" / NAME).read_bytes() == (tmp_path / "serial" / NAME).read_bytes()
    times = read_answer_times(tmp_path / "serial", execute=8)
    assert times.answers == 2 * LAYOUTS and 0 < times.seconds < 5


@pytest.mark.slow
def test_faults_are_repeated_and_make_the_result_invalid(tmp_path: Path, capsys):
    assert evaluate(idle(tmp_path, "observation.step == 8"), tmp_path / "out", "--serial") == 1
    found = read_evaluation(tmp_path / "out")
    assert not found.is_valid and {one.reason for one in found.layouts} == {"policy_error"}
    assert {one.faults for one in found.layouts} == {2}
    assert "idle.py:11: RuntimeError: lost" in capsys.readouterr().out


@pytest.mark.slow
def test_wild_action_is_a_failure_without_repetition(tmp_path: Path):
    path = Path(idle(tmp_path).partition(":")[0])
    path.write_text(path.read_text().replace("+ 0.1", "+ 0.7"))
    assert evaluate(f"{path}:make_policy", tmp_path / "out", "--serial", "--layouts", "1") == 1
    (one,) = read_evaluation(tmp_path / "out").layouts
    assert (one.reason, one.phase, one.faults, one.steps) == ("wild_action", "still", 0, 0)


@pytest.mark.slow
def test_results_of_other_weights_are_not_reported(tmp_path: Path, capsys):
    policy, weights = idle(tmp_path), tmp_path / "weights.npz"
    weights.write_bytes(b"1")
    words = ("--serial", "--layouts", "1", "--videos", "0", "--checkpoint", str(weights))
    assert evaluate(policy, tmp_path / "out", *words) == 0
    assert "nothing ran" not in capsys.readouterr().err
    assert evaluate(policy, tmp_path / "out", *words) == 0
    identity = read_evaluation(tmp_path / "out").policy
    assert f"the layout was evaluated before, with this policy ({identity}); nothing ran" in capsys.readouterr().err
    weights.write_bytes(b"2")
    assert evaluate(policy, tmp_path / "out", *words) == 2
    assert "choose another --out" in capsys.readouterr().err


@pytest.mark.slow
def test_still_unrepeatable_and_trained_layouts_are_reported(tmp_path: Path, capsys):
    (tmp_path / "still.py").write_text(STILL.format(cameras=()))
    words = ("--serial", "--layouts", "run:0:1", "--videos", "0")
    assert evaluate(f"{tmp_path}/still.py:make_policy", tmp_path / "out", *words) == 1
    shown = capsys.readouterr().out
    assert "invalid: no action moved an arm" in shown and "not repeatable: with the same seed" in shown
    assert "not held out: the policy was trained on 1 of these layouts" in shown
    before = (tmp_path / "out" / NAME).read_bytes()
    for policy, more in ((idle(tmp_path), words), (f"{tmp_path}/still.py:make_policy", (*words, "--limit", "9"))):
        assert evaluate(policy, tmp_path / "out", *more) == 2
        error = capsys.readouterr().err
        assert f"{tmp_path}/out" in error and "choose another --out" in error and error.count("\n") == 1
    assert (tmp_path / "out" / NAME).read_bytes() == before
    assert evaluate("demonstrator", tmp_path / "other", "--layouts", f"train:{tmp_path}/out") == 2  # nothing was stored
    assert "the dataset has no episode" in capsys.readouterr().err


def test_camera_that_the_task_lacks_is_one_line(tmp_path: Path, capsys):
    (tmp_path / "still.py").write_text(STILL.format(cameras=("side",)))
    assert evaluate(f"{tmp_path}/still.py:make_policy", tmp_path / "out") == 2
    out, error = capsys.readouterr()
    assert "the policy uses a camera 'side', but tiny has front, wrist; evaluate" in error
    assert error.count("\n") == 1 and not out and not (tmp_path / "out").exists()


@pytest.mark.slow
def test_levels_are_evaluated_beside_a_control(tmp_path: Path, capsys):
    words = ("--serial", "--randomize", "large", "--only", "camera,mass", "--videos", "1", "--layouts", "1")
    assert evaluate(idle(tmp_path), tmp_path / "out", *words) == 0
    level = tmp_path / "out" / "large-camera-mass"
    found, control = read_evaluation(level), read_evaluation(tmp_path / "out" / "none")
    assert found.randomize == "large camera,mass" and control.randomize == "none"
    assert [path.name for path in (level / "videos").iterdir()] == ["000000_time_limit_reach.mp4"]
    assert "videos/000000_time_limit_reach.mp4" in (level / "evaluation.html").read_text()
    assert (
        evaluate(idle(tmp_path), level, "--serial", "--layouts", "1") == 2
    )  # the task's own level gives another result
    error = capsys.readouterr().err
    assert str(level) in error and "choose another --out" in error and error.count("\n") == 1


def test_task_without_success_is_one_line(tmp_path: Path, capsys):
    path = tmp_path / "endless.yaml"
    path.write_text(TINY.read_text().partition("success:")[0] + 'instructions: ["Sort the trash."]\n')
    for command in (["evaluate", "--policy", "demonstrator"], ["close-the-loop"]):
        assert main([command[0], str(path), *command[1:], "--out", str(tmp_path / "out")]) == 2
        out, error = capsys.readouterr()
        assert "'success' is missing" in error and error.count("\n") == 1 and not out
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "TASK: no task; write nimbus evaluate TASK --policy FILE.py:make_policy"),
        (["sort_trash"], "--policy: no policy; write"),
        (["sort_trash", "--policy", "none.py:make_policy"], "no such file"),
        (["sort_trash", "--policy", "demonstrator", "--layouts", "0"], "'0' is not a number of layouts"),
        (["sort_trahs", "--policy", "demonstrator"], "did you mean 'sort_trash'"),
        (["sort_trash", "--policy", "demonstrator", "--randomize", "huge"], "unknown randomization 'huge'"),
        (["sort_trash", "--policy", "demonstrator", "--only", "smell"], "--only: task has no randomizer 'smell'"),
        (["sort_trash", "--policy", "demonstrator", "--only", ","], "--only: names no randomizer"),
        (["--compare", "here", "there"], "here: there is no evaluation"),
    ],
)
def test_mistakes_are_one_line(words: list[str], said: str, capsys, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    assert main(["evaluate", *words]) == 2
    out, error = capsys.readouterr()
    assert said in error and error.count("\n") == 1 and not out and not list(tmp_path.iterdir())
