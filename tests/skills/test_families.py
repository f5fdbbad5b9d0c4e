"""One attempt for each family of tasks: a layout of a shipped task is planned, executed in physics, and judged."""

from __future__ import annotations

import numpy as np
import pytest

from nimbus.datagen.execute.recorder import largest_creep
from tests.support.task_attempts import attempt, successes

FAMILIES = [
    "stack_blocks",
    "push_to_region",
    "insert_peg",
    "conveyor_pick",
    "follow_thing",
]
OTHERS = [
    "place_beside",
    "pull_block",
    "slide_block",
    "rotate_block",
    "wipe_table",
    "put_in_drawer",
    "fold_cloth",
    "route_cable",
    "hang_cloth",
    "pour_beads",
    "pour_grains",
]
"""Families whose skills ``tests/golden`` executes without physics in less time."""


@pytest.mark.slow
@pytest.mark.parametrize("task", [*FAMILIES, *(pytest.param(name, marks=pytest.mark.long) for name in OTHERS)])
def test_a_task_of_the_family_succeeds_in_physics(task: str):
    assert successes(task) == 1


def test_contacts_of_a_stack_are_believable():
    trajectory = attempt("stack_blocks")
    assert trajectory.outcome.success
    assert trajectory.contacts["held_penetration"].max() < 0.002
    assert largest_creep(trajectory.contacts["held_slip"], rate=trajectory.rate) < 0.0005


def test_a_pushed_block_is_moved_without_being_grasped():
    trajectory = attempt("push_to_region")
    block = trajectory.body_names.index("block_0")
    way = np.linalg.norm(trajectory.body_positions[-1, block, :2] - trajectory.body_positions[0, block, :2])
    assert way > 0.05
    assert np.ptp(trajectory.body_positions[:, block, 2]) < 0.01
    assert trajectory.contacts["grip_force"].max() == 0.0


def test_a_thing_on_the_conveyor_moves_until_it_is_caught():
    trajectory = attempt("conveyor_pick")
    thing = trajectory.body_names.index("thing_0")
    reach = next(segment for segment in trajectory.segments if segment.phase == "reach")
    moved = trajectory.body_positions[reach.start, thing, 1] - trajectory.body_positions[0, thing, 1]
    seconds = reach.start / trajectory.rate
    assert 0.02 < moved / seconds < 0.06
