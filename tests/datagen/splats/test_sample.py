"""Splats sampled from a mesh: spread evenly, and rendered like the mesh."""

from __future__ import annotations

import math

import numpy as np

from nimbus.datagen.arrays import AnyArray, FloatArray
from nimbus.datagen.episode.layout import Camera
from nimbus.datagen.geometry import cameras, transforms
from nimbus.datagen.splats.nearest import find_nearest
from nimbus.datagen.splats.rasterizer import SplatRasterizer
from nimbus.datagen.splats.sample import discs_of, paint_samples, place_samples
from tests.support.splat_room import room_cloud, room_corners


def test_samples_are_spread_by_area():
    corners = room_corners().astype(float)
    areas = 0.5 * np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1)
    samples = place_samples(corners, 5000)
    counts = np.bincount(samples.faces, minlength=len(corners))
    assert np.abs(counts - 5000 * areas / areas.sum()).max() <= 1
    assert math.isclose(samples.spacing, math.sqrt(areas.sum() / 5000))
    nearest, normals, found = find_nearest(corners, samples.positions, 0.1)
    assert found.all() and np.abs(nearest - samples.positions).max() < 1e-4
    assert np.allclose(samples.shares.sum(axis=1), 1) and samples.shares.min() >= 0


def test_samples_leave_no_holes():
    """No point of a square is farther from a sample than 1.5 times their spacing."""
    square = np.array([[[0, 0, 0], [1, 0, 0], [1, 1, 0]], [[0, 0, 0], [1, 1, 0], [0, 1, 0]]], float)
    samples = place_samples(square, 400)
    x = np.stack(np.meshgrid(*[np.linspace(0, 1, 41)] * 2), -1).reshape(-1, 2)
    gaps = np.linalg.norm(x[:, None] - samples.positions[None, :, :2], axis=2).min(axis=1)
    assert gaps.max() < 1.5 * samples.spacing


def test_discs_lie_in_their_faces():
    samples = place_samples(room_corners(), 300)
    cloud = discs_of(samples, np.zeros((300, 3)))
    axes = transforms.quat_to_matrix(cloud.wxyz)
    assert np.abs(axes[:, :, 2] - samples.normals).max() < 1e-6
    assert (cloud.scales[:, 2] < 0.1 * cloud.scales[:, 0]).all()


def test_pictures_are_looked_up_upright():
    square = np.array([[[0, 0, 0], [1, 0, 0], [0, 1, 0]]], float)
    samples = place_samples(square, 200)
    image = np.zeros((2, 2, 3), np.uint8)
    image[0] = 255  # the upper row, v above a half
    colors = paint_samples(samples, square[:, :, :2], image, np.ones(200, bool))
    assert ((samples.positions[:, 1] >= 0.5) == (colors[:, 0] == 1)).all()


def test_splats_look_like_their_mesh():
    """With 60,000 splats, images have 28 dB against the mesh, and the median depth error is below 4 cm."""
    corners = room_corners()
    camera = Camera(
        name="front", mount="", position=(0, 0, 0), wxyz=(1, 0, 0, 0), vertical_fov=1.1, width=160, height=120
    )
    position = np.array([0.5, 4.4, 1.25])
    wxyz = np.array(transforms.look_at(position, (4.5, 1.5, 0.6)))
    made = SplatRasterizer(room_cloud(60_000)).render(camera, position[None], wxyz[None])
    places, normals, depth = _cast(corners, camera, position, wxyz)
    truth = 0.5 + 0.25 * np.sin(places * (2.1, 1.7, 2.3) + (0.0, 1.0, 2.0)) + 0.15 * normals
    error = made.rgb[0] / 255.0 - np.clip(truth, 0, 1)
    assert -10 * np.log10(np.mean(error**2)) > 28
    assert (made.alpha[0] > 0.9).mean() > 0.995
    assert np.median(np.abs(made.depth[0] - depth)) < 0.04


def _cast(
    corners: AnyArray, camera: Camera, position: FloatArray, wxyz: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return positions, normals and depth of the first hit of each pixel's ray."""
    pose = cameras.world_T_camera(position[None], wxyz[None])[0]
    matrix = cameras.intrinsics(camera)
    x, y = np.meshgrid(np.arange(camera.width) + 0.5, np.arange(camera.height) + 0.5)
    rays = np.stack([(x - matrix[0, 2]) / matrix[0, 0], (y - matrix[1, 2]) / matrix[1, 1], np.ones_like(x)], -1)
    rays = rays @ pose[:3, :3].T
    edges = corners[:, 1:] - corners[:, :1]
    across = np.cross(edges[:, 0], edges[:, 1])
    best, face = np.full(x.shape, np.inf), np.zeros(x.shape, int)
    for number, (origin, (one, other), normal) in enumerate(zip(corners[:, 0], edges, across, strict=True)):
        distance = np.dot(origin - position, normal) / np.where(np.abs(rays @ normal) > 1e-12, rays @ normal, np.inf)
        at = position + distance[..., None] * rays - origin
        u = np.cross(at, other) @ normal / (normal @ normal)
        v = np.cross(one, at) @ normal / (normal @ normal)
        hit = (u >= 0) & (v >= 0) & (u + v <= 1) & (distance > 1e-6) & (distance < best)
        best, face = np.where(hit, distance, best), np.where(hit, number, face)
    unit = across / np.linalg.norm(across, axis=1, keepdims=True)
    return position + best[..., None] * rays, unit[face], best
