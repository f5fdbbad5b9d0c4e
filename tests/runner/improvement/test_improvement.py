"""Improvement: admission, weights, refusals, and complete runs with killed roles."""

from __future__ import annotations

import os
import signal
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.codec import to_json
from nimbus.datagen.files.folder_lock import lock_folder
from nimbus.datagen.policies.open_policy import open_policy
from nimbus.datagen.policies.state_policy import StatePolicy, input_width
from nimbus.datagen.policies.state_training import Demonstrations
from nimbus.datagen.policies.trained_policy import TrainedSettings, write_conventions, write_policy
from nimbus.datagen.store.episode_file.read import EpisodeFile
from nimbus.datagen.store.ledger.ledger import Ledger
from nimbus.datagen.store.ledger.records import EpisodeState, EpisodeStatus
from nimbus.runner.checks.replay import replay
from nimbus.runner.cli import main
from nimbus.runner.evaluation.results import NAME as EVALUATION_NAME
from nimbus.runner.improvement.episode_maker import EpisodeMaker, refuse_quarantined
from nimbus.runner.improvement.learner import RECORD, PolicyRecord, read_record
from nimbus.runner.improvement.lineage import _policy_lines
from nimbus.runner.improvement.loop import SPLIT, Improvement, LayoutPart, LoopSettings
from nimbus.runner.improvement.results import summarize
from nimbus.runner.improvement.roles import RolloutRole, evaluate_one, roll_out_one
from nimbus.runner.improvement.rows import HEAVIEST, WeightedRows, advantage_weights, check_rows
from nimbus.runner.improvement.times import LEARNER, ROLLOUT, read_times
from tests.support.runs import TINY, sound, start

SETTINGS = LoopSettings(task="tiny", task_hash="1", rounds=3, episodes=4, rollouts=5)
SMALL = ("--rounds", "1", "--episodes", "1", "--rollouts", "1", "--layouts", "1", "--steps", "20", "--round-steps", "5")
SMALL += ("--objective", "dagger+awr")


def improvement(folder: Path, **changes: object) -> Improvement:
    loop = Improvement(folder, LoopSettings(**{**SETTINGS.__dict__, **changes}))
    loop.begin()
    return loop


def publish(loop: Improvement, version: int) -> None:
    loop.policy(version).mkdir(parents=True)


def test_staleness_bounds_the_acting_version(tmp_path: Path):
    fresh, stale = improvement(tmp_path / "a"), improvement(tmp_path / "b", staleness=1)
    assert [fresh.acting_version(number) for number in (1, 2, 3)] == [0, 1, 2]
    assert [stale.acting_version(number) for number in (1, 2, 3)] == [0, 0, 1]


def test_rollouts_wait_for_the_admitted_version(tmp_path: Path):
    for staleness, may in ((0, False), (1, True)):
        loop = improvement(tmp_path / f"{staleness}", staleness=staleness)
        publish(loop, 0)
        assert loop.may_roll_out(1) and loop.may_roll_out(2) is may


def test_newer_versions_do_not_change_who_acts(tmp_path: Path):
    loop = improvement(tmp_path, staleness=1)
    before = loop.acting_version(2)
    for version in (0, 1):
        publish(loop, version)
    assert loop.acting_version(2) == before == 0 and loop.published() == 2


def test_learner_waits_for_rows_and_parent(tmp_path: Path):
    loop = improvement(tmp_path)
    for number in (0, 1):
        loop.round(number).mkdir(parents=True)
    loop.rows(0).touch()
    assert loop.may_learn(0) and not loop.may_learn(1)
    loop.rows(1).touch()
    assert not loop.may_learn(1)
    publish(loop, 0)
    assert loop.may_learn(1) and not loop.may_learn(2)


@pytest.mark.parametrize("changes", [{"rounds": 10**12}, {"rounds": -1}, {"episodes": -5}, {"rollouts": 2**62}])
def test_endless_settings_of_others_are_refused(tmp_path: Path, changes: dict[str, int]):
    """Each round is looked up, so with a trillion rounds the command would hang."""
    loop = improvement(tmp_path)
    (tmp_path / "improvement.json").write_text(to_json({**loop.settings.__dict__, **changes}))
    with pytest.raises(InputError, match=next(iter(changes))):
        Improvement.read(tmp_path)


