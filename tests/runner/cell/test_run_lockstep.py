"""Planners with several leases in lockstep: nothing is lost, and the right episode is charged."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.cells import Run, count, finish, finish_here, make_spec

EPISODES = 14


@pytest.fixture(scope="module")
def planned_singly(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return the hashes of the same episodes, planned one after the other in one process."""
    folder = tmp_path_factory.mktemp("serial")
    return finish_here(make_spec(folder / "data", pipeline="lanes", episodes=EPISODES))


def test_lockstep_makes_what_single_planning_makes(planned_singly: dict[str, str], tmp_path: Path):
    spec = make_spec(tmp_path / "data", pipeline="lanes", episodes=EPISODES)
    assert finish(spec) == planned_singly
    assert count(spec, "plan") == {f"plan {index}": 1 for index in range(EPISODES)}
    sizes = count(spec, "batch of")
    assert max(sizes) == "batch of 4", "one for each lane"


@pytest.mark.slow
def test_death_in_lockstep_is_charged_to_its_episode(planned_singly: dict[str, str], tmp_path: Path):
    deaths = {"plan 5": "kill x1", "plan 9": "raise x1"}
    run = Run(make_spec(tmp_path / "data", pipeline="lanes", episodes=EPISODES, mishaps=deaths))
    assert run.finish() == planned_singly
    assert {(fault.idx, fault.kind) for fault in run.faults()} == {(5, "sigkill"), (9, "exception")}


@pytest.mark.slow
def test_poison_in_a_batch_is_found_and_only_that(tmp_path: Path):
    """An episode whose query ends every worker is quarantined; those in the same batch are stored."""
    spec = make_spec(tmp_path / "data", pipeline="lanes", episodes=EPISODES, mishaps={"query 6": "segv"})
    run = Run(spec)
    run.end(1)
    status = run.status()
    assert status is not None and (status.stored, status.quarantined) == (EPISODES - 1, 1)
    charged = {fault.idx for fault in run.faults()}
    assert charged == {-1, 6}, "a batch is nobody's until each of its episodes is planned alone"


@pytest.mark.slow
def test_livelock_in_one_lane_ends_at_its_own_limit(planned_singly: dict[str, str], tmp_path: Path):
    spec = make_spec(
        tmp_path / "data",
        pipeline="lanes",
        episodes=EPISODES,
        mishaps={"plan 7": "livelock x1"},
        deadlines={"plan": (20.0, 3.0)},
    )
    run = Run(spec)
    assert run.finish() == planned_singly
    assert [(fault.idx, fault.kind) for fault in run.faults()] == [(7, "hang")]
