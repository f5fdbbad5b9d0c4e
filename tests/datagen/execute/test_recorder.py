"""Slip of carried objects, computed from synthetic records."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nimbus.datagen.execute.recorder import largest_creep


def test_nothing_carried_creeps_nothing():
    assert largest_creep(np.zeros(0), rate=15) == 0.0
    assert largest_creep(np.zeros(20), rate=15) == 0.0


def test_creep_is_what_it_moved_over_how_long_it_was_carried():
    slip = np.concatenate([np.zeros(5), np.linspace(0.0001, 0.003, 30), np.zeros(5)])
    assert largest_creep(slip, rate=15) == pytest.approx(0.003 / 2)


def test_the_fastest_of_several_carries_counts():
    slow, fast = np.full(30, 0.001), np.full(15, 0.002)
    slip = np.concatenate([slow, np.zeros(3), fast, np.zeros(3), slow])
    assert largest_creep(slip, rate=15) == pytest.approx(0.002)


def test_a_carry_that_lasts_to_the_end_counts():
    assert largest_creep(np.array([0.0, 0.001, 0.002]), rate=10) == pytest.approx(0.01)


@given(st.lists(st.floats(1e-6, 0.01), min_size=1, max_size=40), st.integers(0, 5), st.integers(0, 5))
def test_what_is_around_a_carry_changes_nothing(slip, before, after):
    padded = np.concatenate([np.zeros(before), slip, np.zeros(after)])
    assert largest_creep(padded, rate=15) == pytest.approx(slip[-1] * 15 / len(slip))