def test_policies_that_name_each_other_end(tmp_path: Path):
    """A record that is its own parent is listed once."""
    loop = improvement(tmp_path)
    settings = TrainedSettings(
        task="t", robot="r", rate=15.0, joint_names=("a",), action_names=("a",), horizon=1, limit=7
    )
    write_conventions(loop.policy(0), settings, policy=StatePolicy)
    record = PolicyRecord(version=0, policy="p", parent="p", objective="o", demonstration="", rounds=(), steps=1)
    (loop.policy(0) / RECORD).write_text(to_json(record))
    assert len(list(_policy_lines(loop, "p"))) == 1
    with pytest.raises(InputError, match="sources of at least 1 rounds, found 0"):
        summarize(loop)


@pytest.mark.parametrize("cut", [0, 3, 100, -10])
def test_damaged_rows_are_one_line(tmp_path: Path, cut: int):
    path = tmp_path / "rows.npz"
    np.savez(path, inputs=np.zeros((100, 3)))
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(InputError, match="cannot be read"):
        WeightedRows.read(path)


def test_rounds_share_no_layout(tmp_path: Path):
    loop = improvement(tmp_path)
    drawn = [index for number in (1, 2, 3) for index in loop.indices(number)]
    assert len(drawn) == len(set(drawn)) == 15 and len(loop.indices(0)) == 4


class Evaluator:
    """Simulated maker of episodes that records the parts that were made."""

    def __init__(self, loop: Improvement) -> None:
        self.loop, self.done, self.finished = loop, [], []

    def evaluate_part(self, version: int, part: LayoutPart, *, stop: object) -> None:
        self.done.append((version, part.indices[0]))

    def roll_out_part(self, number: int, part: LayoutPart, *, stop: object) -> None:
        self.done.append((number, part.indices[0]))

    def finish_evaluation(self, version: int) -> None:
        self.finished.append(version)
        self.loop.evaluation(version).joinpath("evaluation.json").touch()


def test_roles_share_the_parts_of_an_evaluation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    loop = improvement(tmp_path, layouts=50)
    publish(loop, 0)
    first: Any = Evaluator(loop)
    monkeypatch.setattr(LayoutPart, "is_done", property(lambda part: (0, part.indices[0]) in first.done))
    assert [len(part.indices) for part in loop.evaluation_parts(0)] == [20, 20, 10]
    begun = loop.evaluation_parts(0)[0].folder
    begun.mkdir(parents=True)
    with_another_role = lock_folder(begun)
    assert evaluate_one(loop, first) and evaluate_one(loop, first)
    assert first.done == [(0, 20), (0, 40)] and not first.finished
    assert not evaluate_one(loop, first)
    with_another_role.release()
    assert evaluate_one(loop, first) and first.finished == [0]
    assert not evaluate_one(loop, first)


