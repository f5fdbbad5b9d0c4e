"""A cloth over a rail: the condition, and edges that keep their length."""

from __future__ import annotations

import numpy as np
import pytest

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.episode.layout import PhysicalLayout, PlacedObject
from nimbus.datagen.execute.workcell import SimulatedWorld
from nimbus.datagen.objects.libraries import open_library
from nimbus.datagen.robots.robot import load_robot
from nimbus.datagen.simulate.newton import NewtonSimulation
from nimbus.datagen.success.cloth import Draped
from nimbus.datagen.usd.stage import read_stage

RADIUS, AXIS = 0.032, 0.1704
"""Radius of the middle of a cloth on the rail, and height of the rail's axis [m]; the rail is 10 cm above the table, so
that the cloth hangs freely."""


def placed(name: str, kind: str, position: tuple[float, float, float]) -> PlacedObject:
    model = open_library("racks").model(kind, 0)
    return PlacedObject(
        name=name,
        group=name.split("_")[0],
        library="racks",
        kind=kind,
        variant=0,
        object_class=model.object_class,
        position=position,
        wxyz=(1.0, 0.0, 0.0, 0.0),
        rest_pose="lying",
        mass=model.mass,
        friction=model.friction,
    )


LAYOUT = PhysicalLayout(
    objects=(
        placed("rail_0", "towel_rail", (0.5, 0.15, 0.1504)),
        placed("towel_0", "blue_towel", (0.5, -0.15, 0.0025)),
    )
)


@pytest.fixture(scope="module")
def simulation() -> NewtonSimulation:
    made = NewtonSimulation(read_stage("table"), load_robot("panda"), rate=15.0)
    made.load(LAYOUT)
    return made


def hang(simulation: NewtonSimulation, *, offset: float = 0.0) -> FloatArray:
    """Put the towel over the rail, its middle at an offset from the axis [m]; return its points (225, 3) [m]."""
    simulation.load(LAYOUT)
    flat = simulation.points("towel_0").copy()
    along = flat[:, 1] + 0.15 + offset
    angle = np.clip(along / RADIUS, -np.pi / 2, np.pi / 2)
    up = RADIUS * np.cos(angle) - np.abs(along - angle * RADIUS)
    points = np.column_stack([flat[:, 0], 0.15 + RADIUS * np.sin(angle), AXIS + up])
    move_points(simulation, points)
    return points


def move_points(simulation: NewtonSimulation, points: FloatArray) -> None:
    moves = simulation.data.qpos[-3 * 225 :].reshape(-1, 3)
    moves += points - simulation.points("towel_0")
    simulation.restore(simulation.state())


def detail(simulation: NewtonSimulation) -> str:
    failure = Draped(object="towel_0", over="rail_0", share=0.08, lying=0.15).failure(
        SimulatedWorld(simulation, LAYOUT)
    )
    return failure.detail if failure else ""


def test_a_cloth_hangs_when_the_rail_carries_it_and_both_sides_are_below_the_axis(simulation: NewtonSimulation):
    simulation.load(LAYOUT)
    assert detail(simulation) == "towel_0 does not touch rail_0"
    hang(simulation)
    assert np.ptp(simulation.points("towel_0")[:, 2]) > 0.09
    assert not detail(simulation)
    hang(simulation, offset=0.085)
    assert "points below the rail's axis on one side" in detail(simulation)


def test_a_cloth_that_lies_on_the_table_with_its_end_does_not_hang(simulation: NewtonSimulation):
    points = hang(simulation)
    points[-45:, 2] = 0.002
    move_points(simulation, points)
    assert detail(simulation) == "towel_0 touches world at 45 of 225 points"


def test_a_firm_cloth_keeps_its_length_under_its_weight(simulation: NewtonSimulation):
    hang(simulation)
    for _ in range(3):
        simulation.advance(simulation.present_action())
    rows = simulation.points("towel_0").reshape(15, 15, 3)
    longest = np.linalg.norm(np.diff(rows, axis=0), axis=-1).max()
    assert longest < 1.1 * 0.02
