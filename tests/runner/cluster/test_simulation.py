"""Laws of the balance under faults: every episode is settled once, none is lost, and little time is lost."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from nimbus.runner.cluster.balance import Balance
from nimbus.runner.cluster.pending_work import WorkGroup
from nimbus.runner.cluster.simulated_run import FAULTY, Conditions, SimulatedRun
from nimbus.runner.cluster.simulation import Simulation

CLASS_SECONDS = np.array([6.7, 10.0, 14.0])
"""Durations of episodes with two, three and four objects [s]."""


def simulate(slots: int, per_slot: int, *, conditions: Conditions, seed: int, can_move: bool = True) -> SimulatedRun:
    random = np.random.Generator(np.random.Philox(key=[seed, 1]))
    classes = random.integers(0, 3, slots * per_slot)
    costs = CLASS_SECONDS[classes] * np.exp(random.normal(0.0, 0.11, len(classes)))
    group = WorkGroup(name="task", count=len(costs), weights=tuple(CLASS_SECONDS))
    classed = {"task": lambda index: int(classes[index])}
    balance = Balance([group], cost_classes=classed, has_recall=can_move, has_copies=can_move)
    nodes = [1, 2, 4, 9] * (slots // 16)
    return Simulation(balance, {"task": costs.tolist()}, nodes, conditions=conditions, seed=seed).run()


@pytest.mark.parametrize("start", range(4))
def test_every_episode_is_settled_once_under_any_faults(start: int):
    """Nodes live for five minutes, so most nodes of a run die."""
    hard = replace(FAULTY, mean_life=300.0, partitions=10.0, hang_share=0.02, slow_share=0.2)
    for seed in range(start, 60, 4):
        run = simulate(16, 12, conditions=hard, seed=seed)
        assert run.settled == 16 * 12


@pytest.mark.parametrize(("conditions", "least"), [(Conditions(), 0.97), (FAULTY, 0.93)], ids=["calm", "faulty"])
def test_little_time_is_lost_on_128_slots(conditions: Conditions, least: float):
    assert simulate(128, 60, conditions=conditions, seed=3).efficiency >= least


def test_recall_and_copies_pay_under_faults():
    slow = replace(FAULTY, slow_share=0.1, slow_speed=0.2)
    plain = simulate(64, 20, conditions=slow, seed=1, can_move=False)
    assert simulate(64, 20, conditions=slow, seed=1).seconds < 0.9 * plain.seconds
