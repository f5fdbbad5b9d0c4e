from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nimbus.runner.cell.queue.deadlines import CPU, Amnesty, Bounds, Deadlines, PhaseLimits, Timeliness


@dataclass(frozen=True)
class Look:
    age_s: float
    in_phase_s: float
    phase: str = "render"
    extended_s: float = 0.0


def test_the_table_holds_until_fifty_observations_are_there():
    deadlines = Deadlines()
    for _ in range(49):
        deadlines.observe("render", 3.0, 100.0)
    assert deadlines.limits("render") == PhaseLimits(10, 600)
    deadlines.observe("render", 3.0, 100.0)
    assert deadlines.limits("render") == PhaseLimits(18, 600)


def test_a_fast_run_shortens_limits_to_their_floor_and_a_slow_one_stretches_them_to_their_ceiling():
    deadlines = Deadlines()
    for _ in range(500):
        deadlines.observe("render", 0.05, 2.5)
    assert deadlines.limits("render") == CPU["render"].floor
    for _ in range(500):
        deadlines.observe("render", 1e6, 1e6)
    assert deadlines.limits("render") == CPU["render"].ceiling
    for _ in range(500):  # and back, when the slow ones have left the window
        deadlines.observe("render", 0.05, 2.5)
    assert deadlines.limits("render") == CPU["render"].floor


def test_a_single_outlier_among_hundreds_does_not_move_a_limit():
    deadlines = Deadlines()
    for number in range(400):
        deadlines.observe("render", 9.9 if number == 200 else 0.1, 2.5)
    assert deadlines.limits("render").gap == 10


@given(st.lists(st.tuples(st.floats(0, 1e4), st.floats(0, 1e4)), max_size=120), st.sampled_from(sorted(CPU)))
def test_limits_stay_within_their_bounds(observed: list[tuple[float, float]], phase: str):
    deadlines = Deadlines()
    for gap, total in observed:
        deadlines.observe(phase, gap, total)
    limits, bounds = deadlines.limits(phase), CPU[phase]
    assert bounds.floor.gap <= limits.gap <= bounds.ceiling.gap
    assert bounds.floor.total <= limits.total <= bounds.ceiling.total


@pytest.mark.parametrize("phase", sorted(CPU))
def test_a_worker_at_nine_tenths_of_its_deadlines_is_never_killed(phase: str):
    deadlines = Deadlines()
    for _ in range(500):
        limits = deadlines.limits(phase)
        gap, total = 0.9 * limits.gap, 0.9 * limits.total
        assert deadlines.judge(Look(gap, total, phase)) is Timeliness.SLOW
        deadlines.observe(phase, gap, total)


@pytest.mark.parametrize(
    ("age", "in_phase", "verdict"),
    [
        (5.0, 300.0, Timeliness.OK),
        (5.1, 6.0, Timeliness.SLOW),
        (0.1, 301.0, Timeliness.SLOW),
        (10.0, 600.0, Timeliness.SLOW),
        (10.1, 11.0, Timeliness.HUNG),
        (0.1, 600.1, Timeliness.HUNG),
    ],
)
def test_half_a_limit_is_slow_and_a_whole_one_hung(age: float, in_phase: float, verdict: Timeliness):
    assert Deadlines().judge(Look(age, in_phase)) is verdict


def test_the_complaint_names_the_limit_that_is_over():
    deadlines = Deadlines()
    assert deadlines.complaint(Look(10.34, 11.0)) == "render: no progress for 10.3 s, at most 10 s"
    assert deadlines.complaint(Look(0.1, 601.0)) == "render: in this phase for 601.0 s, at most 600 s"


def test_waiting_has_no_deadline():
    assert Deadlines().judge(Look(1e9, 1e9, "wait")) is Timeliness.OK
    Deadlines().observe("wait", 1.0, 1.0)


def test_fixed_limits_are_not_learned():
    deadlines = Deadlines({"plan": Bounds.fixed(0.5, 2.0)})
    for _ in range(100):
        deadlines.observe("plan", 0.4, 1.9)
    assert deadlines.limits("plan") == PhaseLimits(0.5, 2.0)


def test_an_extension_holds_the_watchdog_off_within_its_budget():
    deadlines = Deadlines(extension_budget=100)
    assert deadlines.judge(Look(200, 200, extended_s=1)) is Timeliness.OK
    assert deadlines.judge(Look(200, 200, extended_s=0)) is Timeliness.HUNG
    stuck = Look(0.1, 701, extended_s=1e9)
    assert deadlines.judge(stuck) is Timeliness.HUNG
    assert "in this phase, extension included, for 701.0 s, at most 700 s" in deadlines.complaint(stuck)


def test_a_loop_that_is_a_little_late_forgives_nothing():
    amnesty = Amnesty(0.1)
    assert [amnesty.late(now) for now in (5.0, 5.1, 5.15, 5.4)] == [0.0] * 4
    assert amnesty.forgiven(100.0) == 0.0


def test_after_a_pause_nobody_has_hung_and_who_hangs_is_still_found():
    amnesty, deadlines = Amnesty(0.1), Deadlines()
    amnesty.late(100.0)
    assert amnesty.late(160.1) == pytest.approx(60.0)
    before, amid = Look(62.0, 70.0), Look(30.0, 70.0)
    assert deadlines.judge(before) is Timeliness.HUNG
    assert deadlines.judge(before, amnesty=amnesty) is Timeliness.OK
    assert deadlines.judge(amid, amnesty=amnesty) is Timeliness.OK
    for step in range(1, 90):  # the same worker continues to hang
        assert amnesty.late(160.1 + 0.1 * step) == 0.0
    assert deadlines.judge(Look(71.0, 79.0), amnesty=amnesty) is Timeliness.HUNG


@given(st.floats(0, 300), st.floats(0.3, 100))
def test_an_age_is_forgiven_what_it_shares_with_the_pause(age: float, pause: float):
    amnesty = Amnesty(0.1)
    amnesty.late(1000.0)
    late = amnesty.late(1000.1 + pause)
    assert amnesty.forgiven(age) == pytest.approx(min(age, late), abs=1e-9)
