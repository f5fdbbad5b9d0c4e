"""Conversion of cuRobo's trajectories to commands."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from nimbus.datagen.plan.curobo.retime import retime
from nimbus.datagen.random_streams import generator


def smooth(seed: int, count: int) -> np.ndarray:
    """Return a trajectory (H, 3) from rest to rest, with a detour."""
    rng = generator(seed, "retime")
    s = np.linspace(0.0, 1.0, count)[:, None]
    ease = s**3 * (10 - 15 * s + 6 * s**2)
    return rng.uniform(-1, 1, 3) + ease * rng.uniform(-2, 2, 3) + ease * (1 - ease) * rng.uniform(-1, 1, 3)


@settings(max_examples=30)
@given(st.integers(0, 99), st.integers(20, 200), st.floats(0.2, 1.0), st.sampled_from([1 / 15, 1 / 30]))
def test_a_motion_keeps_the_limits_its_ends_and_the_period(seed: int, count: int, pace: float, period: float) -> None:
    positions = smooth(seed, count)
    velocity, acceleration = pace * np.array([2.0, 1.0, 1.5]), pace**2 * np.array([6.0, 5.0, 4.0])
    motion = retime(positions, 0.02, velocity=velocity, acceleration=acceleration, period=period)
    np.testing.assert_array_equal(motion.positions[[0, -1]], positions[[0, -1]])
    np.testing.assert_allclose(motion.time, period * np.arange(len(motion.time)), atol=1e-12)
    assert not motion.velocities[[0, -1]].any()
    assert (np.abs(motion.velocities) <= velocity * 1.001).all()
    assert (np.abs(np.diff(motion.velocities, axis=0)) / period <= acceleration * 1.02).all()


def test_half_the_pace_takes_twice_as_long_over_the_same_way() -> None:
    positions = smooth(3, 60)
    velocity, acceleration = np.full(3, 1.0), np.full(3, 3.0)
    fast = retime(positions, 0.02, velocity=velocity, acceleration=acceleration, period=0.01)
    slow = retime(positions, 0.02, velocity=velocity / 2, acceleration=acceleration / 4, period=0.02)
    np.testing.assert_allclose(slow.positions, fast.positions, atol=1e-9)
    np.testing.assert_allclose(slow.velocities, fast.velocities / 2, atol=1e-9)
