from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import time
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from nimbus.datagen.episode.trajectory import Outcome, Reason
from nimbus.datagen.errors import InputError
from nimbus.datagen.stages import Stored
from nimbus.runner.cell.transport.spec import CellSpec
from nimbus.runner.cli import main
from nimbus.runner.monitor.dashboard import Dashboard, StatusDashboard
from nimbus.runner.monitor.dashboard_view import duration, view
from nimbus.runner.monitor.progress import Progress, line
from nimbus.runner.monitor.status import Event, RingStatus, Status, WorkerStatus, read_status
from nimbus.runner.system.console import TerminalOutput
from tests.support import ROOT

TIMES = {"load": 0.5, "plan": 2.0, "render": 20.0, "store": 1.0, "store_wait": 0.25}


def good(index: int = 0) -> Stored:
    return Stored(
        episode_id=f"sort_trash-{index}",
        index=index,
        variant=0,
        attempt=0,
        outcome=Outcome(success=True),
        path=f"episodes/{index}.hdf5",
        step_count=200,
        byte_count=30_000_000,
        times=TIMES,
    )


def bad(index: int = 0, *, final: bool = False) -> Stored:
    return Stored(
        episode_id=f"sort_trash-{index}",
        index=index,
        variant=0,
        attempt=1,
        outcome=Outcome(success=False, phase="pick items_1", reason=Reason.SLIPPED_IN_TRANSIT),
        final=final,
        times={"load": 0.5, "plan": 4.0},
    )


def progress(folder: Path, *, target: int = 10, already: int = 0) -> Progress:
    return Progress(folder, task="sort_trash", target=target, already=already)


def test_progress_counts_stages_reasons_times_and_waits(tmp_path: Path) -> None:
    kept = progress(tmp_path, already=2)
    for stored in (good(0), bad(1), replace(bad(1, final=True), attempt=2), good(2)):
        kept.add(stored)
    status = kept.status
    assert (status.attempts, status.stored, status.given_up, status.settled) == (4, 2, 1, 5)
    assert status.failures == {"slipped_in_transit": 2}
    assert status.counts == {"load": 4, "randomize": 4, "plan": 4, "render": 2, "store": 2}
    assert status.cpu_times == {"load": 2.0, "plan": 12.0, "render": 40.0, "store": 2.0}
    assert status.waits == {"store_wait": 0.5}
    status.started, status.startup_seconds, status.updated = 1000.0, 8.0, 1020.0
    assert status.rate("plan") == pytest.approx(4 / 12) and status.rate("unknown") is None


def test_variants_of_one_plan_count_its_planning_once(tmp_path: Path) -> None:
    kept = progress(tmp_path)
    further = {"render": 20.0, "store": 1.0, "store_wait": 0.25}  # the first variant reported the times of planning
    kept.add(good(0))
    kept.add(replace(good(0), variant=1, times=further))
    kept.add(bad(1, final=True))
    kept.add(replace(bad(1, final=True), variant=1, times={}))
    status = kept.status
    assert (status.attempts, status.stored, status.given_up) == (2, 2, 2)
    assert status.failures == {"slipped_in_transit": 1}
    assert (status.counts["plan"], status.counts["render"]) == (2, 2)
    assert (status.cpu_times["plan"], status.cpu_times["render"]) == (6.0, 40.0)


def test_the_rest_takes_as_long_as_the_rate_so_far_says(tmp_path: Path) -> None:
    kept = progress(tmp_path, target=10)
    assert kept.status.remaining is None
    kept.add(good(0))
    kept.add(bad(1, final=True))
    kept.status.started, kept.status.updated = 1000.0, 1060.0
    assert kept.status.remaining == pytest.approx(240.0)


def test_the_status_file_is_written_at_most_twice_a_second_and_last_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1000.0]
    monkeypatch.setattr("nimbus.runner.monitor.progress.time.time", lambda: now[0])
    kept = progress(tmp_path)
    contents = []
    for _ in range(16):  # two seconds
        now[0] += 0.125
        kept.add(good())
        contents.append((tmp_path / "status.json").read_bytes())
    assert len(set(contents)) == 5, "the first, and four of two seconds"
    kept.finish("done")
    status = read_status(tmp_path)
    assert status == kept.status and status is not None and status.state == "done"
    assert json.loads((tmp_path / "status.json").read_text())["stored"] == kept.status.stored
    assert [path.name for path in tmp_path.iterdir()] == ["status.json"]


