import numpy as np
import pytest

from nimbus.datagen.render.silhouette import outline_points, silhouette_areas

MATRIX = np.array([[100.0, 0, 50], [0, 100.0, 40], [0, 0, 1]])
LOOKING_ALONG_Z = np.eye(4)[None]
SQUARE = np.array([[x, y, 2.0] for x in (-0.2, 0.2) for y in (-0.2, 0.2)])


def area(points):
    return silhouette_areas(points[None], LOOKING_ALONG_Z, MATRIX, width=100, height=80)[0]


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
