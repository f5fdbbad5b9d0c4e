"""Conditions on spatial relations of objects, in physics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from nimbus.datagen.episode.layout import PlacedObject
from nimbus.datagen.episode.trajectory import Reason
from nimbus.datagen.execute.contacts import WORLD, find_supports, measure_gap
from nimbus.datagen.execute.workcell import SimulatedWorkcell
from nimbus.datagen.geometry.transforms import quat_from_axis_angle, quat_from_matrix, quat_multiply
from nimbus.datagen.objects.libraries import open_library
from nimbus.datagen.success.articulation import Closed, OpenBy
from nimbus.datagen.success.coverage import PouredFraction, Wiped
from nimbus.datagen.success.gripper import Held
from nimbus.datagen.success.motion import MovedBy, NotMoved, TurnedBy
from nimbus.datagen.success.placement import Aligned, AtPose, Beside, Inside, Near, On, Stacked, Upright
from nimbus.datagen.tasks.task_file import Region
from tests.support.one_can import make, put, reason, thing, workcell

START = Region(on="table", center=(0.5, 0.0), size=(0.4, 0.5))


def cell_of(*things: PlacedObject, rate: float = 15.0) -> SimulatedWorkcell:
    return workcell(*things, rate=rate, regions={"start": START})


@pytest.fixture(scope="module")
def shared() -> SimulatedWorkcell:
    """Return a cell with two stacked cartons, and a can and a pear beside them."""
    low = thing("low", kind="carton", x=0.45, y=0.0)
    height = 2 * low.position[2]
    high = thing("high", kind="carton", x=0.45, y=0.0, z=height + 0.001)
    return cell_of(low, high, thing("can", x=0.55, y=0.15), thing("pear", kind="pear", x=0.6, y=-0.2))


@pytest.fixture
def cell(shared: SimulatedWorkcell):
    state = shared.simulation.state()
    yield shared
    shared.simulation.restore(state)


def lift(cell: SimulatedWorkcell, name: str, way: Sequence[float], turn: Sequence[float] = (1, 0, 0, 0)) -> None:
    """Set the pose of an object at rest."""
    put(cell.simulation, name, np.add(cell.pose(name)[:3, 3], way), turn)


def test_what_rests_on_what_is_seen_also_while_physics_sleeps(cell: SimulatedWorkcell):
    cell.wait(10)
    assert find_supports(cell, "high") == {"low"} and find_supports(cell, "low") == {WORLD}
    assert reason(cell, make(On, object="high", support="low")) == Reason.NONE
    assert reason(cell, make(Stacked, objects=("low", "high"))) == Reason.NONE


def test_what_is_lifted_rests_on_nothing(cell: SimulatedWorkcell):
    lift(cell, "high", (0, 0, 0.01))
    assert find_supports(cell, "high") == set()
    failure = make(On, object="high", support="low").failure(cell)
    assert failure and failure.detail == "high rests on nothing, not on low"
    assert reason(cell, make(Stacked, objects=("low", "high"))) == Reason.NOT_ON


def test_a_stack_has_an_order_unless_it_does_not_matter(cell: SimulatedWorkcell):
    assert reason(cell, make(Stacked, objects=("high", "low"))) == Reason.NOT_ON
    assert reason(cell, make(Stacked, objects=("high", "low"), order="any")) == Reason.NONE
    assert reason(cell, make(Stacked, objects=("high", "low", "can"), order="any")) == Reason.NOT_ON


def test_on_a_region_means_on_its_surface_within_its_edges(cell: SimulatedWorkcell):
    on_start = make(On, object=("low", "can", "pear"), support="start")
    assert reason(cell, on_start) == Reason.NONE
    assert reason(cell, make(On, object="high", support="start")) == Reason.NOT_ON
    lift(cell, "pear", (0, -0.1, 0))
    assert reason(cell, on_start) == Reason.NOT_ON
    lift(cell, "pear", (0, -0.6, -0.7))
    assert reason(cell, on_start) == Reason.ON_FLOOR


def test_upright_is_within_a_tolerance(cell: SimulatedWorkcell):
    assert reason(cell, make(Upright, object=("can", "low"))) == Reason.NONE
    lift(cell, "can", (0, 0, 0.01), quat_from_axis_angle((1, 0, 0), 0.4))
    assert reason(cell, make(Upright, object=("can", "low"))) == Reason.TOPPLED
    assert reason(cell, make(Upright, object="can", tolerance=0.5)) == Reason.NONE


def test_near_counts_from_surface_to_surface(cell: SimulatedWorkcell):
    assert measure_gap(cell, "high", "low", most=1.0) < 1e-3
    distance = measure_gap(cell, "can", "low", most=1.0)
    assert 0.02 < distance < 0.15
    assert reason(cell, make(Near, object="can", to="low", within=distance + 1e-3)) == Reason.NONE
    assert reason(cell, make(Near, object="can", to="low", within=distance - 1e-3)) == Reason.OFF_TARGET
    assert reason(cell, make(Near, object="can", to="recycling", within=0.01)) == Reason.OFF_TARGET


@pytest.mark.parametrize(
    ("way", "side", "why"),
    [
        ((0.0, 0.10), "left", Reason.NONE),
        ((0.0, 0.10), "right", Reason.OFF_TARGET),
        ((0.0, -0.10), "right", Reason.NONE),
        ((-0.10, 0.0), "front", Reason.NONE),
        ((0.10, 0.0), "behind", Reason.NONE),
        ((0.0, 0.30), None, Reason.OFF_TARGET),
    ],
)
def test_beside_knows_the_sides_as_the_robot_sees_them(
    way: Sequence[float], side: Any, why: Reason, cell: SimulatedWorkcell
):
    x, y, _ = cell.pose("low")[:3, 3]
    put(cell.simulation, "high", (0.45, 0.45, 0.1))
    put(cell.simulation, "can", (x + way[0], y + way[1], cell.pose("can")[2, 3]))
    assert reason(cell, make(Beside, object="can", of="low", side=side)) == why


def test_on_top_is_not_beside(cell: SimulatedWorkcell):
    assert reason(cell, make(Beside, object="high", of="low")) == Reason.OFF_TARGET


def test_headings_are_compared_up_to_the_turns_that_do_not_show(cell: SimulatedWorkcell):
    lift(cell, "can", (0, 0, 0), quat_from_axis_angle((0, 0, 1), np.pi / 2 + 0.1))
    assert reason(cell, make(Aligned, object="can", every=np.pi / 2)) == Reason.NONE
    assert reason(cell, make(Aligned, object="can")) == Reason.NOT_ALIGNED
    assert reason(cell, make(Aligned, object="can", yaw=np.pi / 2)) == Reason.NONE
    assert reason(cell, make(Aligned, object="can", every=np.pi / 2, tolerance=0.05)) == Reason.NOT_ALIGNED
    lift(cell, "low", (0, 0, 0), quat_from_axis_angle((0, 0, 1), np.pi / 2))
    assert reason(cell, make(Aligned, object="can", to="low")) == Reason.NONE


def test_axes_are_compared_in_either_sense(cell: SimulatedWorkcell):
    assert reason(cell, make(Aligned, object="can", axis="z")) == Reason.NONE
    lift(cell, "can", (0, 0, 0.05), quat_from_axis_angle((1, 0, 0), np.pi))
    assert reason(cell, make(Aligned, object="can", axis="z")) == Reason.NONE
    lift(cell, "can", (0, 0, 0.05), quat_from_axis_angle((1, 0, 0), np.pi / 2))
    assert reason(cell, make(Aligned, object="can", axis="z")) == Reason.NOT_ALIGNED


def test_what_moved_and_what_did_not(cell: SimulatedWorkcell):
    everything = ("low", "high", "can", "pear")
    still, gone = make(NotMoved, object=everything), make(MovedBy, object="pear", distance=0.1, along=(2, 0, 0))
    assert (reason(cell, still), reason(cell, gone)) == (Reason.NONE, Reason.NOT_MOVED)
    put(cell.simulation, "pear", cell.start_poses["pear"][:3, 3] + (0.12, 0.01, 0))
    assert (reason(cell, still), reason(cell, gone)) == (Reason.KNOCKED_OVER, Reason.NONE)
    put(cell.simulation, "pear", cell.start_poses["pear"][:3, 3] + (0, 0.12, 0))
    assert reason(cell, gone) == Reason.NOT_MOVED
    assert reason(cell, make(MovedBy, object="pear", distance=0.1)) == Reason.NONE


def test_a_share_of_what_was_poured_is_enough(cell: SimulatedWorkcell):
    items = ("low", "can", "pear")
    poured = make(PouredFraction, objects=items, container="recycling", at_least=0.6)
    assert reason(cell, poured) == Reason.SPILLED
    for name, y in (("can", -0.04), ("pear", 0.04)):
        put(cell.simulation, name, np.add(cell.fixture("recycling").position, (0, y, 0.07)))
    assert reason(cell, poured) == Reason.NONE
    assert reason(cell, make(Inside, object=("can", "pear"), container="recycling")) == Reason.NONE
    assert reason(cell, make(Inside, object=items, container="recycling")) == Reason.NOT_IN_BIN


def test_held_is_touched_by_both_fingers_and_lies_on_nothing(cell: SimulatedWorkcell):
    assert reason(cell, make(Held, object="can")) == Reason.NOT_HELD
    width = float(np.ptp(cell.model("can").vertices[:, 1])) / 2
    put(cell.simulation, "can", cell.tool_pose()[:3, 3], quat_from_axis_angle((1, 0, 0), np.pi))
    for name in cell.robot.gripper.joints:
        cell.simulation.data.qpos[cell.simulation.model.joint(name).qposadr[0]] = width - 0.002
    put(cell.simulation, "can", cell.tool_pose()[:3, 3], quat_from_axis_angle((1, 0, 0), np.pi))
    assert reason(cell, make(Held, object="can")) == Reason.NONE
    assert reason(cell, make(Held, object="can", arm="third")) == Reason.NOT_HELD


def test_at_a_point_counts_the_axes_that_are_named(cell: SimulatedWorkcell):
    x, y, z = (np.add(*cell.bounds("can")) / 2).tolist()
    assert reason(cell, make(AtPose, object="can", at=(x, y, z + 0.01))) == Reason.NONE
    assert reason(cell, make(AtPose, object="can", at=(x, y, z + 0.1))) == Reason.OFF_TARGET
    assert reason(cell, make(AtPose, object="can", at=(x, y, z + 0.1), axes="xy")) == Reason.NONE
    assert reason(cell, make(AtPose, at=tuple(cell.tool_pose()[:3, 3].tolist()))) == Reason.NONE


def test_a_drawer_is_open_and_closed_by_its_joint_and_contains_things():
    model = open_library("furniture").model("drawer_cabinet", 0)
    rest = model.rest_poses[0]
    cabinet = replace(
        thing("cabinet", kind="can"),
        library="furniture",
        kind="drawer_cabinet",
        group="cabinet",
        position=(0.7, 0.0, rest.height),
        wxyz=(0.0, 0.0, 0.0, 1.0),
        rest_pose=rest.name,
        mass=model.mass,
        friction=model.friction,
        anchored=True,
    )
    cell = cell_of(cabinet, thing("can", x=0.4, y=0.3))
    drawer = model.parts[0].name
    closed, opened = make(Closed, object="cabinet"), make(OpenBy, object="cabinet", joint=drawer)
    inside = make(Inside, object="can", container="cabinet", cavity=drawer)
    assert (reason(cell, closed), reason(cell, opened)) == (Reason.NONE, Reason.NOT_OPEN)
    joint = cell.simulation.model.joint(f"cabinet.{drawer}")
    cell.simulation.data.qpos[joint.qposadr[0]] = model.parts[0].joint.range[1]
    low, high = model.parts[0].cavities[next(iter(model.parts[0].cavities))]
    put(cell.simulation, "can", (0.4, 0.3, 0.3))  # which also computes where the drawer is now
    assert (reason(cell, closed), reason(cell, opened)) == (Reason.NOT_CLOSED, Reason.NONE)
    assert reason(cell, inside) == Reason.NOT_IN_BIN
    put(cell.simulation, "can", (cell.part_pose("cabinet", drawer) @ np.append((low + high) / 2, 1))[:3])
    assert reason(cell, inside) == Reason.NONE
    assert reason(cell, inside.model_copy(update={"cavity": "lid"})) == Reason.NOT_IN_BIN


@pytest.mark.parametrize(
    ("axis", "angle", "holds"), [((0, 0, 1), 170, True), ((1, 0, 0), 180, True), ((1, 0, 0), 90, False)]
)
def test_turned_by_counts_the_angle_about_any_axis(axis: tuple[int, int, int], angle: float, holds: bool):
    cell = cell_of(thing())
    start = cell.start_poses["items_0"]
    turn = quat_from_axis_angle(axis, float(np.radians(angle)))
    put(cell.simulation, "items_0", start[:3, 3], quat_multiply(turn, quat_from_matrix(start[:3, :3])))
    assert (make(TurnedBy, object="items_0").failure(cell) is None) == holds


def test_wiped_is_what_was_under_the_thing_while_it_touched():
    cell = cell_of(thing())
    cell.regions = {"spot": Region(on="table", center=(0.5, 0.0), size=(0.02, 0.02)), "wide": START}
    cell.wait(1)
    assert make(Wiped, region="spot", object="items_0").failure(cell) is None
    failure = make(Wiped, region="wide", object="items_0").failure(cell)
    assert failure is not None and failure.reason == Reason.NOT_WIPED


def test_what_hovers_wipes_nothing():
    cell = cell_of(thing())
    cell.regions = {"spot": Region(on="table", center=(0.5, 0.0), size=(0.02, 0.02))}
    raised = cell.pose("items_0")[:3, 3] + (0, 0, 0.05)
    put(cell.simulation, "items_0", raised)
    cell.wait(1)
    assert make(Wiped, region="spot", object="items_0").failure(cell) is not None


def test_wiped_counts_rows_after_an_earlier_evaluation():
    """A policy is judged after each step, and poses that were evaluated before are not evaluated again."""
    cell = cell_of(thing())
    cell.regions = {"spot": Region(on="table", center=(0.5, 0.0), size=(0.02, 0.02))}
    start = cell.pose("items_0")[:3, 3]
    put(cell.simulation, "items_0", start + (0, 0, 0.05))
    cell.wait(1)
    assert make(Wiped, region="spot", object="items_0").failure(cell) is not None
    put(cell.simulation, "items_0", start)
    cell.wait(1)
    assert make(Wiped, region="spot", object="items_0").failure(cell) is None
