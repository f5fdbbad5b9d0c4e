from __future__ import annotations

import pytest

from nimbus.runner.cell.queue.lease import Role
from nimbus.runner.cell.queue.throughput import Throughput


def test_a_mean_is_of_all_orders_but_a_workers_first():
    pace = Throughput()
    pace.record(Role.PLANNER, 9.0, is_first=True)
    assert pace.seconds(Role.PLANNER) == 9.0, "nothing better is known"
    pace.record(Role.PLANNER, 1.0, count=4, is_first=False)
    pace.record(Role.PLANNER, 0.5, is_first=False)
    assert pace.seconds(Role.PLANNER) == pytest.approx(0.3) and pace.seconds(Role.RENDERER) == 0.0
    assert pace.switch_seconds == pytest.approx(8.7)


@pytest.mark.parametrize(("seconds", "count"), [(60.0, 1), (0.04, 1), (0.02, 2), (0.005, 10), (1e-4, 16), (0.0, 16)])
def test_short_orders_are_given_several_at_once(seconds: float, count: int):
    pace = Throughput()
    pace.record(Role.RENDERER, seconds, is_first=True)
    assert pace.batch_size(Role.RENDERER) == 1, "the first one tells nothing of the next"
    pace.record(Role.RENDERER, 3 * seconds, count=3, is_first=False)
    assert pace.batch_size(Role.RENDERER) == count and pace.batch_size(Role.PLANNER) == 1


def test_orders_that_have_become_long_are_given_one_by_one_again():
    pace = Throughput()
    pace.record(Role.PLANNER, 1.0, count=1000, is_first=False)
    assert pace.batch_size(Role.PLANNER) == 16
    pace.record(Role.PLANNER, 30.0, count=1, is_first=False)
    assert pace.batch_size(Role.PLANNER) == 1 and pace.seconds(Role.PLANNER) < 0.04


def test_the_yield_is_of_plans():
    pace = Throughput()
    assert pace.plan_yield == 1.0
    for good in (True, True, True, False):
        pace.planned(good)
    assert pace.plan_yield == 0.75
