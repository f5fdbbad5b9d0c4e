"""Images of splats with labels and depth of their proxy, and the light of sampled splats."""

from __future__ import annotations

import numpy as np

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.episode.observation import CameraFrames
from nimbus.datagen.render.baked_light.face_grids import place_grids
from nimbus.datagen.render.splat_light import grid_light
from nimbus.datagen.render.splat_views import first_depth
from nimbus.datagen.splats.sample import place_samples


def test_grid_light_is_linear_on_a_face():
    """Light that is a linear function of the position is interpolated exactly everywhere on a face."""
    corners = np.array([[[0, 0, 0], [2, 0, 0], [0, 1, 0]], [[2, 0, 0], [2, 1, 0], [0, 1, 0]]], float)
    normals = np.tile((0.0, 0.0, 1.0), (2, 3, 1))
    grid, _, _ = place_grids(corners, normals, np.full(2, 0.3))
    values = np.zeros((grid.samples.max() + 1, 3))
    shares = _places(grid.steps)
    for face in range(2):
        places = shares[face] @ corners[face]
        rows = grid.samples[grid.start[face] : grid.start[face] + len(places)]
        values[rows] = 1.0 + places @ np.array([[0.2, 0.0, 0.1], [0.3, 0.1, 0.0], [0.0, 0.0, 0.0]])
    samples = place_samples(corners, 500)
    light = grid_light(grid, values, samples.faces, samples.shares)
    exact = 1.0 + samples.positions @ np.array([[0.2, 0.0, 0.1], [0.3, 0.1, 0.0], [0.0, 0.0, 0.0]])
    assert np.abs(light - exact).max() < 1e-6


def _places(steps: np.ndarray) -> list[FloatArray]:
    return [
        np.array([(i, j, n - i - j) for i in range(n + 1) for j in range(n - i + 1)], dtype=float) / n
        for n in steps.tolist()
    ]


def test_depth_of_mesh_comes_first_and_of_voxels_last():
    proxy, splats = _frames([[1.0, 0.0, 0.0]]), _frames([[2.0, 2.0, 0.0]])
    assert first_depth(proxy, splats, has_mesh=True).tolist() == [[[1.0, 2.0, 0.0]]]
    assert first_depth(proxy, splats, has_mesh=False).tolist() == [[[2.0, 2.0, 0.0]]]
    assert first_depth(proxy.only(("rgb",)), splats, has_mesh=True).size == 0


def _frames(depth: list[list[float]]) -> CameraFrames:
    values = np.array([depth], np.float32)
    return CameraFrames(
        rgb=np.zeros((*values.shape, 3), np.uint8),
        depth=values,
        instance=np.zeros(values.shape, np.uint8),
        semantic=np.zeros(values.shape, np.uint8),
        normals=np.zeros((*values.shape, 3), np.int8),
        boxes_2d=np.full((1, 1, 4), np.nan, np.float32),
        visibility=np.zeros((1, 1), np.float32),
        intrinsics=np.eye(3),
        world_T_camera=np.eye(4)[None],
    )
