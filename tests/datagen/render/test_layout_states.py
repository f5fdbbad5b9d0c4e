"""Different layouts rendered together: the images of each equal those of the layout alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nimbus.datagen.episode.layout import Lamp, Layout, Sensor, SurfaceLook
from nimbus.datagen.episode.observation import CameraFrames
from nimbus.datagen.render.layout_states import LayoutStates
from nimbus.datagen.render.loaded_layout import LoadedLayout, load_layout
from nimbus.datagen.render.scene_renderer import SceneLight, SceneRenderer
from nimbus.datagen.render.stacked import StackedRenderer
from tests.support.render_scene import LIGHT, STEPS, layout, stage_and_robot, states

IMAGES = ("rgb", "depth", "instance", "semantic", "normals", "boxes_2d", "visibility", "intrinsics", "world_T_camera")
KINDS: tuple[tuple[SceneLight, int], ...] = (("direct", 0), ("baked", 1), ("direct", 2), ("baked", 3))
"""Layouts of the test: the light on static parts, and the number of omitted objects."""


def drawn(missing: int) -> Layout:
    """Draw a layout that differs from all other layouts in objects, sizes, poses, looks, light and cameras."""
    given_layout = layout(width=40, height=32)
    objects = tuple(replace(item, scale=1.0 + 0.1 * missing) for item in given_layout.physical.objects[missing:])
    front, wrist = given_layout.visual.cameras
    sensor = Sensor(tone="filmic", antialiasing=1 + missing // 2, grain=0.01 * missing, seed=missing)
    away = math.cos(missing), math.sin(missing)
    light = replace(
        LIGHT,
        direction=(0.5 * away[0], 0.5 * away[1], -math.sqrt(0.75)),
        lamps=(Lamp(direction=(0.0, 0.6, -0.8), color=(0.1, 0.2, 0.1)),) * missing,
    )
    visual = replace(
        given_layout.visual,
        cameras=(replace(front, vertical_fov=0.84 + 0.1 * missing, sensor=sensor), wrist)
        if missing % 2
        else (replace(front, distortion=(0.02, 0.0)), wrist),
        surfaces={"table": SurfaceLook(texture="wood" if missing % 2 else "", color=(1.0, 0.9, 0.5 + 0.1 * missing))},
        light=light,
    )
    return replace(given_layout, physical=replace(given_layout.physical, objects=objects), visual=visual)


@lru_cache
def loaded(kind: int) -> LoadedLayout:
    light, missing = KINDS[kind]
    renderer = SceneRenderer(*stage_and_robot(), light=light)
    return load_layout(renderer.inputs(drawn(missing)), renderer.device, shadows=True)


def shown(kind: int, step: int, number: int = 0, *, count: int = 1) -> LayoutStates:
    """Return states of a layout with only its own bodies."""
    names, positions, wxyz = states()
    lacks = [f"items_{place}" for place in range(KINDS[kind][1])]
    rows, steps = [row for row, name in enumerate(names) if name not in lacks], slice(step, step + count)
    bodies = [names[row] for row in rows]
    return LayoutStates(
        names=bodies,
        positions=positions[steps][:, rows],
        wxyz=wxyz[steps][:, rows],
        layout=number,
        first_step=step,
    )


@lru_cache
def alone(kind: int, step: int) -> dict[str, CameraFrames]:
    renderer = StackedRenderer(stack=1)
    renderer.load_layouts([loaded(kind)])
    return renderer.render_states([shown(kind, step)])[0]


def assert_equal(found: CameraFrames, expected: CameraFrames, where: object) -> None:
    for name in IMAGES:
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), err_msg=f"{where} {name}")


kinds_and_steps = st.tuples(st.integers(0, len(KINDS) - 1), st.integers(0, STEPS - 1))


@settings(max_examples=5, deadline=None)
@given(st.lists(kinds_and_steps, min_size=1, max_size=5))
def test_images_depend_on_no_companion(drawn_states: Sequence[tuple[int, int]]):
    """The order does not matter either: layouts with and without baked light, antialiasing, lenses and lamps are mixed.

    Some of the loaded layouts are not rendered.
    """
    renderer = StackedRenderer(stack=1)
    renderer.load_layouts([loaded(kind) for kind in range(len(KINDS))])
    together = renderer.render_states([shown(kind, step, kind) for kind, step in drawn_states])
    for (kind, step), frames in zip(drawn_states, together, strict=True):
        assert [*frames] == ["front", "wrist"]
        for camera, expected in alone(kind, step).items():
            assert_equal(frames[camera], expected, (kind, step, camera))


def test_layouts_lack_objects_of_others():
    names = [loaded(kind).labels.instance_names for kind in range(len(KINDS))]
    assert ["items_0" in found for found in names] == [True, False, False, False]
    front = alone(0, 0)["front"]
    assert {names[0].index("items_0"), names[0].index("items_1")} <= {*np.unique(front.instance)}


def test_several_steps_of_each_layout_are_those_of_its_own_renderer():
    renderer = StackedRenderer(stack=2)
    renderer.load_layouts([loaded(0), loaded(1)])
    together = renderer.render_states([shown(1, 2, 1, count=2), shown(0, 1, 0, count=2)])
    for (kind, start), frames in zip(((1, 2), (0, 1)), together, strict=True):
        for camera, found in frames.items():
            for place in range(2):
                np.testing.assert_array_equal(found.rgb[place], alone(kind, start + place)[camera].rgb[0])


def test_more_steps_than_the_stack_are_refused():
    renderer = StackedRenderer(stack=1)
    renderer.load_layouts([loaded(0)])
    with pytest.raises(ValueError, match="expected 1 to 1 steps"):
        renderer.render_states([shown(0, 0, count=2)])
