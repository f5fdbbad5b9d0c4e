"""Attempts at one layout release their objects at one place, whatever the random stream of the planner."""

from __future__ import annotations

import pytest

from benchmarks.release_spread import LIMIT, spreads
from nimbus.datagen.tasks.plugins import discover_components
from nimbus.datagen.tasks.task import load_task


@pytest.mark.long
def test_attempts_at_a_layout_release_at_one_place_in_a_drawer():
    discover_components()
    found = spreads(load_task("put_in_drawer"), layouts=range(1, 2), times=3)
    releases = {
        phase: max(values.values()) for phase, values, compared in found if " release " in phase and compared >= 2
    }
    assert releases and max(releases.values()) < LIMIT, releases
