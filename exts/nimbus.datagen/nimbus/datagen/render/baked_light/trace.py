# type: ignore  # Warp's kernel language only looks like Python to a type checker.
"""Ray tracing of the bake: from samples to lamps, and in all directions to other samples and the sky."""

from __future__ import annotations

import numpy as np
import warp as wp

from nimbus.datagen.arrays import Float32Array, FloatArray
from nimbus.datagen.render.baked_light.face_grids import FaceGrid
from nimbus.datagen.render.baked_light.light_basis import ZENITH

wp.set_module_options({"enable_backward": False})

RAYS = 100
"""Number of rays around each sample; with 64, steps are visible in the shade of furniture on walls."""
_LAMP_RAYS = wp.constant(4)
"""Number of rays along each side of a lamp."""
_OFF = wp.constant(1.0e-3)
"""Offset of a ray's origin from its face [m]."""
_FAR = wp.constant(1.0e3)
_ZENITH = wp.constant(ZENITH)


@wp.kernel
def _see_lamps(
    mesh: wp.uint64,
    points: wp.array(dtype=wp.vec3),
    normals: wp.array(dtype=wp.vec3),
    lamps: wp.array(dtype=wp.vec3),
    side: float,
    found: wp.array2d(dtype=wp.float32),
):
    sample, lamp = wp.tid()
    normal = normals[sample]
    start = points[sample] + normal * _OFF
    total = wp.float32(0.0)
    # Rays go to a regular grid on the lamp instead of random points, so results have no noise and are equal on all
    # machines.
    for x in range(_LAMP_RAYS):
        for y in range(_LAMP_RAYS):
            across = ((float(x) + 0.5) / float(_LAMP_RAYS) - 0.5) * side
            along = ((float(y) + 0.5) / float(_LAMP_RAYS) - 0.5) * side
            ray = lamps[lamp] + wp.vec3(across, along, 0.0) - start
            distance = wp.length(ray)
            ray = ray / distance
            # This is the cosine at the surface times the cosine at the lamp, which faces down.
            facing = wp.dot(ray, normal) * ray[2]
            if wp.dot(ray, normal) > 0.0 and ray[2] > 0.0:
                if not wp.mesh_query_ray_anyhit(mesh, start, ray, distance):
                    # Light follows the inverse-square law; the lower bound, (10 cm)^2, avoids a pole near a lamp.
                    total += facing / wp.max(distance * distance, 0.01)
    found[sample, lamp] = total / float(_LAMP_RAYS * _LAMP_RAYS)


@wp.func
def _sky_bin(ray: wp.vec3) -> int:
    if ray[2] < 0.0:
        return 5
    if ray[2] > _ZENITH:
        return 4
    return wp.where(ray[0] < 0.0, 2, 0) + wp.where(ray[1] < 0.0, 1, 0)


@wp.kernel
def _look_around(
    mesh: wp.uint64,
    points: wp.array(dtype=wp.vec3),
    normals: wp.array(dtype=wp.vec3),
    rays: wp.array(dtype=wp.vec3),
    steps: wp.array(dtype=wp.int32),
    starts: wp.array(dtype=wp.int32),
    samples: wp.array(dtype=wp.int32),
    open_faces: wp.array(dtype=wp.uint8),
    facing: wp.array(dtype=wp.vec3),
    found: wp.array2d(dtype=wp.int32),
    behind: wp.array(dtype=wp.float32),
):
    sample = wp.tid()
    normal = normals[sample]
    from_behind = wp.float32(0.0)
    # Any tangent will do; the second axis avoids a cross product of nearly parallel vectors.
    side = wp.normalize(
        wp.cross(normal, wp.where(wp.abs(normal[2]) < 0.9, wp.vec3(0.0, 0.0, 1.0), wp.vec3(1.0, 0.0, 0.0)))
    )
    other = wp.cross(normal, side)
    start = points[sample] + normal * _OFF
    for number in range(rays.shape[0]):
        local = rays[number]
        ray = side * local[0] + other * local[1] + normal * local[2]
        query = wp.mesh_query_ray(mesh, start, ray, _FAR)
        seen = -1 - _sky_bin(ray)
        if query.result:
            face = query.face
            if open_faces[face] == wp.uint8(0):
                if wp.dot(ray, facing[face]) > 0.0:
                    from_behind += 1.0
                parts = steps[face]
                # This is the nearest point of the grid; i and j may both round up, beyond the last point of row i.
                i = wp.clamp(wp.int32(wp.round(query.u * float(parts))), 0, parts)
                j = wp.clamp(wp.int32(wp.round(query.v * float(parts))), 0, parts - i)
                seen = samples[starts[face] + i * (parts + 1) - (i * (i - 1)) / 2 + j]
        found[sample, number] = seen
    behind[sample] = from_behind / float(rays.shape[0])


