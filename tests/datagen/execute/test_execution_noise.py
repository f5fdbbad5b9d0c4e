from __future__ import annotations

import numpy as np
import pytest

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.execute.execution_noise import draw_execution_noise, noise_scale
from nimbus.datagen.execute.workcell import SimulatedWorkcell
from nimbus.datagen.random_streams import generator
from tests.support.one_can import thing, workcell


@pytest.fixture(scope="module")
def cell() -> SimulatedWorkcell:
    made = workcell(thing())
    made.look()
    return made


def drawn(cell: SimulatedWorkcell, postures: FloatArray, *, seed: int = 0, sigma: float = 0.015) -> FloatArray:
    scale = noise_scale(cell.simulation.model, cell.robot.arm.joints, sigma=sigma)
    return draw_execution_noise(generator(seed, "noise"), cell.scene, postures, scale=scale)


def home(cell: SimulatedWorkcell, rows: int) -> FloatArray:
    return np.tile(cell.robot.arm.home, (rows, 1))


def test_noise_begins_and_ends_at_nothing(cell: SimulatedWorkcell):
    noise = np.array([drawn(cell, home(cell, 30), seed=seed) for seed in range(40)])
    spread = noise.std(axis=(0, 2))
    assert not noise[:, -2:].any() and (spread[-5:-2] < 0.9 * 0.015).all()
    assert (np.diff(spread[-6:]) <= 0).all() and spread[0] < 0.004
    assert spread[10:22].mean() == pytest.approx(0.015, rel=0.1)


def test_noise_of_neighbouring_rows_is_alike(cell: SimulatedWorkcell):
    middle = np.array([drawn(cell, home(cell, 40), seed=seed)[10:30] for seed in range(40)])
    assert np.corrcoef(middle[:, :-1].ravel(), middle[:, 1:].ravel())[0, 1] == pytest.approx(0.8, abs=0.05)


def test_one_stream_gives_the_same_noise(cell: SimulatedWorkcell):
    np.testing.assert_array_equal(drawn(cell, home(cell, 12)), drawn(cell, home(cell, 12)))
    assert drawn(cell, home(cell, 2)).tolist() == np.zeros((2, 7)).tolist()


def test_noise_keeps_away_from_things(cell: SimulatedWorkcell):
    """The postures lead down to the can. Noise moves no posture closer than 2 cm, unless it is planned closer."""
    above = cell.tool_pose()
    above[:3, 3] = cell.pose("items_0")[:3, 3] + (0.0, 0.0, 0.15)
    low = cell.scene.arm.solve(above, np.array(cell.robot.arm.home))
    assert low is not None
    postures = np.linspace(cell.robot.arm.home, low, 30)
    nearer = [
        cell.scene.clearance(posture + noise) < min(0.02, cell.scene.clearance(posture)) - 0.0015
        for seed in range(5)
        for posture, noise in zip(postures, drawn(cell, postures, seed=seed, sigma=0.05), strict=True)
    ]
    assert sum(nearer) <= 3, "between the tried shares the slope limit takes smaller ones"


def test_noise_keeps_within_joint_limits(cell: SimulatedWorkcell):
    lower, upper = cell.scene.limits.T
    edge = home(cell, 30)
    edge[:, 6] = upper[6]
    noisy = edge + drawn(cell, edge, sigma=0.05)
    assert (noisy <= upper + 1e-6).all() and (noisy >= lower - 1e-6).all()
    assert (noisy[:, 6] < upper[6]).any()
