"""Workers that start, exit and change roles during a run."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nimbus.runner.cli import main
from nimbus.runner.monitor.scale import FILE_NAME
from tests.support.cells import Run, make_spec, sound, until


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Any]:
    """Start a run whose plans and images take 0.3 s each, and wait for its first image."""
    runs: list[Run] = []

    def make(*, episodes: int = 24, **values: Any) -> Run:
        slow = {f"{what} {index}": "nap" for what in ("plan", "render") for index in range(episodes)}
        runs.append(Run(make_spec(tmp_path / "data", episodes=episodes, mishaps=slow, **values)))
        runs[-1].wait_for("render")
        return runs[-1]

    yield make
    for run in runs:
        run.kill()
        run.process.communicate()


def roles(run: Run) -> Counter[str]:
    status = run.status()
    assert status
    return Counter(worker.role for worker in status.workers if not worker.retiring)


def scale(run: Run, split: str) -> int:
    return main(["scale", str(run.folder), split])


@pytest.mark.long
@pytest.mark.slow
def test_workers_of_fixed_roles_come_change_and_go(start: Any, capsys: pytest.CaptureFixture[str]):
    run = start(workers=(1, 1), fixed_roles=True)
    assert scale(run, "2x3") == 0
    assert capsys.readouterr().out == "2 planners and 3 renderers; before: 1 planner and 1 renderer\n"
    assert until(lambda: roles(run) == {"planner": 2, "renderer": 3})
    before = {worker.number for worker in run.status().workers}
    assert scale(run, "3x1") == 0
    assert until(lambda: roles(run) == {"planner": 3, "renderer": 1})
    assert {worker.number for worker in run.status().workers} <= before  # a role was changed without starting a worker
    assert scale(run, "1x1") == 0
    assert until(lambda: roles(run) == {"planner": 1, "renderer": 1} and len(run.status().workers) == 2)
    assert scale(run, "1x4") == 0
    done = run.end(0)
    assert "as asked: 2x3 workers instead of 1x1" in done.out
    assert run.faults() == [] and len(sound(run.spec)) == 2


@pytest.mark.slow
def test_workers_of_changing_roles_come_and_go_and_cores_are_followed(start: Any):
    run = start(workers=None)
    all_cores = os.sched_getaffinity(0)
    assert scale(run, "2x2") == 0
    assert until(lambda: len(run.status().workers) == 4)
    assert scale(run, "auto") == 0
    assert until(lambda: len(run.status().workers) == len(all_cores))
    if len(all_cores) > 1:
        os.sched_setaffinity(run.supervisor(), {min(all_cores)})
        assert until(lambda: run.status().cores == 1 and len(run.status().workers) == 1)
    done = run.end()
    assert done.code == 0 and run.faults() == []
    assert len(all_cores) == 1 or f"1 cores, {len(all_cores)} before: 1x0 workers instead of" in done.out


@pytest.mark.long
@pytest.mark.slow
def test_a_supervisor_that_is_replaced_keeps_to_what_was_asked(start: Any):
    run = start(workers=(1, 1), fixed_roles=True)
    assert scale(run, "1x3") == 0
    first = run.supervisor()
    os.kill(first, signal.SIGKILL)
    assert until(lambda: run.status().pid != first and roles(run) == {"planner": 1, "renderer": 3})
    assert run.end().code == 0


def test_a_later_run_takes_no_notice_of_what_was_asked_of_an_earlier_one(start: Any):
    run = start(workers=(1, 1), fixed_roles=True, episodes=4)
    assert scale(run, "1x2") == 0
    assert run.end().code == 0 and (run.folder / FILE_NAME).exists()
    again = start(workers=(1, 1), fixed_roles=True, episodes=12)
    assert until(lambda: roles(again) == {"planner": 1, "renderer": 1})
    assert scale(again, "2x1") == 0
    assert until(lambda: roles(again) == {"planner": 2, "renderer": 1})


def test_what_cannot_be_scaled_is_said_in_one_line(tmp_path: Path, start: Any, capsys: pytest.CaptureFixture[str]):
    run = start(workers=(1, 1), episodes=4)
    assert [scale(run, split) for split in ("0x1", "60x5", "many", "2x", "-1x2")] == [2] * 5
    (run.folder / FILE_NAME).write_text("{")  # by a typing error
    assert run.end().code == 0
    assert scale(run, "2x2") == 2
    assert main(["scale", str(tmp_path / "nowhere"), "2x2"]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 7
    assert "PxR: 60x5 means 65 workers; the limit is 64; see nimbus scale --help" in lines
    assert lines[-2] == f"{run.folder}: no run writes into this folder; the last one is done; start one: nimbus run"
    assert "there is no dataset here" in lines[-1]
