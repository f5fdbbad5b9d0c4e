"""Grains: 200 spheres that are one object, their physics in a cup, and the condition that counts them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import pdist

from nimbus.datagen.datasets.certificates.labels import grain_points
from nimbus.datagen.episode.layout import PhysicalLayout, PlacedObject
from nimbus.datagen.execute.workcell import SimulatedWorld
from nimbus.datagen.objects.libraries import open_library
from nimbus.datagen.randomize.placement import fill
from nimbus.datagen.robots.robot import load_robot
from nimbus.datagen.simulate.newton import NewtonSimulation
from nimbus.datagen.success.coverage import PouredFraction
from nimbus.datagen.usd.stage import read_stage

PEAS, CUP = open_library("grains").model("green_peas", 0), open_library("kitchen").model("cup", 0)
AT = np.array([0.5, 0.0, CUP.rest_poses[0].height])


def placed(name: str, library: str, kind: str, position: np.ndarray) -> PlacedObject:
    model = open_library(library).model(kind, 0)
    return PlacedObject(
        name=name,
        group=name,
        library=library,
        kind=kind,
        variant=0,
        object_class=model.object_class,
        position=tuple(position.tolist()),
        wxyz=(1.0, 0.0, 0.0, 0.0),
        rest_pose="upright",
        mass=model.mass,
        friction=model.friction,
    )


def layout() -> PhysicalLayout:
    """Return a cup with peas, and another one beside it."""
    (inside,) = fill(CUP.cavities["opening"], [PEAS], np.random.default_rng(0))
    cups = (placed("cup_0", "kitchen", "cup", AT), placed("cup_1", "kitchen", "cup", AT + (0.0, 0.2, 0.0)))
    return PhysicalLayout(objects=(*cups, placed("peas_0", "grains", "green_peas", AT + inside)))


@pytest.fixture(scope="module")
def simulation() -> NewtonSimulation:
    return NewtonSimulation(read_stage("table"), load_robot("panda"), rate=15.0)


def test_layers_of_grains_are_apart_and_within_the_column():
    assert PEAS.heap is not None
    points = PEAS.heap.points()
    assert points.shape == (200, 3)
    assert pdist(points).min() > 2 * PEAS.heap.radius
    assert np.linalg.norm(points[:, :2], axis=1).max() + PEAS.heap.radius < 0.024


def test_the_surface_of_a_heap_moves_with_its_grains():
    """The vertices that the renderer binds to grains are those of the mesh at rest, in the same order."""
    assert PEAS.heap is not None
    grains, offsets = PEAS.heap.skin()
    assert np.abs(PEAS.heap.points()[grains] + offsets - PEAS.vertices).max() < 1e-9


def test_grains_settle_in_a_cup_and_are_counted_there(simulation: NewtonSimulation):
    world, ends = layout(), []
    for _ in range(2):
        simulation.load(world)
        for _ in range(4):
            simulation.advance(simulation.present_action())
        ends.append(simulation.body_positions())
    assert np.array_equal(*ends)
    assert simulation.points("peas_0").shape == (200, 3)
    assert simulation.body_speed("peas_0")[0] < 0.1
    scene = SimulatedWorld(simulation, world)
    assert scene.contents("cup_0") == ["peas_0"]
    assert PouredFraction(objects=("peas_0",), container="cup_0", at_least=1.0).failure(scene) is None
    failure = PouredFraction(objects=("peas_0",), container="cup_1", at_least=0.8).failure(scene)
    assert failure is not None
    assert failure.detail == "0 of 200 are in cup_1"


def test_labels_of_grains_are_compared_with_boxes_around_each():
    points = grain_points(np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0]]), 0.1)
    assert points.shape == (16, 3)
    assert np.allclose(points.min(axis=0), -0.1)
    assert np.allclose(points.max(axis=0), (1.1, 0.1, 0.1))
