"""Scaled objects: layout, physics and images."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from nimbus.datagen.episode.layout import PlacedObject
from nimbus.datagen.errors import InputError
from nimbus.datagen.execute.motions import grasps
from nimbus.datagen.objects.libraries import open_library
from nimbus.datagen.objects.model import ObjectModel
from nimbus.datagen.render.render_parts import build_object_parts
from nimbus.datagen.robots.robot import load_robot
from nimbus.datagen.simulate.builder import SceneBuilder
from nimbus.datagen.usd.stage import read_stage

FACTOR = 1.25


def placed(model: ObjectModel, scale: float) -> PlacedObject:
    return PlacedObject(
        name="thing_0",
        group="thing",
        library=model.library,
        kind=model.kind,
        variant=model.variant,
        object_class=model.object_class,
        position=(0.5, 0.0, 0.2),
        wxyz=(1.0, 0.0, 0.0, 0.0),
        rest_pose="upright",
        scale=scale,
        mass=model.mass,
        friction=model.friction,
    )


@pytest.mark.parametrize("kind", ["cup", "apple"])
def test_lengths_grow_with_the_scale_mass_with_its_cube_and_inertia_with_its_fifth_power(kind: str) -> None:
    library = open_library("kitchen")
    one, large = library.model(kind, 0), library.model(kind, 0, FACTOR)
    np.testing.assert_allclose(np.ptp(large.bounds, axis=0), FACTOR * np.ptp(one.bounds, axis=0))
    assert large.mass == pytest.approx(FACTOR**3 * one.mass)
    np.testing.assert_allclose(large.inertia, FACTOR**5 * one.inertia)
    for name, box in one.cavities.items():
        np.testing.assert_allclose(large.cavities[name], FACTOR * box)
        np.testing.assert_allclose(large.frames[name][:3, :3], one.frames[name][:3, :3])
    assert library.model(kind, 0, 1.0) is one


def test_what_is_felt_seen_and_grasped_has_the_size_of_the_layout() -> None:
    library = open_library("kitchen")
    model = library.model("apple", 0, FACTOR)
    item = placed(model, FACTOR)
    robot = load_robot("panda")
    built = SceneBuilder(read_stage("table"), robot, visuals=False).world([item])
    body = built.body_label.index("thing_0")
    felt = [built.shape_source[shape] for shape in built.body_shapes[body]]
    height = max(mesh.vertices[:, 2].max() for mesh in felt) - min(mesh.vertices[:, 2].min() for mesh in felt)
    assert height == pytest.approx(np.ptp(model.bounds[:, 2]), abs=0.002)
    assert built.body_mass[body] == pytest.approx(model.mass)
    (part,) = build_object_parts(item)
    seen = part.triangles.vertices
    np.testing.assert_allclose(np.ptp(np.asarray(seen).reshape(-1, 3), axis=0), np.ptp(model.bounds, axis=0), atol=1e-5)
    wide, usual = (grasps.grasp_axes(placed(model, scale), robot.gripper.shape) for scale in (0.8, 1.0))
    assert wide.radius == pytest.approx(0.8 * usual.radius)


def test_a_group_with_a_scale_draws_one_for_each_object_and_moves_no_other_draw() -> None:
    from nimbus.datagen.random_streams import generator
    from nimbus.datagen.randomize.objects import draw_objects
    from nimbus.datagen.tasks.task import Task, load_task

    def draw(task: Task) -> list[PlacedObject]:
        streams = partial(generator, 0, 0, "physical", "objects")
        anywhere = {name: lambda x, y: True for name in task.regions}
        return draw_objects(task, read_stage("tabletop"), streams, reachable=anywhere)[0]

    task = load_task("sort_trash")
    group = task.objects["items"].model_copy(update={"scale": (0.7, 0.9)})
    before, after = draw(task), draw(Task(**{**vars(task), "objects": {"items": group}}))
    assert [item.scale for item in before] == [1.0] * len(before)
    assert all(0.7 <= item.scale <= 0.9 for item in after) and len({item.scale for item in after}) > 1
    for one, small in zip(before, after, strict=True):
        assert (one.kind, one.variant) == (small.kind, small.variant)
        assert small.mass == pytest.approx(one.mass * small.scale**3)
        top = read_stage("tabletop").surfaces["table"].upper[2]
        assert small.position[2] - top == pytest.approx((one.position[2] - top - 0.0005) * small.scale + 0.0005)


def test_what_has_moving_parts_comes_in_one_size() -> None:
    furniture = open_library("furniture")
    with pytest.raises(InputError, match="moving parts and exists in one size only; leave out 'scale'"):
        furniture.model(furniture.kinds[0], 0, 1.5)
