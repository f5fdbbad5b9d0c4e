"""Scene features, the input of a state-based policy."""

from __future__ import annotations

import numpy as np
import pytest

from nimbus.datagen.episode.layout import PhysicalLayout, PlacedObject
from nimbus.datagen.objects.libraries import open_library
from nimbus.datagen.policies.features import SceneFeatures
from nimbus.datagen.robots.robot import load_robot
from nimbus.datagen.simulate.newton import NewtonSimulation
from nimbus.datagen.tasks.task import load_task
from nimbus.datagen.usd.stage import read_stage


@pytest.mark.parametrize("variant", [0, 1, 2, 3])
def test_handle_is_given_in_the_world(variant: int):
    model = open_library("furniture").model("drawer_cabinet", variant)
    robot = load_robot("panda", where="test")
    features = SceneFeatures(load_task("open_drawer"), robot)
    cabinet = PlacedObject(
        name="cabinet_0",
        group="cabinet",
        library="furniture",
        kind="drawer_cabinet",
        variant=variant,
        object_class="furniture",
        position=(0.0, 0.0, 0.0),
        wxyz=(1.0, 0.0, 0.0, 0.0),
        rest_pose="upright",
        mass=1.0,
        friction=0.5,
    )
    names = (*(robot.with_arm(arm).tool.link for arm in robot.arm_names), "cabinet_0", "cabinet_0.drawer_0")
    half_turn = np.array([[[1.0, 0, 0, 0], [1, 0, 0, 0], [0, 0, 0, 1]]])
    positions = np.array([[[0.0, 0, 0], [0, 0, 0], [0.5, 0.1, 0.2]]])
    (row,) = features.rows((cabinet,), names, positions, half_turn)
    handle = model.parts[0].handles[0].position * [-1, -1, 1]
    at = [features.names.index(f"cabinet_0.drawer_0.handle_{axis}") for axis in "xyz"]
    np.testing.assert_allclose(row[at], positions[0, 2] + handle, atol=1e-9)
    assert np.isfinite(row).all()


@pytest.mark.parametrize(
    ("task", "library", "kind"), [("route_cable", "cables", "red_cable"), ("fold_cloth", "cloths", "blue_towel")]
)
def test_points_of_flexible_objects_are_those_of_physics(task: str, library: str, kind: str):
    """A cable that hangs down, or a cloth, is described by the points that skills and conditions see."""
    model, name = open_library(library).model(kind, 0), f"{kind.split('_')[1]}_0"
    thing = PlacedObject(
        name=name,
        group=name[:-2],
        library=library,
        kind=kind,
        variant=0,
        object_class=model.object_class,
        position=(0.5, 0.0, 0.3),
        wxyz=(2**-0.5, 0.0, 2**-0.5, 0.0),
        rest_pose="lying",
        mass=model.mass,
        friction=model.friction,
    )
    robot = load_robot("panda")
    simulation = NewtonSimulation(read_stage("table"), robot, rate=15.0)
    simulation.load(PhysicalLayout(objects=(thing,)))
    features = SceneFeatures(load_task(task), robot)
    bodies = simulation.body_positions()[None], simulation.body_wxyz()[None]
    (row,) = features.rows((thing,), simulation.body_names, *bodies)
    seen = row[[index for index, entry in enumerate(features.names) if entry.startswith(f"{name}.point_")]]
    np.testing.assert_allclose(seen.reshape(-1, 3), simulation.points(name), atol=1e-12)
    assert np.ptp(seen.reshape(-1, 3)[:, 2]) > 0.2
