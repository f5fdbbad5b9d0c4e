from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from nimbus.runner.cluster.demand import NodeBounds, wanted_nodes
from nimbus.runner.cluster.forecast import TaskCosts, forecast_cluster, slot_counts


def test_forecast_is_near_the_ideal_and_extends_to_large_jobs():
    """Episodes beyond the simulated ones keep all slots busy."""
    task = TaskCosts(name="drive", episodes=400, seconds=(8.0, 10.0, 12.0))
    few = forecast_cluster([task], 8, node_slots=8, startup=5.0, price_per_hour=2.0)
    assert 0.9 < few.efficiency < 1.0 and few.nodes == 1
    assert math.isclose(few.cost, 2.0 * few.node_hours)
    many = TaskCosts(name="drive", episodes=40_000, seconds=(8.0, 10.0, 12.0))
    large = forecast_cluster([many], 8, node_slots=8, startup=5.0)
    assert 0.99 < large.efficiency <= 1.0 and large.faulty_wall_seconds >= large.wall_seconds


def test_tasks_of_a_job_share_the_nodes():
    tasks = [TaskCosts(name=name, episodes=100, seconds=(4.0,)) for name in ("a", "b")]
    found = forecast_cluster(tasks, 12, node_slots=8, startup=1.0)
    assert found.nodes == 2 and 800 / 12 < found.wall_seconds < 1.3 * 800 / 12


def test_slots_double_up_to_the_most():
    assert slot_counts(8, 1024) == [8, 16, 32, 64, 128, 256, 512, 1024]
    assert slot_counts(8, 40) == [8, 16, 32, 40] and slot_counts(5, 5) == [5]


@given(left=st.floats(0, 1e9), slots=st.integers(1, 64), least=st.integers(1, 10), more=st.integers(0, 100))
def test_wanted_nodes_stay_within_bounds_and_suffice(left: float, slots: int, least: int, more: int):
    bounds = NodeBounds(least=least, most=least + more)
    found = wanted_nodes(left, node_slots=slots, bounds=bounds, horizon=3600.0)
    assert found == 0 if left == 0 else bounds.least <= found <= bounds.most
    assert found in (0, bounds.most) or found * slots * 3600.0 >= left