def test_roles_share_the_rollouts_of_a_round(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Only rounds whose policy exists have work, and no part is made by two roles."""
    loop = improvement(tmp_path, rollouts=50)
    maker: Any = Evaluator(loop)
    monkeypatch.setattr(LayoutPart, "is_done", property(lambda part: (1, part.indices[0]) in maker.done))
    assert not roll_out_one(loop, maker)
    publish(loop, 0)
    begun = loop.rollout_parts(1)[0].folder
    begun.mkdir(parents=True)
    with_another_role = lock_folder(begun)
    assert roll_out_one(loop, maker) and roll_out_one(loop, maker) and not roll_out_one(loop, maker)
    assert maker.done == [(1, 20), (1, 40)] and not loop.has_rollouts(1)
    role = RolloutRole(loop, maker)
    loop.round(0).mkdir()
    loop.rows(0).touch()
    assert role.find_work() is None
    with_another_role.release()
    assert role.find_work() and roll_out_one(loop, maker) and loop.has_rollouts(1)


def test_a_quarantined_layout_is_refused(tmp_path: Path):
    with closing(Ledger(tmp_path)) as ledger:
        refuse_quarantined(ledger, tmp_path)
        ledger.record(EpisodeState(idx=3, variant=0, state=EpisodeStatus.QUARANTINED))
        with pytest.raises(InputError, match="episode 3 is quarantined"):
            refuse_quarantined(ledger, tmp_path)


def test_quick_success_weighs_more_than_failure():
    successes, steps = np.array([True, True, False]), np.array([40, 80, 80])
    quick, slow, failed = advantage_weights(successes, steps, beta=0.2, discount=0.99)
    assert quick > slow > failed > 0 and quick <= HEAVIEST


def test_equal_rollouts_weigh_as_demonstrations():
    weights = advantage_weights(np.array([True, True]), np.array([50, 50]), beta=0.2, discount=0.99)
    np.testing.assert_allclose(weights, 1.0)


def test_one_success_of_many_is_bounded():
    successes = np.arange(100) == 0
    assert advantage_weights(successes, np.full(100, 50), beta=0.05, discount=1.0)[0] == HEAVIEST


def test_a_policy_of_others_runs_no_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    loop = improvement(tmp_path)
    names = ("a",)
    settings = TrainedSettings(
        task="t", robot="r", rate=15.0, joint_names=names, action_names=names, horizon=1, limit=7
    )
    weights = {"x_mean": np.zeros(input_width(1, ()))}
    write_policy(loop.policy(0), settings, weights, policy=StatePolicy)
    (loop.policy(0) / "policy.py").write_text("raise RuntimeError")
    maker = EpisodeMaker(loop)
    monkeypatch.setattr(maker, "_ancestors", lambda *_: {})
    spec = maker._policy_run(tmp_path / "rollouts", 0, number=1, split=SPLIT, indices=(0,))
    assert open_policy(spec.settings["policy"]).limit == 7
    with pytest.raises(InputError, match=r"its policy.py is not that of a trained policy; give a new --out"):
        read_record(loop, 0)  # the user would evaluate this version


def test_links_in_an_improvement_are_refused(tmp_path: Path):
    improvement(tmp_path / "mine")
    (tmp_path / "mine" / "policies").symlink_to(tmp_path)
    with pytest.raises(InputError, match="the folder contains links"):
        improvement(tmp_path / "mine")


def test_more_rounds_go_on_and_nothing_else(tmp_path: Path):
    improvement(tmp_path)
    improvement(tmp_path, rounds=4)
    with pytest.raises(InputError, match="holds an improvement with seed 0, not 1"):
        improvement(tmp_path, rounds=4, seed=1)
    with pytest.raises(InputError, match="with rounds 4, not 3"):
        improvement(tmp_path, rounds=3)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--objective", "ppo"], "--objective: unknown 'ppo'"),
        (["--rounds", "0"], "--rounds: expected a whole number from 1 to 1000, found '0'"),
        (["--mode", "lockstep", "--staleness", "1"], "--staleness: rollouts are never stale in lockstep mode, found 1"),
        (["--out", "{taken}"], "holds 'notes.txt' and no improvement.json: not an improvement; choose another --out"),
        (["--out", "{other}"], "holds an improvement with task"),
    ],
)
def test_mistakes_are_one_line(words: list[str], said: str, capsys, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "notes.txt").touch()
    improvement(tmp_path / "other")
    monkeypatch.chdir(tmp_path)
    names = {name: str(tmp_path / name) for name in ("taken", "other")}
    assert main(["improve", str(TINY), *(word.format(**names) for word in words)]) == 2
    out, error = capsys.readouterr()
    assert said in error and error.count("\n") == 1 and not out


def rows(*, width: int, is_relative: bool = True) -> WeightedRows:
    settings = TrainedSettings(
        task="tiny",
        robot="panda",
        rate=15.0,
        joint_names=("a",),
        action_names=("a",),
        feature_names=("tool.x",),
        horizon=1,
        limit=9,
        is_relative=is_relative,
    )
    data = Demonstrations(
        inputs=np.zeros((3, width)), targets=np.zeros((3, 1, 1)), episodes=np.zeros(3, int), settings=settings
    )
    return WeightedRows(data=data, weights=np.ones(3), sources={"demonstrations": 1})


def test_rows_of_another_version_are_refused(tmp_path: Path):
    loop = improvement(tmp_path)
    rows(width=3).write(loop.rows(0))
    check_rows(loop)
    for wrong in (rows(width=2), rows(width=3, is_relative=False)):
        wrong.write(loop.rows(1))
        with pytest.raises(
            InputError, match=r"rows\.npz: another version of Nimbus wrote rows of .*; choose another --out"
        ):
            check_rows(loop)
    loop.rows(1).write_bytes(loop.rows(0).read_bytes()[:200])
    with pytest.raises(InputError, match="cannot be read: .*; delete it, then run the same command again"):
        check_rows(loop)


def test_task_without_success_is_refused(tmp_path: Path, capsys):
    path = tmp_path / "endless.yaml"
    path.write_text(TINY.read_text().partition("success:")[0] + 'instructions: ["Sort the trash."]\n')
    assert main(["improve", str(path), "--out", str(tmp_path / "out")]) == 2
    assert "'success' is missing" in capsys.readouterr().err and not (tmp_path / "out").exists()


def test_lineage_of_no_episode_is_refused(tmp_path: Path, capsys):
    assert main(["lineage", str(tmp_path), "one"]) == 2
    assert "neither an improvement nor a dataset" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.long
def test_killed_roles_lose_nothing(tmp_path: Path, capsys):
    """Parallel roles, two of them killed, make the same results as sequential ones; a correction can be replayed."""
    one, other = tmp_path / "one", tmp_path / "other"
    assert main(["improve", str(TINY), "--out", str(one), "--mode", "lockstep", *SMALL]) == 0
    process = start("improve", str(TINY), "--out", str(other), "--staleness", "0", *SMALL)
    loop = Improvement(other, SETTINGS)
    for name, ready in ((ROLLOUT, loop.demonstrations), (LEARNER, loop.rollout_parts(1)[0].rollouts)):
        deadline = time.monotonic() + 300
        while not (ready / "ledger.sqlite").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        os.kill(read_times(loop, name).pid, signal.SIGKILL)
    assert process.wait() == 0, process.communicate()
    first, second = Improvement.read(one), Improvement.read(other)
    for number in first.rounds:
        assert read_record(first, number) == read_record(second, number)
        rows = [WeightedRows.read(loop.rows(number)) for loop in (first, second)]
        np.testing.assert_array_equal(rows[0].data.targets, rows[1].data.targets)
        evaluated = [(loop.evaluation(number) / EVALUATION_NAME).read_bytes() for loop in (first, second)]
        assert evaluated[0] == evaluated[1]
    assert sound(first.corrections(1)) == sound(second.corrections(1))
    shown = [EpisodeFile(path) for path in (first.corrections(1) / "episodes").glob("*.hdf5")]
    taught = sum(part.stop - part.start for one in shown for part in one.segments if part.skill != "policy")
    tried = sum(EpisodeFile(path).step_count for path in first.rollouts(1).rglob("*.hdf5"))
    assert len(WeightedRows.read(first.rows(1)).weights) == taught + tried > tried > 0
    corrected = sorted((first.corrections(1) / "episodes").glob("*.hdf5"))[0]
    replayed = replay(corrected)
    assert replayed.same_outcome and replayed.joint_error == 0.0
    with EpisodeFile(corrected) as episode:
        ancestors = episode.provenance.ancestors
        assert ancestors["policy"] == read_record(first, 0).policy and ancestors["round"] == "1"
        played = [part.stop - part.start for part in episode.segments if part.phase == "policy"]
        assert played == [int(ancestors["step"])]
    capsys.readouterr()
    assert main(["lineage", str(one), corrected.stem]) == 0
    said = capsys.readouterr().out
    assert f"takes over at step {ancestors['step']}" in said and "cloning from 1 demonstrations of round 0" in said
