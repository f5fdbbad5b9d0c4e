"""K regions of one stage: no camera sees a neighboring region, and each image equals that of the region alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nimbus.datagen.episode.layout import Camera
from nimbus.datagen.errors import InputError
from nimbus.datagen.usd.stack_layout import (
    StackLayout,
    far_clip,
    most_in_memory,
    most_regions,
    region_origins,
    region_spacing,
    stack_layout,
)
from nimbus.datagen.usd.visual_assets import VisualAssets
from tests.support.one_world import render_as_one_world, visual_assets, write
from tests.support.render_scene import layout, render
from tests.support.stacked_regions import CAMERAS, HEIGHT, SIZES, WIDTH, placed, side_by_side_and_alone

LENGTHS = st.floats(0.05, 20.0)


def camera(fov: float, width: int, height: int) -> Camera:
    return Camera(
        name="a", mount="", position=(0, 0, 0), wxyz=(1, 0, 0, 0), vertical_fov=fov, width=width, height=height
    )


@settings(max_examples=200)
@given(
    size=st.tuples(LENGTHS, LENGTHS, LENGTHS),
    middle=st.tuples(*[st.floats(-5, 5)] * 3),
    eye=st.tuples(*[st.floats(-8, 8)] * 3),
    fov=st.floats(0.1, 2.4),
    shape=st.tuples(st.integers(8, 1920), st.integers(8, 1920)),
    count=st.integers(2, 40),
    seed=st.integers(0, 2**31),
)
def test_no_point_of_a_neighbour_is_within_what_a_camera_sees(size, middle, eye, fov, shape, count, seed):
    lower = np.array(middle) - np.array(size) / 2
    box = np.stack([lower, lower + size])
    one = camera(fov, *shape)
    far = far_clip(box, np.array([eye]))
    spacing = region_spacing(box, np.array([eye]), far=far, cameras=[one])
    origins = region_origins(count, spacing)
    rng = np.random.default_rng(seed)
    inside = rng.uniform(box[0], box[1], (64, 3))
    corners = np.stack(np.meshgrid(*box.T, indexing="ij"), axis=-1).reshape(-1, 3)
    points = np.concatenate([inside, corners])
    forward, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    up = np.tan(fov / 2)
    limits = np.array([up * shape[0] / shape[1], up])
    for place in origins[1:] - origins[0]:
        in_view = (points + place - eye) @ forward
        sideways, depth = np.abs(in_view[:, :2]), in_view[:, 2]
        seen = (depth > 0) & (depth <= far) & (sideways <= depth[:, None] * limits).all(axis=1)
        assert not seen.any()
    assert (np.linalg.norm(points - eye, axis=1) <= far).all(), "its own scene is not clipped"


@given(count=st.integers(1, 3000), spacing=st.floats(0.125, 300))
def test_regions_are_apart_and_around_the_origin(count: int, spacing: float):
    origins = region_origins(count, spacing)
    assert origins.shape == (count, 3)
    grid = np.rint(origins[:, :2] / spacing).astype(int)
    assert len({tuple(place) for place in grid}) == count
    assert np.abs(grid).max() <= np.ceil(np.sqrt(count) / 2)


def test_too_many_regions_are_refused_in_one_line():
    box, eyes = np.array([[-50.0] * 3, [50.0] * 3]), np.zeros((1, 3))
    most = most_regions(stack_layout(1, bounds=box, eyes=eyes, cameras=CAMERAS).spacing)
    stack_layout(most, bounds=box, eyes=eyes, cameras=CAMERAS)
    with pytest.raises(InputError, match=f"at most {most}"):
        stack_layout(most + 1, bounds=box, eyes=eyes, cameras=CAMERAS)


def test_more_memory_holds_more_regions_and_none_still_one():
    gib = 2**30
    counts = [most_in_memory(CAMERAS, free_bytes=free, region_bytes=2**26) for free in (0, gib, 8 * gib, 80 * gib)]
    assert counts[0] == 1
    assert counts == sorted(set(counts))


@pytest.fixture(scope="module")
def assets(tmp_path_factory: pytest.TempPathFactory) -> VisualAssets:
    return visual_assets(tmp_path_factory.mktemp("assets"))


@pytest.mark.parametrize("steps", [[0, 4], [4, 1, 2]])
def test_regions_side_by_side_show_what_each_shows_alone(assets: VisualAssets, tmp_path: Path, steps: list[int]):
    different = []
    for (depth, instance), (depth_alone, instance_alone) in side_by_side_and_alone(
        assets, tmp_path, steps, placed(assets, steps)
    ):
        np.testing.assert_array_equal(instance, instance_alone)
        np.testing.assert_allclose(depth, depth_alone, atol=1e-4)
        assert (instance > 0).mean() > 0.5
        different.append(depth)
    assert not np.array_equal(different[0], different[2]), "the states differ"


def test_regions_too_near_are_noticed_by_the_same_comparison(assets: VisualAssets, tmp_path: Path):
    right = placed(assets, [0, 4])
    near = StackLayout(spacing=2.0, far=right.far, origins=region_origins(2, 2.0))
    compared = list(side_by_side_and_alone(assets, tmp_path, [0, 4], near))
    assert not all(np.array_equal(instance, alone) for (_, instance), (_, alone) in compared)


def test_a_region_alone_shows_what_the_default_renderer_shows(assets: VisualAssets, tmp_path: Path):
    step = 3
    path = tmp_path / "alone.usda"
    regions = write(path, assets, placed(assets, [step]), CAMERAS, [step])
    frames, names = render_as_one_world(path, regions, assets, SIZES)
    expected, renderer = render(layout(width=WIDTH, height=HEIGHT), stack=1, steps=slice(step, step + 1), shadows=False)
    for camera in CAMERAS:
        seen, known = frames[f"0/{camera.name}"], expected[camera.name]
        things = {name: renderer.labels.instance_names.index(name) for name in names if name.startswith("items_")}
        for name, index in things.items():
            mine, theirs = seen.instance[0] == names.index(name), known.instance[0] == index
            assert (mine != theirs).sum() <= 0.02 * theirs.size, (camera.name, name)
        error = np.abs(seen.depth[0] - known.depth[0])
        assert np.median(error) < 1e-4
        assert (error > 2e-3).mean() < 0.02, "edges of simplified links"
