"""Relations of 66 scenes, labeled by hand: each must be found, and no other."""

from __future__ import annotations

import math

import pytest

from nimbus.datagen.execute.scene_graph import describe_scene
from nimbus.datagen.execute.workcell import SimulatedWorkcell
from nimbus.datagen.geometry.transforms import quat_from_axis_angle
from tests.support import furniture
from tests.support.one_can import put, thing, workcell

X, Y, HIGH = 0.45, 0.0, 0.0604
"""Center of the fixed can, which is 5.8 cm wide and 12 cm high."""
BIN = (0.55, 0.46)
"""Center of a bin of 30 x 24 cm, 12.8 cm deep."""
SIDE_OF = {
    **dict.fromkeys((0, 30, 330), "behind"),
    **dict.fromkeys((60, 90, 120), "left_of"),
    **dict.fromkeys((150, 180, 210), "in_front_of"),
    **dict.fromkeys((240, 270, 300), "right_of"),
}
"""Side by direction from the fixed can [deg]; the robot faces along x."""
NEAR_OF = {0.08: {"near", "beside"}, 0.12: {"beside"}, 0.15: set[str]()}
"""Relations by distance between the centers [m]: gaps of 2, 6 and 9 cm between the cans."""
STATE_OF = {
    **dict.fromkeys((0, 5, 12), "upright"),
    **dict.fromkeys((20, 45, 70, 110, 135, 160), ""),
    **dict.fromkeys((80, 90, 100), "lying"),
    **dict.fromkeys((168, 175, 180), "inverted"),
}
"""States by tilt [deg]."""
BIN_OF = {(0.0, 0.0, 0.07): "in", (0.1, 0.0, 0.07): "in", (-0.1, 0.06, 0.07): "in", (0.0, 0.0, 0.25): ""}
BIN_OF |= {(0.1, -0.07, 0.10): "in", (0.0, 0.0, 0.16): ""}
"""Relations by position of the can's center in the bin [m]."""
STACK_OF = {(0.0, 0.001): True, (0.01, 0.001): True, (-0.02, 0.0): True, (0.0, 0.02): False, (0.0, 0.1): False}
"""Support by a carton, by offset along x and height above it [m]."""
DRAWER_OF = {0.0: "closed", 0.03: "closed", 0.1: "", 0.5: "", 0.75: "", 0.85: "open", 1.0: "open"}


@pytest.fixture(scope="module")
def shared() -> SimulatedWorkcell:
    carton = thing("carton", kind="carton", x=0.62, y=-0.25)
    return workcell(thing("fixed", x=X, y=Y), thing("can", x=0.3, y=0.3), carton)


@pytest.fixture
def cell(shared: SimulatedWorkcell):
    state = shared.simulation.state()
    yield shared
    shared.simulation.restore(state)


def found(cell: SimulatedWorkcell, name: str = "can") -> set[tuple[str, str]]:
    """Return the relations of an object and their targets, without those to the robot's start."""
    return {(edge.relation, edge.target) for edge in describe_scene(cell) if edge.object == name} - {("untouched", "")}


@pytest.mark.parametrize("angle", SIDE_OF)
@pytest.mark.parametrize("distance", NEAR_OF)
def test_neighbors_on_all_sides(distance: float, angle: int, cell: SimulatedWorkcell):
    way = math.radians(angle)
    put(cell.simulation, "can", (X + distance * math.cos(way), Y + distance * math.sin(way), cell.pose("fixed")[2, 3]))
    around = NEAR_OF[distance] | ({SIDE_OF[angle]} if NEAR_OF[distance] else set())
    assert found(cell) == {("on", "world"), ("clear", ""), ("upright", "")} | {(one, "fixed") for one in around}


@pytest.mark.parametrize("lean", STATE_OF)
def test_leaning_things_in_the_air(lean: int, cell: SimulatedWorkcell):
    put(cell.simulation, "can", (0.3, 0.25, 0.4), quat_from_axis_angle((0.6, 0.8, 0), math.radians(lean)))
    assert found(cell) == {("clear", "")} | ({(STATE_OF[lean], "")} if STATE_OF[lean] else set())


@pytest.mark.parametrize("place", BIN_OF)
def test_things_in_and_above_a_bin(place: tuple[float, float, float], cell: SimulatedWorkcell):
    put(cell.simulation, "can", (BIN[0] + place[0], BIN[1] + place[1], place[2]))
    assert {relation for relation, target in found(cell) if target == "organic" and relation == "in"} == (
        {"in"} if BIN_OF[place] else set()
    )


@pytest.mark.parametrize("place", STACK_OF)
def test_things_on_and_over_a_carton(place: tuple[float, float], cell: SimulatedWorkcell):
    shift, height = place
    top = cell.bounds("carton")[1][2]
    put(cell.simulation, "can", (0.62 + shift, -0.25, top + HIGH + height))
    cell.wait(4 if height < 0.01 else 0)
    rests = {("on", "carton"), ("stacked", "carton")}
    assert found(cell) & rests == (rests if STACK_OF[place] else set())
    assert (("clear", "") in found(cell, "carton")) is not STACK_OF[place]


@pytest.mark.parametrize("share", DRAWER_OF)
def test_drawers_open_and_closed(share: float):
    scene = furniture.workcell(furniture.piece("drawer_cabinet", x=0.7, fractions={"drawer_0": share}))
    states = {edge.relation for edge in describe_scene(scene)} & {"open", "closed", "turned", "pressed"}
    assert states == ({DRAWER_OF[share]} if DRAWER_OF[share] else set())
