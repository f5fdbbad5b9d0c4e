from __future__ import annotations

import numpy as np
import pytest

from nimbus.datagen.analysis.forecast import forecast_run, sum_interval
from nimbus.datagen.store.ledger.attempt import Attempt


def probe(costs: list[float], *, failing: int = 0) -> list[Attempt]:
    """Return a ledger of five episodes; the first ``failing`` ones succeeded at the second attempt, at equal cost."""
    rows = []
    for index, cost in enumerate(costs):
        common = {"episode_id": f"e{index}", "task": "t", "seed": 0, "idx": index, "variant": 0}
        if index < failing:
            rows.append(Attempt(**common, attempt=0, final=False, success=False, times={"plan": cost}))
        written = {"path": f"episodes/e{index}.hdf5", "byte_count": int(1e6 * cost)}
        times = {"plan": cost * 0.4, "render": cost * 0.6, "store_wait": 9.0, "load": 3.0}
        rows.append(Attempt(**common, **written, attempt=1, final=True, success=True, times=times))
    return rows


@pytest.mark.parametrize("spread", [0.05, 0.2, 0.4])
def test_the_true_sum_of_60_is_inside_the_interval_nine_times_of_ten(spread: float) -> None:
    rng = np.random.default_rng(7)
    shape = 1 / spread**2
    costs = rng.gamma(shape, 10 / shape, size=(400, 60))
    inside = [(told := sum_interval(list(row[:5]), 60)).low <= row.sum() <= told.high for row in costs]
    assert np.mean(inside) >= 0.88


def test_a_machine_that_is_faster_or_slower_than_in_the_probe_is_allowed_for() -> None:
    rng = np.random.default_rng(8)
    costs = rng.gamma(25, 0.4, size=(400, 60))
    speeds = rng.normal(1.0, 0.08, size=400)
    inside = [
        (told := sum_interval(list(row[:5]), 60, drift=0.08)).low <= row.sum() * speed <= told.high
        for row, speed in zip(costs, speeds, strict=True)
    ]
    assert 0.88 <= np.mean(inside) <= 0.97


def test_an_interval_narrows_with_the_probe_and_equal_costs_do_not_make_it_vanish() -> None:
    rng = np.random.default_rng(3)
    few, many = (sum_interval(list(rng.gamma(25, 0.4, size=count)), 1000) for count in (5, 50))
    assert many.high - many.low < few.high - few.low
    told = sum_interval([10.0] * 5, 60)
    assert told.low < 600 < told.high and told.high - told.low > 50


def test_failed_attempts_cost_and_waits_and_loading_do_not() -> None:
    plain, failing = (forecast_run(probe([10.0] * 5, failing=n), 100, cores=1, startup=5.0) for n in (0, 5))
    assert plain.cpu_seconds.expected == pytest.approx(1000) and failing.cpu_seconds.expected == pytest.approx(2000)
    assert plain.byte_count.expected == pytest.approx(1e9)
    assert plain.wall_seconds.expected == pytest.approx(1005)


def test_cores_share_the_work_and_the_last_episode_is_not_cut_in_two() -> None:
    one, four = (forecast_run(probe([8.0, 10.0, 12.0, 9.0, 11.0]), 100, cores=cores, startup=4.0) for cores in (1, 4))
    assert one.wall_seconds.expected / 4 < four.wall_seconds.expected < one.wall_seconds.expected / 3
    assert four.wall_seconds.low < four.wall_seconds.expected < four.wall_seconds.high
    assert four.stored.low < 95 < four.stored.expected <= 100 == four.stored.high, "none was lost, none need be"


def test_what_the_first_episode_takes_beyond_all_others_is_paid_once() -> None:
    told = forecast_run(probe([30.0, 10.0, 9.0, 10.0, 11.0]), 1000, cores=1, startup=4.0)
    assert told.cpu_seconds.expected == pytest.approx(10200)
    assert told.wall_seconds.expected == pytest.approx(10200 + 4 + 19)


def test_the_slowest_device_determines_the_forecast() -> None:
    costs, gpus = probe([10.0] * 5), {"GPU-aa": 1.0, "GPU-bb": 1.5, "disk": 0.2}
    few, many = (forecast_run(costs, 100, cores=cores, startup=5.0, busy=gpus) for cores in (1, 64))
    assert few.bound_by == "cores" and few.wall_seconds == forecast_run(costs, 100, cores=1, startup=5.0).wall_seconds
    assert many.bound_by == "GPU-bb" and many.busy_seconds["GPU-bb"] == pytest.approx(30)
    assert many.wall_seconds.expected == pytest.approx(5 + 30 + 10 / 2)
    assert many.wall_seconds.low < many.wall_seconds.expected < many.wall_seconds.high
