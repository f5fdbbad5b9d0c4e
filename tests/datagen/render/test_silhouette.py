import numpy as np
import pytest
import warp as wp

from nimbus.datagen.render.covered_areas import OutlineTable
from nimbus.datagen.render.raytracer.kernel_data import Views
from nimbus.datagen.render.raytracer.placing import Eyes
from nimbus.datagen.render.raytracer.scene_table import PlacedSteps, PlacedViews
from nimbus.datagen.render.silhouette import outline_points

SQUARE = np.array([[x, y, 2.0] for x in (-0.2, 0.2) for y in (-0.2, 0.2)])


def area(points):
    """Return the area of the outline of points in front of a camera that looks along +z, with y downward [px]."""
    seen = PlacedViews(views=Views(), eyes=Eyes())
    seen.views.layouts = seen.views.steps = wp.zeros(1, dtype=wp.int32)
    seen.eyes.positions, seen.eyes.focals = wp.zeros(1, dtype=wp.vec3d), wp.array([100.0], dtype=wp.float64)
    seen.eyes.rotations = wp.array([np.diag((1.0, -1.0, -1.0))], dtype=wp.mat33d)
    poses = {"body_positions": wp.zeros((1, 1), dtype=wp.vec3d)}
    poses["body_wxyz"] = wp.array([[(1.0, 0.0, 0.0, 0.0)]], dtype=wp.vec4d)
    placed = PlacedSteps(steps=None, placed=None, **poses)
    table = OutlineTable([{1: ("thing", points)}], wp.get_device("cpu"))
    return table.measure([["thing"]], placed, seen, width=100, height=80).numpy()[0, 0]


def test_a_square_covers_its_area_in_pixels():
    assert area(SQUARE) == pytest.approx(20.0**2, rel=1e-6)


def test_a_disc_covers_its_area_within_one_percent():
    angles = np.linspace(0, 2 * np.pi, 200)
    disc = np.stack([0.4 * np.cos(angles), 0.4 * np.sin(angles), np.full(200, 2.0)], axis=1)
    assert area(disc) == pytest.approx(np.pi * 20.0**2, rel=0.01)


def test_only_the_part_in_the_image_counts():
    assert area(SQUARE + [1.0, 0, 0]) == pytest.approx(200.0, rel=1e-6)
    assert area(SQUARE + [1.0, 0.8, 0]) == pytest.approx(100.0, rel=1e-6)
    assert area(SQUARE + [3.0, 0, 0]) == pytest.approx(0.0, abs=1e-6)


def test_what_lies_behind_the_camera_covers_nothing():
    assert area(SQUARE * [1, 1, -1]) == 0.0


def test_outline_points_keep_the_corners_of_a_box():
    rng = np.random.default_rng(0)
    corners = np.array([[x, y, z] for x in (-1, 1) for y in (-2, 2) for z in (-3, 3)], dtype=np.float32)
    inner = rng.uniform(-0.9, 0.9, (500, 3)).astype(np.float32)
    kept = outline_points(np.concatenate([inner, corners]))
    assert {tuple(point) for point in corners.tolist()} <= {tuple(point) for point in kept.tolist()}
