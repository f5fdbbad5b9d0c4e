"""Cloth in physics and in images: states, conditions, replay, and one geometry for each step."""

from __future__ import annotations

import numpy as np
import pytest

from nimbus.datagen.episode.layout import PhysicalLayout, PlacedObject
from nimbus.datagen.execute.workcell import SimulatedWorld
from nimbus.datagen.load.scene_loader import load_assets
from nimbus.datagen.objects.libraries import open_library
from nimbus.datagen.simulate.newton import NewtonSimulation
from nimbus.datagen.success.cloth import Folded
from tests.support.task_attempts import load_task

TOWEL = open_library("cloths").model("blue_towel", 0)
LAYOUT = PhysicalLayout(
    objects=(
        PlacedObject(
            name="towel_0",
            group="towel",
            library="cloths",
            kind="blue_towel",
            variant=0,
            object_class="blue",
            position=(0.5, 0.0, 0.0025),
            wxyz=(1.0, 0.0, 0.0, 0.0),
            rest_pose="lying",
            mass=TOWEL.mass,
            friction=TOWEL.friction,
        ),
    )
)


@pytest.fixture(scope="module")
def simulation() -> NewtonSimulation:
    assets = load_assets(load_task("fold_cloth"))
    made = NewtonSimulation(assets.stage, assets.robot, rate=15.0)
    made.load(LAYOUT)
    return made


def raise_corner(simulation: NewtonSimulation) -> None:
    simulation.load(LAYOUT)
    simulation.data.qpos[-3:] = (-0.05, -0.05, 0.1)
    simulation.restore(simulation.state())


def test_a_flat_cloth_stays_flat(simulation: NewtonSimulation):
    simulation.load(LAYOUT)
    for _ in range(3):
        simulation.advance(simulation.present_action())
    points = simulation.points("towel_0")
    assert points.shape == (225, 3)
    assert np.ptp(points[:, 2]) < 1e-4
    assert simulation.body_speed("towel_0")[0] < 0.02
    assert np.allclose(simulation.body_pose("towel_0")[:2, 3], (0.5, 0.0), atol=1e-3)


def test_motion_repeats_to_the_last_bit_and_is_a_record_of_bodies(simulation: NewtonSimulation):
    ends = []
    for _ in range(2):
        raise_corner(simulation)
        for _ in range(2):
            simulation.advance(simulation.present_action())
        ends.append(simulation.body_positions())
    assert np.array_equal(*ends)
    corner = simulation.body_names.index("towel_0.224")
    assert np.array_equal(ends[0][corner], simulation.points("towel_0")[-1])
    assert simulation.is_stable
    assert simulation.rigid_model.nq == simulation.model.nq - 3 * 225


def test_a_cloth_is_folded_when_two_opposite_corners_meet_and_it_is_flat(simulation: NewtonSimulation):
    simulation.load(LAYOUT)
    world = SimulatedWorld(simulation, LAYOUT)
    condition = Folded(object="towel_0", within=0.06)
    failure = condition.failure(world)
    assert failure is not None and "40 cm apart" in failure.detail
    flat = simulation.points("towel_0") - (0.5, 0.0, 0.0)
    over = flat[:, 0] + flat[:, 1] > 0
    moves = simulation.data.qpos[-3 * 225 :].reshape(-1, 3)
    moves[over, :2] -= flat[over, :2] + flat[over, 1::-1]
    simulation.restore(simulation.state())
    assert condition.failure(world) is None
    moves[0, 2] = 0.2
    moves[-1, 2] = 0.2
    simulation.restore(simulation.state())
    failure = condition.failure(world)
    assert failure is not None and "heap" in failure.detail
