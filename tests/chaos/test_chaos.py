from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.chaos import checker, page, processes, trouble
from tests.chaos.lab import FINISHED
from tests.chaos.match import match

RUN = Path(__file__).parent / "run.py"


pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="cells need Linux")


@pytest.mark.slow
def test_workers_that_die_at_their_first_work_do_not_end_a_run_that_gets_somewhere(tmp_path: Path):
    """Of six episodes the first kills a worker, the second its successor, and the others are stored."""
    table = {f"render:{index}": ["sigkill"] for index in range(90) if index % 6 < 2 and index % 10 != 7}
    spec = processes.light(tmp_path / "data", episodes=90, workers=(1, 1), fixed_roles=True, render_seconds=0.03)
    run = processes.start(spec, environment=trouble.plan_faults(tmp_path / "faults", table))
    ended, error = run.end(patience=120)
    assert ended["state"] in FINISHED, f"{ended} {error}"
    assert len(checker.faults(run.folder)) == len(table) > 25


@pytest.mark.slow
def test_a_short_chaos_loses_doubles_and_harms_nothing(tmp_path: Path):
    found = tmp_path / "chaos.json"
    words = [sys.executable, str(RUN), "--short", "--episodes", "90", "--faults", "60"]
    ended = subprocess.run(
        [*words, "--json", str(found), "--work", str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, f"{ended.stdout}\n{ended.stderr}"
    totals = page.totals(json.loads(found.read_text()))
    assert totals["faults injected"] >= 60
    assert totals["faults detected"] == totals["faults injected"]


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
