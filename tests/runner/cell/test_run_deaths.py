"""Death of any process at any time: nothing is lost, no plan is repeated for a renderer, and nothing is left behind."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from nimbus.runner.monitor.status import WorkerStatus
from tests.support.cells import Run, count, events, finish, finish_here, make_spec, tagged, until

EPISODES = 8


@pytest.mark.slow
def test_a_renderers_death_costs_no_plan(undisturbed: dict[str, str], tmp_path: Path):
    deaths = {"view 0 0": "kill", "view 1 5": "segv", "view 2 5": "exit", "view 5 5": "raise"}
    spec = make_spec(tmp_path / "data", mishaps={what: f"{how} x1" for what, how in deaths.items()}, episodes=EPISODES)
    run = Run(spec)
    assert run.finish() == undisturbed
    assert set(count(spec, "plan").values()) == {1}
    for index in (0, 1, 2, 5):
        first, second = (pid for _, pid in events(spec, f"render {index}"))
        assert first != second
    faults = {fault.idx: fault for fault in run.faults()}
    kinds = {index: fault.kind for index, fault in faults.items()}
    assert kinds == {0: "sigkill", 1: "sigsegv", 2: "exit_code_3", 5: "exception"}
    assert {fault.phase for fault in faults.values()} == {"render"}
    for index in (1, 5):
        assert "driving.py" in (run.folder / faults[index].incident / "stack.txt").read_text()


def test_a_planners_death_costs_one_plan(undisturbed: dict[str, str], tmp_path: Path):
    spec = make_spec(tmp_path / "data", mishaps={"plan 3": "kill x1"}, episodes=EPISODES)
    assert finish(spec) == undisturbed
    assert count(spec, "plan") == {f"plan {index}": 1 + (index == 3) for index in range(EPISODES)}


def test_a_component_that_plans_and_renders_may_die_as_well(tmp_path: Path):
    spec = make_spec(tmp_path / "data", pipeline="fused", mishaps={"plan+render 3": "segv x1"}, episodes=4)
    assert finish(spec) == in_one_process(tmp_path / "serial", pipeline="fused", episodes=4)
    assert count(spec, "plan+render")["plan+render 3"] == 2


def in_one_process(folder: Path, **values: Any) -> dict[str, str]:
    """Return the hashes of a serial run."""
    return finish_here(make_spec(folder / "data", **values))


@pytest.mark.slow
@pytest.mark.long  # test_run_lockstep.py charges deaths in a batch
def test_deaths_among_short_orders_are_charged_where_they_happened(tmp_path: Path):
    deaths = {"plan 8": "kill x1", "render 11": "segv x1", "plan 14": "raise x1", "view 17 0": "exit x1"}
    spec = make_spec(tmp_path / "data", mishaps=deaths, episodes=20, workers=(2, 1))
    run = Run(spec)
    assert run.finish() == in_one_process(tmp_path / "serial", episodes=20)
    assert sorted((fault.idx, fault.phase) for fault in run.faults()) == [
        *((8, "plan"), (11, "render"), (14, "plan"), (17, "render"))
    ]


@pytest.mark.slow
def test_of_visual_variants_only_those_are_made_again_that_were_not_stored(tmp_path: Path):
    spec = make_spec(tmp_path / "data", mishaps={"view 1 5": "nap x1", "view 2 0": "kill x1"}, episodes=4, variants=3)
    assert finish(spec) == in_one_process(tmp_path / "serial", episodes=4, variants=3)
    assert set(count(spec, "plan").values()) == {1}


def test_a_worker_killed_while_its_file_is_being_written_is_replaced(undisturbed: dict[str, str], tmp_path: Path):
    # When an episode begins, the images of the previous one may still be in writing.
    spec = make_spec(tmp_path / "data", mishaps={f"render {i}": "kill x1" for i in range(1, 8, 2)}, episodes=EPISODES)
    assert finish(spec) == undisturbed
    assert set(count(spec, "plan").values()) == {1}


def test_a_dead_fork_server_is_replaced(undisturbed: dict[str, str], tmp_path: Path):
    mishaps = {"view 2 0": "hold", "view 4 0": "kill x1"}
    spec = make_spec(tmp_path / "data", mishaps=mishaps, episodes=EPISODES)
    run = Run(spec, until="view 2 0")
    workers = set(run.processes()) - {run.supervisor(), run.fork_server()}
    os.kill(run.fork_server(), signal.SIGKILL)
    run.let_go()
    assert run.finish() == undisturbed
    assert {pid for _, pid in events(spec, "plan")} & workers
    assert sorted(fault.kind for fault in run.faults()) == ["sigkill", "zygote"]


@pytest.mark.slow
def test_a_fork_server_that_always_dies_ends_the_run(tmp_path: Path):
    spec = make_spec(tmp_path / "data", pipeline=str(tmp_path / "deadly.yaml"))
    Path(spec.pipeline).write_text("load: deadly\nrandomize: yard\nplan: yard\nrender: yard\nstore: hdf5\n")
    skills = tmp_path / "skills"
    skills.mkdir()
    (skills / "deadly.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n")
    done = Run(replace(spec, skills=(str(skills),))).end()
    assert done.code == 1
    assert "loading ended 5 times without a result, the last time killed by SIGKILL" in done.err


def test_a_supervisor_is_started_again_and_nothing_is_lost(undisturbed: dict[str, str], tmp_path: Path):
    spec = make_spec(tmp_path / "data", mishaps={"view 2 0": "nap x1", "view 5 0": "nap x1"}, episodes=EPISODES)
    run = Run(spec)
    for text in ("view 2 0", "view 5 0"):
        run.wait_for(text)
        before = run.processes()
        os.kill(run.supervisor(), signal.SIGKILL)
        assert until(lambda before=before: not set(before) & set(run.processes()))
    assert run.finish() == undisturbed


@pytest.mark.slow
def test_a_launcher_takes_everything_with_it_and_a_later_run_finishes(undisturbed: dict[str, str], tmp_path: Path):
    spec = make_spec(tmp_path / "data", mishaps={"view 4 0": "nap x1"}, episodes=EPISODES)
    run = Run(spec, until="view 4 0")
    os.kill(run.process.pid, signal.SIGKILL)
    assert until(lambda: not tagged(spec)) is not None, tagged(spec)
    run.process.communicate()
    assert finish_here(spec) == undisturbed


@pytest.mark.slow
def test_what_a_dead_worker_started_in_a_session_of_its_own_is_ended(undisturbed: dict[str, str], tmp_path: Path):
    spec = make_spec(tmp_path / "data", mishaps={"view 2 0": "orphan x1", "plan 4": "nap"}, episodes=EPISODES)
    run = Run(spec, until="plan 4")
    assert until(lambda: not [pid for pid in tagged(spec) if is_sleep(pid)]) is not None
    assert run.finish() == undisturbed


@pytest.mark.slow
def test_a_stopped_supervisor_is_replaced(undisturbed: dict[str, str], tmp_path: Path):
    """The supervisor stays stopped, without SIGCONT."""
    spec = make_spec(tmp_path / "data", mishaps={"view 2 0": "nap x1"}, episodes=EPISODES)
    run = Run(spec)
    run.wait_for("view 2 0")
    supervisor = run.supervisor()
    os.kill(supervisor, signal.SIGSTOP)
    assert until(lambda: supervisor not in run.processes())
    assert run.supervisor()
    assert run.finish() == undisturbed


@pytest.mark.slow
@pytest.mark.parametrize("name", [pytest.param("scale.json", marks=pytest.mark.long), "status.json"])
def test_a_pipe_in_the_folder_stops_no_run(name: str, undisturbed: dict[str, str], tmp_path: Path):
    """Opening a pipe waits for a writer, which does not exist."""
    spec = make_spec(tmp_path / "data", mishaps={"view 2 0": "nap x1"}, episodes=EPISODES)
    run = Run(spec)
    run.wait_for("view 2 0")
    before = run.supervisor()
    os.mkfifo(tmp_path / "pipe")
    os.replace(tmp_path / "pipe", run.folder / name)
    run.wait_for("view 4 0")
    assert run.supervisor() == before
    assert run.finish() == undisturbed


def is_sleep(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip() == "sleep"
    except OSError:
        return False


@pytest.mark.slow
@pytest.mark.parametrize(
    "all_of_them",
    [pytest.param(False, marks=pytest.mark.long), True],  # the supervisor is one of all processes
    ids=["supervisor", "all processes"],
)
def test_stopped_processes_are_forgiven(all_of_them: bool, tmp_path: Path):
    limits = {phase: (4.0, 4.0) for phase in ("plan", "render", "load", "randomize", "store")}
    spec = make_spec(tmp_path / "data", mishaps={"view 2 0": "nap x1"}, deadlines=limits, episodes=12)
    run = Run(spec, until="view 2 0")
    stopped = run.processes() if all_of_them else [run.supervisor()]
    for number in (signal.SIGSTOP, signal.SIGCONT):
        for pid in stopped:
            os.kill(pid, number)
        time.sleep(5.0 if number == signal.SIGSTOP else 0)
    run.end(0)
    assert run.faults() == []


def test_a_plan_that_cannot_be_read_is_made_again(undisturbed: dict[str, str], tmp_path: Path):
    spec = make_spec(tmp_path / "data", mishaps={"view 2 0": "nap x1"}, slots=1, slot_bytes=128, fixed_roles=True)
    run = Run(spec, until="view 2 0")
    damaged = until(lambda: list(run.folder.glob("stage/5.*.plan")))
    assert damaged
    damaged[0].write_bytes(damaged[0].read_bytes()[:-1])
    assert run.finish() == undisturbed
    assert count(spec, "plan") == {f"plan {index}": 1 + (index == 5) for index in range(EPISODES)}
    assert [fault.kind for fault in run.faults()] == ["lost_plan"]


def workers(run: Run) -> tuple[WorkerStatus, ...]:
    status = run.status()
    return status.workers if status else ()


def test_a_worker_that_does_not_take_its_order_is_replaced(undisturbed: dict[str, str], tmp_path: Path):
    mishaps = {"plan 0": "sleep x1", "view 3 0": "nap x1"}
    spec = make_spec(tmp_path / "data", mishaps=mishaps, fixed_roles=True, deadlines={"order": (1.0, 1.0)})
    run = Run(spec, until="plan 0")
    waiting = until(lambda: [worker.pid for worker in workers(run) if worker.phase == "wait"])
    assert waiting
    os.kill(waiting[0], signal.SIGSTOP)  # the renderer: the planner plans
    assert run.finish() == undisturbed
    (fault,) = run.faults()
    assert fault.kind == "hang" and "order: no progress for" in fault.detail
