"""An evaluation with a policy server: killed in the middle and restarted, and refused before it begins."""

from __future__ import annotations

import signal
import subprocess
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nimbus.datagen.store.episode_file.read import EpisodeFile
from nimbus.runner.cli import main
from nimbus.runner.evaluation.results import read_evaluation
from tests.support.policy_servers import HOST, free_port, openpi_server
from tests.support.runs import TINY, start

DRIFTING = """
import os
import signal
from pathlib import Path
import numpy as np
from nimbus.datagen.policies.policy import Needs

MARK = Path(__file__).parent / "killed"

class Drifting:
    needs = Needs(cameras=("front",))
    identity = "drifting"
    limit = 24

    def begin_task(self, task):
        self.names = task.action_names

    def reset(self, episode):
        self.rng = np.random.default_rng(episode.seed)

    def act(self, observation):
        if observation.step == 8 and {dies} and not MARK.exists():
            MARK.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        shift = self.rng.normal(size=7) * 0.01 + observation.images["front"].mean() * 1e-5
        return np.tile([*observation.state[:7] + shift, 0.04], (8, 1))

def make_policy():
    return Drifting()
"""


def policy(folder: Path, *, dies: bool) -> str:
    folder.mkdir()
    (folder / "drifting.py").write_text(DRIFTING.format(dies=dies))
    return f"{folder / 'drifting.py'}:make_policy"


def evaluate(named: str, out: Path, *words: str) -> int:
    return main(["evaluate", str(TINY), "--policy", named, "--layouts", "2", "--out", str(out), "--serial", *words])


@pytest.mark.slow
@pytest.mark.long
def test_server_killed_amid_an_episode_changes_nothing(tmp_path: Path):
    port, served = free_port(), policy(tmp_path / "served", dies=True)
    lives: list[subprocess.Popen[str]] = []
    first_answers = threading.Event()

    def keep_alive() -> None:
        for _ in range(2):
            lives.append(start("serve-policy", served, "--port", str(port)))
            line = lives[-1].stdout
            assert line and HOST in line.readline()
            first_answers.set()
            lives[-1].wait()

    keeper = threading.Thread(target=keep_alive)
    keeper.start()
    try:
        assert first_answers.wait(300)
        assert evaluate(f"ws://{HOST}:{port}", tmp_path / "remote") == 0
    finally:
        lives[-1].terminate()
        keeper.join()
        for life in lives:
            life.communicate()
    assert lives[0].returncode == -signal.SIGKILL and len(lives) == 2
    assert evaluate(policy(tmp_path / "own", dies=False), tmp_path / "local") == 0
    remote, local = read_evaluation(tmp_path / "remote"), read_evaluation(tmp_path / "local")
    assert [one.faults for one in remote.layouts] == [1, 0] and remote.is_valid
    assert tuple(replace(one, faults=0) for one in remote.layouts) == local.layouts
    for path in (tmp_path / "local" / "episodes").glob("*.hdf5"):
        with EpisodeFile(path) as one, EpisodeFile(tmp_path / "remote" / "episodes" / path.name) as other:
            np.testing.assert_array_equal(one.array("observations/qpos"), other.array("observations/qpos"))


@pytest.mark.slow
def test_other_conventions_end_before_an_episode(tmp_path: Path, capsys):
    with openpi_server(lambda _: None, rate=30.0) as address:
        assert evaluate(address, tmp_path / "out") == 2
    error = capsys.readouterr().err
    assert f"--policy {address}: the server expects the rate 30.0, the task has 15.0; serve" in error
    assert not list((tmp_path / "out").glob("episodes/*"))


@pytest.mark.parametrize(
    ("declared", "words", "said"),
    [
        (
            {"action_horizon": 4},
            [],
            "--execute: 8 actions of each answer must be executed, but the policy gives 4; write",
        ),
        ({"checkpoint": ""}, [], "the server does not name its checkpoint"),
        ({}, ["--map", "none.yaml"], "none.yaml: no such file"),
        ({}, ["--actions", "recorded"], "does not accept this option"),
        ({}, ["--servers", "ws://127.0.0.1:1"], "--policy: --servers already names the policy; leave one of them out"),
        ({}, ["--timeout", "0"], "--timeout: expected a whole number from 1 to 3600, found '0'"),
    ],
)
def test_mistakes_with_servers_are_one_line(
    declared: dict[str, object], words: list[str], said: str, tmp_path: Path, capsys
):
    with openpi_server(lambda _: None, **declared) as address:
        assert evaluate(address, tmp_path / "out", *words) == 2
    out, error = capsys.readouterr()
    assert said in error and error.count("\n") == 1 and not out and not list(tmp_path.iterdir())