@wp.kernel
def _drop(mesh: wp.uint64, points: wp.array(dtype=wp.vec3), ray: wp.vec3, found: wp.array(dtype=wp.float32)):
    query = wp.mesh_query_ray(mesh, points[wp.tid()], ray, _FAR)
    found[wp.tid()] = wp.where(query.result, query.t, _FAR)


class BakeTracer:
    """Static mesh for the bake; it is always on the CPU, so that results are the same everywhere.

    Args:
        corners: (F, 3, 3) corners of its faces [m].
    """

    def __init__(self, corners: FloatArray) -> None:
        points = np.ascontiguousarray(corners, dtype=np.float32).reshape(-1, 3)
        indices = np.arange(len(points), dtype=np.int32)
        self._mesh = wp.Mesh(points=_array(points, wp.vec3), indices=_array(indices, wp.int32), bvh_constructor="sah")

    def see_lamps(self, points: Float32Array, normals: Float32Array, lamps: FloatArray, side: float) -> Float32Array:
        """Return light (S, L) of square lamps (L, 3) that face down, each of strength 1 [1 / m^2]."""
        found = wp.zeros((len(points), len(lamps)), dtype=wp.float32, device="cpu")
        inputs = [self._mesh.id, _array(points, wp.vec3), _array(normals, wp.vec3), _array(lamps, wp.vec3), side, found]
        wp.launch(_see_lamps, dim=found.shape, inputs=inputs, device="cpu")
        return found.numpy()

    def look_around(
        self, points: Float32Array, normals: Float32Array, grid: FaceGrid, is_open: np.ndarray, facing: FloatArray
    ) -> tuple[np.ndarray, Float32Array]:
        """Return the samples (S, RAYS) hit in cosine-weighted directions, and the fraction (S,) hit from behind.

        Parts of the sky are -1 and below.

        Args:
            points: (S, 3) [m].
            normals: (S, 3) unit normals.
            grid: Grids of all faces.
            is_open: (F,) faces through which the sky is visible.
            facing: (F, 3) directions in front of the faces.
        """
        found = wp.zeros((len(points), RAYS), dtype=wp.int32, device="cpu")
        behind = wp.zeros(len(points), dtype=wp.float32, device="cpu")
        grids = [_array(values, wp.int32) for values in (grid.steps, grid.start, grid.samples)]
        inputs = [self._mesh.id, _array(points, wp.vec3), _array(normals, wp.vec3), _array(_directions(), wp.vec3)]
        inputs += [*grids, _array(is_open.astype(np.uint8), wp.uint8), _array(facing, wp.vec3), found, behind]
        wp.launch(_look_around, dim=len(points), inputs=inputs, device="cpu")
        return found.numpy(), behind.numpy()

    def rise_above(self, points: FloatArray) -> Float32Array:
        """Return the free height (n,) above points (n, 3) [m]; 1000 without an obstacle."""
        found = wp.zeros(len(points), dtype=wp.float32, device="cpu")
        inputs = [self._mesh.id, _array(points, wp.vec3), wp.vec3(0.0, 0.0, 1.0), found]
        wp.launch(_drop, dim=len(points), inputs=inputs, device="cpu")
        return found.numpy()


def _array(values: np.ndarray, dtype: object) -> wp.array:
    return wp.array(np.ascontiguousarray(values), dtype=dtype, device="cpu")


def _directions() -> FloatArray:
    """Return (RAYS, 3) cosine-weighted directions about z."""
    number = np.arange(RAYS)
    height, turn = (number + 0.5) / RAYS, number * (np.pi * (3.0 - np.sqrt(5.0)))
    radius = np.sqrt(height)
    return np.column_stack([radius * np.cos(turn), radius * np.sin(turn), np.sqrt(1.0 - height)])
