from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from inspect import isfunction
from pathlib import Path
from typing import Any

import pytest

from tools.chaos import bad, checker, inside, outside, page, physical, processes, trouble
from tools.chaos.lab import FINISHED
from tools.chaos.match import match
from tools.chaos.pace import Pace, _progress

RUN = Path(checker.__file__).with_name("run.py")
MIXED = ("components", "damage")
"""Scenarios with many faults in one run. The faults of the other scenarios have separate tests in
``tests/runner/cell``."""
KILLED = ("failpoints", "everything")
"""Launchers, supervisors and fork servers are killed: ``test_run_deaths`` kills each of them, ``test_failpoints`` kills
a process at every step of a commit, and ``test_kills`` kills a run at any file operation."""
SINGLE = ("slow", "leak", "pauses", "hung", "full_disk", "memory", "interrupts", "second_run")


pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="cells need Linux")


@pytest.mark.slow
def test_workers_that_die_at_their_first_work_do_not_end_a_run_that_gets_somewhere(tmp_path: Path):
    """The first of every six episodes kills a worker and the second kills its successor; the others are stored."""
    table = {f"render:{index}": ["sigkill"] for index in range(90) if index % 6 < 2 and index % 10 != 7}
    spec = processes.light(tmp_path / "data", episodes=90, workers=(1, 1), fixed_roles=True, render_seconds=0.03)
    started = processes.start(spec, environment=trouble.plan_faults(tmp_path / "faults", table))
    ended, error = started.end(patience=120)
    assert ended["state"] in FINISHED, f"{ended} {error}"
    assert len(checker.faults(started.folder)) == len(table) > 25


def short_chaos(folder: Path, *scenarios: str, episodes: int = 90, faults: int = 60) -> dict[str, Any]:
    """Run scenarios in their short form, which must all pass; return the totals of the report."""
    found = folder / "chaos.json"
    amounts = ["--episodes", str(episodes), "--faults", str(faults)]
    words = [sys.executable, str(RUN), "--short", *amounts, "--only", *scenarios]
    ended = subprocess.run(
        [*words, "--json", str(found), "--work", str(folder)], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, f"{ended.stdout}\n{ended.stderr}"
    report = json.loads(found.read_text())
    assert report["scenarios"].keys() == set(scenarios)
    return page.totals(report)


@pytest.mark.slow
def test_a_short_chaos_loses_doubles_and_harms_nothing(tmp_path: Path):
    totals = short_chaos(tmp_path, *MIXED, episodes=60, faults=40)
    assert totals["faults injected"] >= 15
    assert totals["faults detected"] == totals["faults injected"]


@pytest.mark.slow
@pytest.mark.long
def test_killed_real_workers_change_no_content(tmp_path: Path):
    """``test_run_instructions`` kills a real run of a light task, and compares its bytes with those of a serial one."""
    assert short_chaos(tmp_path, "physics")["faults injected"] >= 2


@pytest.mark.slow
@pytest.mark.long
def test_killed_launchers_and_supervisors_lose_nothing(tmp_path: Path):
    assert short_chaos(tmp_path, *KILLED)["faults injected"] >= 8


@pytest.mark.slow
@pytest.mark.long
def test_scenarios_of_single_faults_are_good(tmp_path: Path):
    assert short_chaos(tmp_path, *SINGLE)["faults injected"] >= 10


def test_every_scenario_has_a_test():
    """The goodput is a measurement, which needs a long run."""
    functions = [each for room in (inside, outside, bad, physical) for each in vars(room).values() if isfunction(each)]
    scenarios = {each.__name__ for each in functions if each.__annotations__.get("return") == "Result"}
    assert scenarios == {*MIXED, "physics", *KILLED, *SINGLE, "goodput"}


@pytest.mark.slow
def test_an_interrupted_chaos_ends_its_run(tmp_path: Path):
    words = [sys.executable, str(RUN), "--short", "--only", "pauses", "--work", str(tmp_path)]
    chaos = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 300
    while not (runs := list(tmp_path.glob("*/pauses/status.json"))) and time.monotonic() < deadline:
        time.sleep(0.05)
    folder = runs[0].parent
    assert processes.tagged(folder)
    chaos.send_signal(signal.SIGTERM)
    _, said = chaos.communicate(timeout=300)
    assert chaos.returncode == 130 and "interrupted" in said
    assert processes.tagged(folder) == [] and list(tmp_path.iterdir()) == []


def test_faults_come_slower_where_episodes_do():
    pace = Pace(random.Random(1))
    status = {"attempts": 4, "cpu_times": {"load": 90.0, "plan": 8.0, "render": 32.0}}
    pace.measure(status)
    assert pace.episode_seconds == 10.0
    quiet = [pace.interval(load=0.3) for _ in range(200)]
    busy = [pace.interval(load=3.0) for _ in range(200)]
    assert 1.0 <= min(quiet) < max(quiet) <= 6.0
    assert 3.0 <= min(busy) < max(busy) <= 18.0


def test_progress_tells_of_the_latest_run(tmp_path: Path):
    (tmp_path / "one").mkdir()
    (tmp_path / "one/status.json").write_text('{"settled": 3, "target": 9}')
    assert _progress(tmp_path) == ", one: 3 of 9 episodes, 0 faults in its ledger"


def test_of_two_faults_the_earlier_one_takes_the_earlier_row_whatever_it_names() -> None:
    faults = [{"kind": "SIGKILL", "idx": -1, "time": 1.0}, {"kind": "SIGKILL", "idx": -1, "time": 2.0}]
    rows = [{"kind": "sigkill", "idx": -1, "time": 2.1}, {"kind": "sigkill", "idx": 0, "time": 1.1}]
    found = match(faults, rows, names={"SIGKILL": "sigkill"})
    assert found.detected == {"SIGKILL": 2} and found.false_kills == []


def test_a_livelock_and_a_hang_at_the_same_time_are_told_apart_by_what_ended_them() -> None:
    faults = [{"kind": "livelock", "idx": 5, "time": 1.0}, {"kind": "hang_read", "idx": 9, "time": 2.5}]
    rows = [
        {"kind": "hang", "idx": -1, "time": 3.6, "detail": "render: no progress for 1.1 s, at most 1 s"},
        {"kind": "hang", "idx": -1, "time": 5.1, "detail": "render: in this phase for 4.1 s, at most 4 s"},
    ]
    found = match(faults, rows, names={"livelock": "hang", "hang_read": "hang"})
    assert found.seconds == {"livelock": [pytest.approx(4.1)], "hang_read": [pytest.approx(1.1)]}


def test_a_fault_that_may_be_missed_takes_no_row_of_a_later_one() -> None:
    faults = [{"kind": "SIGKILL", "idx": -1, "time": t, "may_miss": t < 2} for t in (1.0, 9.0)]
    found = match(faults, [{"kind": "sigkill", "idx": -1, "time": 9.1}], names={"SIGKILL": "sigkill"})
    assert found.injected == found.detected == {"SIGKILL": 1} and found.false_kills == []
