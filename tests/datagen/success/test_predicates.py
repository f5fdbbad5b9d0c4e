"""Conditions of success: each holds in the right states, and states the reason if it does not hold."""

from __future__ import annotations

from collections.abc import Sequence

import mujoco
import numpy as np
import pytest

from nimbus.datagen.episode.trajectory import Reason
from nimbus.datagen.execute.workcell import SimulatedWorkcell
from nimbus.datagen.geometry.transforms import quat_from_axis_angle
from nimbus.datagen.success.gripper import GripperClear
from nimbus.datagen.success.motion import AtRest, FixturesUnmoved, NothingOnFloor
from nimbus.datagen.success.placement import Inside
from tests.support.one_can import make, put, reason, thing, workcell

IN_RECYCLING = make(Inside, object="items_0", container="recycling")


@pytest.fixture(scope="module")
def shared() -> SimulatedWorkcell:
    return workcell(thing(), thing("items_1", kind="pear", x=0.6, y=-0.2))


@pytest.fixture
def cell(shared: SimulatedWorkcell):
    """Return a cell with a can and a pear on the table, and the arm at home."""
    state = shared.simulation.state()
    yield shared
    shared.simulation.restore(state)


def spot(cell: SimulatedWorkcell, fixture: str, shift: Sequence[float] = (0, 0, 0)) -> np.ndarray:
    """Return a point (3,) at the center of the floor of a fixture, or offset from it."""
    return np.add(cell.fixture(fixture).position, (0, 0, 0.07)) + shift


def place_joint(cell: SimulatedWorkcell, name: str, value: float) -> None:
    cell.simulation.data.qpos[cell.simulation.model.joint(name).qposadr[0]] = value
    mujoco.mj_forward(cell.simulation.model, cell.simulation.data)


def test_inside_its_bin(cell: SimulatedWorkcell):
    put(cell.simulation, "items_0", spot(cell, "recycling"))
    assert reason(cell, IN_RECYCLING) == Reason.NONE


@pytest.mark.parametrize(
    ("fixture", "shift", "why"),
    [
        ("organic", (0, 0, 0), Reason.WRONG_BIN),
        ("residual", (0, 0, 0), Reason.WRONG_BIN),
        ("recycling", (0, -0.25, 0), Reason.NOT_IN_BIN),
        ("recycling", (0, 0, 0.3), Reason.NOT_IN_BIN),
        ("recycling", (0, 0.4, -0.75), Reason.ON_FLOOR),
    ],
)
def test_not_inside_its_bin(fixture: str, shift: Sequence[float], why: Reason, cell: SimulatedWorkcell):
    put(cell.simulation, "items_0", spot(cell, fixture, shift))
    assert reason(cell, IN_RECYCLING) == why


def test_inside_is_asked_in_the_frame_of_a_bin_that_was_turned(cell: SimulatedWorkcell):
    low, high = np.array(cell.fixture("recycling").bounds)
    corner = 0.9 * (high - low)[:2] / 2
    put(cell.simulation, "items_0", spot(cell, "recycling", (*corner, 0)))
    assert reason(cell, IN_RECYCLING) == Reason.NONE
    turn = quat_from_axis_angle((0, 0, 1), np.pi / 4)
    put(cell.simulation, "recycling", cell.fixture("recycling").position, turn)
    assert reason(cell, IN_RECYCLING) == Reason.NOT_IN_BIN


@pytest.mark.parametrize(("column", "speed", "why"), [(0, 0.05, Reason.NOT_AT_REST), (3, 1.0, Reason.NOT_AT_REST)])
def test_what_moves_or_turns_is_not_at_rest(column: int, speed: float, why: Reason, cell: SimulatedWorkcell):
    assert reason(cell, make(AtRest, object="items_0")) == Reason.NONE
    model, data = cell.simulation.model, cell.simulation.data
    data.qvel[int(model.body("items_0").dofadr[0]) + column] = speed
    mujoco.mj_forward(model, data)
    assert reason(cell, make(AtRest, object="items_0")) == why
    assert reason(cell, make(AtRest, object="items_1")) == Reason.NONE


def test_an_open_gripper_that_touches_nothing_is_clear(cell: SimulatedWorkcell):
    assert reason(cell, GripperClear()) == Reason.NONE


def test_a_closed_gripper_is_not_clear(cell: SimulatedWorkcell):
    for name in cell.robot.gripper.joints:
        place_joint(cell, name, 0.01)
    assert reason(cell, GripperClear()) == Reason.GRIPPER_NOT_CLEAR


def test_a_gripper_with_something_on_a_finger_is_not_clear(cell: SimulatedWorkcell):
    finger = cell.pose("panda_leftfinger")[:3, 3]
    put(cell.simulation, "items_1", finger + (0, 0, -0.03))
    failure = GripperClear().failure(cell)
    assert failure is not None
    assert (failure.reason, failure.detail) == (Reason.GRIPPER_NOT_CLEAR, "the hand touches items_1")


@pytest.mark.parametrize(
    ("shift", "axis", "angle", "why"),
    [
        ((0.005, 0, 0), (0, 0, 1), 0.05, Reason.NONE),
        ((0.02, 0, 0), (0, 0, 1), 0.0, Reason.FIXTURE_MOVED),
        ((0, 0, 0), (0, 0, 1), 0.2, Reason.FIXTURE_MOVED),
        ((0, 0, 0), (1, 0, 0), 0.2, Reason.FIXTURE_MOVED),
    ],
)
def test_fixtures_are_unmoved_within_a_tolerance(
    shift: Sequence[float], axis: Sequence[float], angle: float, why: Reason, cell: SimulatedWorkcell
):
    position = np.add(cell.start_poses["organic"][:3, 3], shift)
    put(cell.simulation, "organic", position, quat_from_axis_angle(axis, angle))
    assert reason(cell, make(FixturesUnmoved)) == why
    assert reason(cell, make(FixturesUnmoved, tolerance=0.05, turn=0.5)) == Reason.NONE


def test_the_fixture_that_moved_is_named(cell: SimulatedWorkcell):
    put(cell.simulation, "residual", cell.start_poses["residual"][:3, 3] + (0, 0.03, 0))
    failure = make(FixturesUnmoved).failure(cell)
    assert failure is not None and failure.detail == "residual moved 3.0 cm and turned 0.00 rad"


def test_something_on_the_floor(cell: SimulatedWorkcell):
    assert reason(cell, NothingOnFloor()) == Reason.NONE
    put(cell.simulation, "items_1", (0.5, 1.0, -0.7))
    failure = NothingOnFloor().failure(cell)
    assert failure is not None and (failure.reason, failure.detail) == (Reason.ON_FLOOR, "items_1 fell")
