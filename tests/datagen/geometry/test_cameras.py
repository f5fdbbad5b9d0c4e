"""Projection of points agrees with a formula, with rendered images, and with the image border."""

from __future__ import annotations

import math

import numpy as np
import pytest

from nimbus.datagen.episode.layout import Camera
from nimbus.datagen.errors import InputError
from nimbus.datagen.geometry.cameras import BodyRows, is_in_picture, project, projected_width
from nimbus.datagen.geometry.transforms import make_transform
from nimbus.datagen.objects.libraries import open_library
from tests.support.render_scene import layout, render

CAMERA = Camera(
    name="eye", mount="", position=(0, 0, 0), wxyz=(1, 0, 0, 0), vertical_fov=math.radians(53.13), width=320, height=240
)
POSE = np.eye(4)
"""Pose of a camera that looks along z, with x to the right and y down."""
CUBE = np.array([[x, y, z] for x in (-0.05, 0.05) for y in (-0.05, 0.05) for z in (0.95, 1.05)])


def test_a_body_without_poses_is_named():
    with pytest.raises(InputError, match="the episode has no poses of the body 'door'"):
        BodyRows(["cup"])["door"]


def test_width_is_that_of_the_nearest_face():
    assert projected_width(CAMERA, POSE, CUBE) == pytest.approx(240 * 0.1 / 0.95, rel=1e-4)
    assert projected_width(CAMERA, POSE, CUBE + (0, 0, 1)) == pytest.approx(240 * 0.1 / 1.95, rel=1e-4)


def test_what_is_behind_has_no_width():
    assert projected_width(CAMERA, POSE, CUBE - (0, 0, 1)) == 0.0
    assert not is_in_picture(CAMERA, project(CAMERA, POSE, CUBE * (1, 1, -1))).any()


def test_border_of_the_picture_is_where_points_leave():
    points = np.array([[0.66, 0, 1], [0.67, 0, 1], [0, -0.49, 1], [0, -0.51, 1], [0, 0, 0]])
    assert is_in_picture(CAMERA, project(CAMERA, POSE, points)).tolist() == [True, False, True, False, False]


@pytest.mark.slow
def test_width_is_that_of_the_rendered_box():
    shown = layout(width=320, height=240)
    seen, _ = render(shown, stack=1, steps=slice(0, 1), shadows=False)
    for row, item in enumerate(shown.physical.objects, start=1):
        left, _, right, _ = seen["front"].boxes_2d[0, row]
        world_T_object = make_transform(item.position, item.wxyz)
        vertices = open_library(item.library).model(item.kind, item.variant).vertices
        points = vertices @ world_T_object[:3, :3].T + world_T_object[:3, 3]
        width = projected_width(shown.visual.cameras[0], seen["front"].world_T_camera[0], points)
        assert width == pytest.approx(right - left, abs=1.5)
