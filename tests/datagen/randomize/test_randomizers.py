"""Each randomizer alone: values are within its ranges, and every draw is recorded."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nimbus.datagen.episode.layout import Camera, SurfaceLook
from nimbus.datagen.geometry.transforms import look_at, quat_multiply, quat_to_matrix
from nimbus.datagen.random_streams import Streams, generator
from nimbus.datagen.randomize.appearance import MaterialRandomization
from nimbus.datagen.randomize.base import Draft, make_light, nominal_light
from nimbus.datagen.randomize.camera import CameraRandomization
from nimbus.datagen.randomize.lighting import LightRandomization
from nimbus.datagen.randomize.physics import FrictionRandomization, MassRandomization
from tests.support.one_can import make, thing

seeds = st.integers(0, 2**32)
FAST = settings(max_examples=40)
FRONT = Camera(
    name="front",
    mount="",
    position=(1.5, 0, 0.9),
    wxyz=look_at((1.5, 0, 0.9), (0.4, 0, 0)),
    vertical_fov=0.7,
    width=64,
    height=48,
)
WRIST = dataclasses.replace(FRONT, name="wrist", mount="panda_hand")
CAN, PEAR = thing("items_0"), thing("items_1", kind="pear")


def streams(seed: int) -> Streams:
    return partial(generator, seed)


@FAST
@given(seeds)
def test_cameras_shift_turn_and_zoom_within_their_ranges(seed):
    draft = Draft(cameras=[FRONT, WRIST])
    randomization = make(CameraRandomization, position=0.05, mounted=0.01, rotation=math.radians(5), fov=0.03)
    drawn = randomization.draw(draft, streams(seed))
    for nominal, camera, limit in zip((FRONT, WRIST), draft.cameras, (0.05, 0.01), strict=True):
        shift = np.subtract(camera.position, nominal.position)
        assert np.all(np.abs(shift) <= limit)
        turned = quat_to_matrix(nominal.wxyz).T @ quat_to_matrix(camera.wxyz)
        assert math.acos(min(1.0, (np.trace(turned) - 1) / 2)) <= math.radians(5) + 1e-7
        assert abs(camera.vertical_fov - nominal.vertical_fov) <= 0.03
        told = drawn[camera.name]
        assert np.allclose(told["shift"], shift) and told["fov_change"] == pytest.approx(camera.vertical_fov - 0.7)
        assert np.allclose(quat_multiply(nominal.wxyz, told["turn_wxyz"]), camera.wxyz)


def test_cameras_use_their_whole_ranges():
    draws = []
    for seed in range(300):
        draft = Draft(cameras=[FRONT])
        make(CameraRandomization, position=0.05).draw(draft, streams(seed))
        draws.append(np.subtract(draft.cameras[0].position, FRONT.position))
    assert np.all(np.min(draws, axis=0) < -0.045) and np.all(np.max(draws, axis=0) > 0.045)


def test_a_camera_that_may_not_move_stays():
    draft = Draft(cameras=[FRONT])
    make(CameraRandomization, position=0, mounted=0, rotation=0, fov=0).draw(draft, streams(0))
    assert draft.cameras == [FRONT]


@FAST
@given(seeds)
def test_light_is_within_its_ranges_and_follows_from_what_was_drawn(seed):
    draft = Draft()
    randomization = make(LightRandomization, intensity=(0.6, 1.2), temperature=(3200, 8000), elevation=(0.7, 1.4))
    drawn = randomization.draw(draft, streams(seed))
    assert draft.light == make_light(**drawn) != nominal_light()
    assert 0.6 <= max(draft.light.color) <= 1.2
    assert 3200 <= drawn["temperature"] <= 8000
    assert 0.7 <= math.asin(-draft.light.direction[2]) <= 1.4


@FAST
@given(seeds)
def test_materials_are_chosen_from_the_lists(seed):
    names = ("table", "floor", "backdrop", "items_0", "recycling")
    draft = Draft(surfaces={name: SurfaceLook() for name in names})
    randomization = make(MaterialRandomization, table=("wood", "marble"), floor=("tiles",), tint=0.25)
    drawn = randomization.draw(draft, streams(seed))
    assert draft.surfaces["table"].texture in ("wood", "marble")
    assert draft.surfaces["floor"].texture == "tiles"
    assert draft.surfaces["backdrop"].texture in randomization.backdrop
    assert draft.surfaces["items_0"].texture == draft.surfaces["recycling"].texture == ""
    for name, surface in draft.surfaces.items():
        assert all(0.5 < channel <= 1.0 for channel in surface.color)
        assert SurfaceLook(**(drawn[name] | {"color": tuple(drawn[name]["color"])})) == surface


def test_all_materials_of_a_list_occur():
    chosen = set()
    for seed in range(60):
        draft = Draft(surfaces={"table": SurfaceLook()})
        make(MaterialRandomization).draw(draft, streams(seed))
        chosen.add(draft.surfaces["table"].texture)
    assert chosen == set(make(MaterialRandomization).table)


def test_without_tint_colours_stay():
    draft = Draft(surfaces={"items_0": SurfaceLook()})
    make(MaterialRandomization, tint=0).draw(draft, streams(0))
    assert draft.surfaces["items_0"].color == (1, 1, 1)


@FAST
@given(seeds)
@pytest.mark.parametrize(
    ("randomization", "field"),
    [
        (make(MassRandomization, factor=(0.8, 1.25)), "mass"),
        (make(FrictionRandomization, factor=(0.8, 1.25)), "friction"),
    ],
)
def test_factors_are_in_range_and_change_one_property(randomization, field, seed):
    draft = Draft(objects=[CAN, PEAR])
    drawn = randomization.draw(draft, streams(seed))
    for before, after in zip((CAN, PEAR), draft.objects, strict=True):
        factor = getattr(after, field) / getattr(before, field)
        assert 0.8 <= factor <= 1.25
        assert drawn[after.name]["factor"] == pytest.approx(factor)
        assert dataclasses.replace(after, **{field: getattr(before, field)}) == before


DRAWS: list[Callable[[Draft, Streams], object]] = [
    make(MassRandomization).draw,
    make(FrictionRandomization).draw,
    make(CameraRandomization).draw,
    make(MaterialRandomization).draw,
]


@pytest.mark.parametrize("draw", DRAWS)
def test_a_further_thing_moves_no_draw_of_the_others(draw):
    few = Draft(objects=[CAN], cameras=[FRONT], surfaces={"table": SurfaceLook()})
    more = Draft(objects=[PEAR, CAN], cameras=[WRIST, FRONT], surfaces={"floor": SurfaceLook(), "table": SurfaceLook()})
    draw(few, streams(4))
    draw(more, streams(4))
    assert (few.objects[0], few.cameras[0]) == (more.objects[1], more.cameras[1])
    assert few.surfaces["table"] == more.surfaces["table"]
