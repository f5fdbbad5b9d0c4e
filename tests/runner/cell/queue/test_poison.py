from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nimbus.runner.cell.queue.poison import Action, PoisonDetector
from tests.support.simulated_poison import simulate

QUIET = 1000
"""Leases of other episodes that ended well."""


def seen(*, well: int = QUIET, deaths: int = 0) -> PoisonDetector:
    evidence = PoisonDetector()
    for number in range(well):
        evidence.record_lease(10_000 + number, "renderer")
    for number in range(deaths):
        evidence.record_death(20_000 + number, 20_000 + number, "render", role="renderer", is_isolated=False)
    return evidence


def die(
    evidence: PoisonDetector, index: int, worker: int, *, role: str = "renderer", is_isolated: bool = False
) -> Action:
    evidence.record_death(index, worker, "render", role=role, is_isolated=is_isolated)
    return evidence.verdict(index).action


def deaths_to_quarantine(evidence: PoisonDetector, index: int = 1) -> int:
    for count in range(1, 50):
        is_isolated = evidence.verdict(index).action is Action.RETRY_ISOLATED
        if die(evidence, index, 100 + count, is_isolated=is_isolated) is Action.QUARANTINE:
            return count
    raise AssertionError("never")


def test_in_a_quiet_run_the_third_death_alone_in_a_fresh_worker_condemns():
    evidence = seen()
    assert die(evidence, 1, 1) is Action.RETRY
    assert die(evidence, 1, 2) is Action.RETRY_ISOLATED
    evidence.record_death(1, 3, "render", role="renderer", is_isolated=True)
    verdict = evidence.verdict(1)
    assert verdict.action is Action.QUARANTINE
    assert verdict.evidence == (
        "3 deaths in a row as renderer on 3 workers (render 3), the last one alone in a fresh worker; "
        "elsewhere 0.1% of leases end in a death; the probability of this by chance is 1e-09"
    )


def test_without_an_isolated_attempt_nothing_is_condemned():
    evidence = seen()
    assert [die(evidence, 1, worker) for worker in range(40)][-38:] == [Action.RETRY_ISOLATED] * 38


def test_deaths_in_one_worker_do_not_condemn():
    evidence = seen()
    actions = [die(evidence, 1, 7, is_isolated=True) for _ in range(5)]
    assert actions == [Action.RETRY] + [Action.RETRY_ISOLATED] * 4
    assert die(evidence, 1, 8, is_isolated=True) is Action.QUARANTINE


def test_a_lease_that_ended_well_wipes_out_the_deaths_before_it_in_its_role_only():
    evidence = seen()
    for worker in range(2):
        die(evidence, 1, worker)
    evidence.record_lease(1, "planner")
    assert evidence.verdict(1).action is Action.RETRY_ISOLATED
    evidence.record_lease(1, "renderer")
    assert evidence.verdict(1).action is Action.RETRY
    assert evidence.deaths(1) == 2


@pytest.mark.parametrize(("deaths", "needed"), [(0, 3), (10, 3), (111, 6), (429, 10), (1000, 16), (4000, 16)])
def test_the_more_die_elsewhere_the_more_deaths_it_takes(deaths: int, needed: int):
    assert deaths_to_quarantine(seen(deaths=deaths)) == needed


def test_nothing_known_asks_for_the_most():
    assert deaths_to_quarantine(PoisonDetector()) == 16


def ends(evidence: PoisonDetector, *sames: str, worker: int = 100) -> list[Action]:
    """Return one episode's deaths in consecutive workers, each with an exception."""
    actions = []
    for number, same in enumerate(sames):
        evidence.record_death(1, worker + number, "plan", role="planner", is_isolated=False, same=same)
        actions.append(evidence.verdict(1).action)
    return actions


@pytest.mark.parametrize("deaths", [0, 1000])
def test_the_same_exception_three_times_in_a_row_condemns_whatever_dies_elsewhere(deaths: int):
    evidence = seen(well=0, deaths=deaths)
    before = evidence.background("planner")
    ends(evidence, "a", "a")
    evidence.record_death(1, 200, "plan", role="planner", is_isolated=False, same="a")
    verdict = evidence.verdict(1)
    assert (verdict.action, verdict.same) == (Action.QUARANTINE, "a")
    assert verdict.evidence == ("3 deaths in a row as planner on 3 workers (plan 3), the last 3 in the same exception")
    evidence.remove(1)
    assert evidence.background("planner") == before


@pytest.mark.parametrize("sames", [("a", "a", "b", "a", "a"), ("a", "a", "", "a", "a"), ("",) * 6])
def test_other_exceptions_and_deaths_that_are_none_are_judged_by_the_background(sames: tuple[str, ...]):
    assert Action.QUARANTINE not in ends(seen(well=0, deaths=100), *sames)


def test_the_same_exception_of_other_episodes_says_nothing_of_this_one():
    evidence = seen(well=0)
    for index in range(50):
        for worker in range(2):
            evidence.record_death(index, 2 * index + worker, "plan", role="planner", is_isolated=False, same="a")
            assert evidence.verdict(index).action is not Action.QUARANTINE


def test_the_same_exception_in_one_worker_does_not_condemn():
    evidence = seen()
    for _ in range(4):
        evidence.record_death(1, 7, "plan", role="planner", is_isolated=False, same="a")
        assert evidence.verdict(1).action is not Action.QUARANTINE


def test_a_verdict_is_the_same_when_asked_again():
    evidence = seen()
    deaths_to_quarantine(evidence)
    assert evidence.verdict(1) == evidence.verdict(1) and evidence.deaths(1) == 3


def test_poison_that_was_found_does_not_count_as_background():
    evidence = seen()
    before = evidence.background("renderer")
    for index in range(1, 21):
        deaths_to_quarantine(evidence, index)
        evidence.remove(index)
    assert evidence.background("renderer") == before


def test_an_episode_is_no_background_for_itself():
    evidence = seen()
    alone = evidence.background("renderer")
    for worker in range(2):
        die(evidence, 1, worker)
    assert evidence.background("renderer", without=1) == alone < evidence.background("renderer")


def test_what_is_settled_stays_in_the_background_and_is_forgotten_otherwise():
    evidence = seen()
    die(evidence, 1, 1)
    share = evidence.background("renderer")
    evidence.forget(1)
    assert evidence.background("renderer") == share
    assert evidence.deaths(1) == 0 and evidence.verdict(1).action is Action.RETRY


@given(st.integers(0, 3000), st.integers(0, 3000))
@settings(max_examples=40)
def test_no_episode_dies_more_than_sixteen_times_in_a_row(well: int, deaths: int):
    assert 3 <= deaths_to_quarantine(seen(well=well, deaths=deaths)) <= 16


@pytest.mark.parametrize("background", [0.01, 0.1, 0.3, 0.5])
def test_all_poison_is_found_and_nothing_else(background: float):
    result = simulate(background=background, seed=1)
    assert (result.found, result.falsely, result.missed) == (10, 0, 0)
