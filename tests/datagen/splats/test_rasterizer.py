"""Images of splats compared with double precision, and the two methods of blending with each other."""

from __future__ import annotations

import numpy as np
import pytest

from nimbus.datagen.geometry import cameras, transforms
from nimbus.datagen.splats.rasterizer import SplatRasterizer
from tests.support.splat_reference import blend_exactly, project_exactly, random_cloud, watching_camera


def test_projection_equals_double_precision():
    cloud, (camera, positions, wxyz) = random_cloud(2000), watching_camera(320, 240)
    found = SplatRasterizer(cloud).project(camera, positions[0], wxyz[0])
    exact = project_exactly(cloud, camera, cameras.world_T_camera(positions, wxyz)[0])
    centers, numbers = exact["centers"], found["numbers"]
    inside = ((centers >= 0) & (centers < (320, 240))).all(axis=1) & (exact["depths"] > 0.05)
    assert len(numbers) > 1000 and set(np.flatnonzero(inside)) <= set(numbers)
    seen = inside[numbers]
    assert np.abs(found["centers"] - centers[numbers])[seen].max() < 1e-4
    assert np.allclose(found["depths"], exact["depths"][numbers], atol=1e-5)
    assert np.allclose(found["conics"], exact["conics"][numbers], rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("degree", [0, 1, 2, 3])
@pytest.mark.parametrize("by_tiles", [False, True])
def test_pictures_equal_brute_force(degree: int, by_tiles: bool):
    cloud = random_cloud(600, degree=degree, antialiased=degree == 1)
    camera, positions, wxyz = watching_camera()
    made = SplatRasterizer(cloud, by_tiles=by_tiles).render(camera, positions, wxyz)
    color, alpha, depth = blend_exactly(cloud, camera, cameras.world_T_camera(positions, wxyz)[0])
    assert (made.alpha[0] > 0.5).mean() > 0.15
    # A splat's edge may fall on either side of 1/255 at single pixels.
    assert np.quantile(np.abs(made.alpha[0] - alpha), 0.999) < 1e-4
    assert np.abs(made.alpha[0] - alpha).max() < 1 / 250
    assert np.abs(made.rgb[0] - np.clip(color, 0, 1) * 255).max() < 1.6
    solid = alpha >= 0.71
    assert solid.any()
    # Half of the light may be left on either side of a splat at single pixels.
    assert np.mean(np.abs(made.depth[0][solid] - depth[solid]) < 1e-3) > 0.995


def test_both_ways_blend_the_same():
    cloud, (camera, positions, wxyz) = random_cloud(3000), watching_camera(100, 70)
    one, other = (SplatRasterizer(cloud, by_tiles=way).render(camera, positions, wxyz) for way in (False, True))
    assert np.abs(one.alpha - other.alpha).max() < 1e-4
    assert np.abs(one.rgb.astype(int) - other.rgb).max() <= 1


def test_rendering_again_gives_equal_bytes():
    cloud, (camera, positions, wxyz) = random_cloud(3000, degree=1), watching_camera()
    one, other = (SplatRasterizer(cloud).render(camera, positions, wxyz) for _ in range(2))
    assert np.array_equal(one.rgb, other.rgb) and np.array_equal(one.depth, other.depth)


def test_cloud_moves_with_its_frame():
    """A cloud in another frame and unit has the same image from the transformed viewpoint."""
    cloud, (camera, positions, wxyz) = random_cloud(1000, degree=2), watching_camera()
    turn = transforms.quat_from_axis_angle((0.3, -1.0, 0.5), 2.0)
    matrix = transforms.make_transform((5.0, -2.0, 1.0), turn)
    matrix[:3, :3] *= 2.5
    there = positions @ matrix[:3, :3].T + matrix[:3, 3]
    facing = np.stack(transforms.quat_multiply(turn, tuple(wxyz[0])))[None]
    one = SplatRasterizer(cloud).render(camera, positions, wxyz)
    other = SplatRasterizer(cloud, world_T_cloud=matrix).render(camera, there, facing)
    assert np.abs(one.rgb.astype(int) - other.rgb).max() <= 2
    assert np.allclose(one.depth * 2.5, other.depth, atol=1e-2)


def test_nothing_in_view_is_behind_color():
    cloud, (camera, positions, wxyz) = random_cloud(100), watching_camera()
    made = SplatRasterizer(cloud, behind=(1.0, 0.0, 0.0)).render(camera, positions + (50.0, 0.0, 0.0), wxyz)
    assert (made.rgb == (255, 0, 0)).all() and not made.alpha.any() and not made.depth.any()