def test_without_a_terminal_each_attempt_is_one_plain_line(tmp_path: Path) -> None:
    output = io.StringIO()
    with Dashboard(progress(tmp_path), console=TerminalOutput(file=output, width=40)) as dashboard:
        dashboard.note("compiling kernels (10-20 s, once)")
        dashboard.add(good(0))
        dashboard.add(bad(1, final=True))
    assert output.getvalue().splitlines() == [
        "compiling kernels (10-20 s, once)",
        "[1/10] sort_trash-0: stored, 200 steps, 30.0 MB, 23.0 s CPU",
        "[2/10] sort_trash-1: attempt 2 failed in pick items_1: slipped in transit, 4.0 s CPU",
    ]


def test_what_the_run_is_doing_is_said_until_the_first_result(tmp_path: Path) -> None:
    kept = progress(tmp_path)
    dashboard = Dashboard(kept, console=TerminalOutput(file=io.StringIO()))
    dashboard.note("compiling kernels (10-20 s, once)")
    assert kept.status.activity == "compiling kernels (10-20 s, once)"
    dashboard.add(good(0))
    assert kept.status.activity == ""


def test_on_a_terminal_the_dashboard_shows_stages_reasons_and_time_left(tmp_path: Path) -> None:
    output = io.StringIO()
    kept = progress(tmp_path)
    with Dashboard(kept, console=TerminalOutput(file=output, force_terminal=True, width=110)) as dashboard:
        dashboard.add(good(0))
        dashboard.add(bad(1))
    shown = output.getvalue()
    assert "\x1b[" in shown
    for word in ("sort_trash", "1 of 10 episodes", "left", "render", "store wait", "succeeded", "slipped in transit"):
        assert word in shown


def test_the_view_fits_80_columns(tmp_path: Path) -> None:
    kept = progress(tmp_path, target=1000)
    kept.add(good())
    kept.add(bad())
    console = Console(file=io.StringIO(), width=80, record=True)
    kept.status.started, kept.status.updated = 1000.0, 5000.0
    console.print(view(kept.status))
    text = console.export_text()
    assert "…" not in text and "slipped in transit" in text and "1 of 1000 episodes" in text
    assert "1 h 06 min" in text


def test_a_line_of_a_failure_without_phase_still_reads(tmp_path: Path) -> None:
    stored = Stored(
        episode_id="e", index=0, variant=0, attempt=0, outcome=Outcome(success=False, reason=Reason.NO_PATH)
    )
    assert line(stored, progress(tmp_path).status) == "[0/10] e: attempt 1 failed: no path, 0.0 s CPU"


def test_an_evaluation_counts_layouts_and_no_attempts(tmp_path: Path) -> None:
    failed = Outcome(success=False, phase="hold", reason=Reason.TIME_LIMIT)
    stored = Stored(episode_id="e", index=0, variant=0, attempt=0, outcome=failed)
    unit = CellSpec(folder="", task="", episodes=4, indices=(1, 3)).unit
    kept = Progress(tmp_path, task="sort_trash", target=2, unit=unit)
    assert line(stored, kept.status) == "[0/2] e: failed: time limit (an object held), 0.0 s CPU"
    kept.ready()
    assert kept.status.events[-1].text.endswith("; now 2 layouts")
    console = Console(width=100, record=True, file=io.StringIO())
    console.print(view(kept.status))
    assert "0 of 2 layouts" in console.export_text()


@pytest.mark.parametrize(("seconds", "text"), [(0.2, "0 s"), (59.4, "59 s"), (185, "3 min 05 s"), (7800, "2 h 10 min")])
def test_durations_read_like_speech(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_a_run_whose_process_is_gone_is_not_said_to_run(tmp_path: Path) -> None:
    kept = progress(tmp_path)
    assert (status := read_status(tmp_path)) and status.state == "running"
    with subprocess.Popen([sys.executable, "-c", ""]) as gone:
        gone.wait()
    kept.status.pid = gone.pid
    kept.finish("running")
    assert (status := read_status(tmp_path)) and status.state == "killed"


def test_a_status_nested_too_deeply_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "status.json").write_text("[" * 100_000)
    with pytest.raises(InputError, match=r"status\.json: not the status file of a run; delete this file$"):
        read_status(tmp_path)


def cell_status(**values: Any) -> Status:
    """Return the status of a cell's run with many events, at 15:00:00."""
    workers = tuple(
        WorkerStatus(
            number=seat + 1,
            seat=seat,
            pid=100 + seat,
            role="renderer" if seat else "planner",
            phase="render" if seat else "plan",
            index=1000 + seat,
            age=0.04 if seat else 12.5,
            in_phase=3.2,
            resident=1_432_000_000,
            results=123,
        )
        for seat in range(values.pop("worker_count", 3))
    )
    events = (
        Event(number=1, text="[1/60] a: stored", time=1000.0),
        Event(number=2, text="worker 2: hang in render of episode 12: " + "no stamp " * 20, kind="fault", time=1010.0),
        Event(number=3, text="the disk is full: waiting for room", kind="disk", time=1020.0),
    )
    known: dict[str, Any] = {
        "task": "sort_trash",
        "mode": "cell",
        "target": 60,
        "stored": 30,
        "attempts": 33,
        "counts": {"plan": 33, "render": 30},
        "cpu_times": {"load": 4.0, "plan": 60.0, "render": 300.0},
        "started": 1000.0,
        "updated": 1200.0,
        "startup_seconds": 8.0,
        "phases": {"load": 7.5, "workers": 0.5},
        "cores": 2,
        "longest_episode": 20.0,
        "faults": {"hang": 1, "killed_by_sigsegv": 2},
        "quarantined": 1,
        "switches": 3,
        "ring": RingStatus(slots=16, ready=4, taken=2, granted=1, spilled=3),
        "workers": workers,
        "events": events,
    }
    return Status(**known | values)


def shown(status: Status, *, width: int = 80) -> str:
    console = Console(file=io.StringIO(), width=width, record=True)
    console.print(view(status))
    return console.export_text()


def test_the_view_of_a_cell_shows_workers_ring_bound_and_what_happened() -> None:
    text = shown(cell_status())
    lines = text.splitlines()
    assert max(map(len, lines)) <= 80
    assert "bound 3 min 00 s (cores), 1.07 x" in text and "start-up 8.0 s (load 7.5 s, workers 0.50 s)" in text
    assert "████▓▓▒·········" in text and "4 ready, 3 in files" in text
    assert "faults hang 1, killed by sigsegv 2" in text and "quarantined 1" in text and "role switches 3" in text
    row = next(line.split() for line in lines if "planner" in line)
    assert row == ["1", "planner", "plan", "3.2", "s", "1000", "12", "s", "1,432", "MB", "123"]
    assert "a: stored" not in text  # episodes are counted, unusual events are shown
    assert "the disk is full: waiting for room" in text and "worker 2: hang in render of episode 12" in text


def test_the_view_of_a_large_cell_stays_on_the_screen() -> None:
    text = shown(cell_status(worker_count=64, ring=RingStatus(slots=128, ready=100, taken=20, granted=8)))
    assert len(text.splitlines()) < 40 and "and 52 more" in text
    assert max(map(len, text.splitlines())) <= 80


def test_the_bound_is_the_work_over_the_cores_or_the_longest_episode() -> None:
    status = cell_status()
    assert status.bound_seconds == 364 / 2 and status.distance == pytest.approx(200 / 182)
    assert status.bound_after_startup == 180 and status.distance_after_startup == pytest.approx(192 / 180)
    assert replace(status, cores=64).bound_seconds == 20.0
    assert replace(status, cpu_times={}, longest_episode=0.0).distance is None
    assert status.working_bound.resource == "cores"


def test_a_busy_gpu_is_named_as_the_bound() -> None:
    busy = {"disk": 20.0, "GPU-0a1b2c3d-5555": 60.0, "GPU-99999999-5555": 190.0}
    status = cell_status(busy_times=busy)
    assert status.bound_seconds == 190 and status.to_plain()["bound_by"] == "GPU-99999999-5555"
    assert "bound 3 min 10 s (GPU-99999999), 1.01 x" in shown(status)


def test_the_longest_episode_counts_all_its_attempts_and_variants_but_no_loading(tmp_path: Path) -> None:
    kept = progress(tmp_path)
    kept.add(bad(0))
    kept.add(replace(good(0), attempt=2))
    kept.add(replace(good(0), attempt=2, variant=1, times={"render": 7.0}))
    kept.add(good(1))
    assert kept.status.longest_episode == pytest.approx(4.0 + 23.0 + 7.0)


def test_the_file_holds_what_follows_from_its_fields(tmp_path: Path) -> None:
    kept = progress(tmp_path)
    kept.add(good(0))
    kept.finish("done")
    found = json.loads((tmp_path / "status.json").read_text())
    assert found["bound_seconds"] == kept.status.bound_seconds == pytest.approx(23.5)
    assert (found["settled"], found["launcher"], found["pid"]) == (1, os.getpid(), os.getpid())
    documented = ROOT.joinpath("docs", "status.md").read_text()
    assert [key for key in found if f"`{key}`" not in documented] == []
    inside = {"workers": WorkerStatus, "ring": RingStatus, "events": Event}
    for kind in inside.values():
        assert [field.name for field in fields(kind) if f"`{field.name}`" not in documented] == []


def test_a_folder_that_is_gone_or_full_does_not_stop_a_run(tmp_path: Path) -> None:
    kept = progress(tmp_path)
    (tmp_path / "status.json").unlink()
    tmp_path.rmdir()
    kept.finish("done")
    assert not tmp_path.exists()


def test_a_plain_run_says_that_it_loads_and_then_each_event_once(tmp_path: Path) -> None:
    output = io.StringIO()
    with StatusDashboard(tmp_path, console=TerminalOutput(file=output, width=40)) as watcher:
        assert watcher.look() == -1 and output.getvalue() == ""
        time.sleep(3.1)
        assert watcher.look() == watcher.look() == -1
        kept = progress(tmp_path)
        kept.tell("compiling", kind="phase")
        kept.tell("worker 1: hang", kind="fault")
        kept.finish("done")
        watcher.look()
        assert watcher.look() == 0
    assert output.getvalue().splitlines() == ["loading libraries, scene and robot", "compiling", "worker 1: hang"]


def test_startup_is_named_phases_with_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each phase has its duration and the remaining work; together they are the start-up."""
    clock = iter([1000.0, 1009.0])
    monkeypatch.setattr("nimbus.runner.monitor.progress.time.time", lambda: next(clock, 1040.0))
    kept = Progress(tmp_path, task="sort_trash", target=4, started=1000.0)
    kept.end_phase("load", following="compiling")
    kept.end_phase("compile")
    kept.ready()
    assert kept.status.phases == {"load": 9.0, "compile": 31.0}
    assert kept.status.startup_seconds == 40.0 and kept.status.activity == "compiling, then 4 episodes"
    assert [(event.kind, event.text) for event in kept.status.events] == [
        ("phase", "load: 9.0 s; now compiling, then 4 episodes"),
        ("phase", "start-up: 40.0 s (load 9.0 s, compile 31.0 s); now 4 episodes"),
    ]


def test_plain_output_leaves_role_switches_out(tmp_path: Path) -> None:
    output = io.StringIO()
    with StatusDashboard(tmp_path, console=TerminalOutput(file=output)):
        kept = progress(tmp_path)
        kept.tell("worker 2: renderer becomes planner", kind="role")
        kept.tell("worker 1: hang", kind="fault")
        kept.flush()
    assert output.getvalue() == "worker 1: hang\n"


@pytest.mark.parametrize(
    "changes",
    [
        {"startup_seconds": float("inf")},
        {"phases": {"load": float("nan")}},
        {"target": 10**400},
        {"events": [{"number": 1, "text": "x", "time": 1e300}]},
    ],
    ids=["time", "phase", "count", "event"],
)
def test_numbers_that_no_clock_shows_are_refused(tmp_path: Path, changes: dict[str, object]):
    """Showing a foreign status once ended in a traceback."""
    (tmp_path / "status.json").write_text(json.dumps({"task": "t", "target": 1, **changes}))
    assert main(["status", str(tmp_path)]) == 2
