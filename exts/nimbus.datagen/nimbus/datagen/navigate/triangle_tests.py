# type: ignore  # Warp's kernel language only looks like Python to a type checker.
"""Exact triangle tests in Warp: boxes, upright cylinders, floors and rays."""

from __future__ import annotations

import numpy as np
import warp as wp

from nimbus.datagen.arrays import Float32Array, FloatArray, IndexArray

wp.set_module_options({"enable_backward": False})

_FAR = wp.constant(1.0e4)
_SKIN = wp.constant(1.0e-4)
"""Smallest overlap that counts as contact [m]."""


@wp.func
def _is_apart(axis: wp.vec3, a: wp.vec3, b: wp.vec3, c: wp.vec3, half: wp.vec3):
    """Test whether an axis separates a triangle from a box around the origin."""
    p, q, r = wp.dot(axis, a), wp.dot(axis, b), wp.dot(axis, c)
    reach = half[0] * wp.abs(axis[0]) + half[1] * wp.abs(axis[1]) + half[2] * wp.abs(axis[2])
    return wp.min(p, wp.min(q, r)) > reach or wp.max(p, wp.max(q, r)) < -reach


@wp.func
def _meets_box(a: wp.vec3, b: wp.vec3, c: wp.vec3, middle: wp.vec3, half: wp.vec3):
    """Test 13 axes: three of the box, the normal, nine cross products (Akenine-Moeller 2001)."""
    a, b, c = a - middle, b - middle, c - middle
    apart = wp.bool(False)
    for k in range(3):
        low, high = wp.min(a[k], wp.min(b[k], c[k])), wp.max(a[k], wp.max(b[k], c[k]))
        apart = apart or low > half[k] or high < -half[k]
    one, two, three = b - a, c - b, a - c
    apart = apart or _is_apart(wp.cross(one, two), a, b, c, half)
    x, y, z = wp.vec3(1.0, 0.0, 0.0), wp.vec3(0.0, 1.0, 0.0), wp.vec3(0.0, 0.0, 1.0)
    apart = apart or _is_apart(wp.cross(x, one), a, b, c, half) or _is_apart(wp.cross(y, one), a, b, c, half)
    apart = apart or _is_apart(wp.cross(z, one), a, b, c, half) or _is_apart(wp.cross(x, two), a, b, c, half)
    apart = apart or _is_apart(wp.cross(y, two), a, b, c, half) or _is_apart(wp.cross(z, two), a, b, c, half)
    apart = apart or _is_apart(wp.cross(x, three), a, b, c, half) or _is_apart(wp.cross(y, three), a, b, c, half)
    apart = apart or _is_apart(wp.cross(z, three), a, b, c, half)
    return not apart


@wp.func
def _is_in_box(mesh: wp.uint64, lower: wp.vec3, upper: wp.vec3):
    """Test a box against all triangles."""
    middle, half = 0.5 * (lower + upper), 0.5 * (upper - lower)
    query, face = wp.mesh_query_aabb(mesh, lower, upper), wp.int32(0)
    while wp.mesh_query_aabb_next(query, face):
        a, b = wp.mesh_eval_position(mesh, face, 1.0, 0.0), wp.mesh_eval_position(mesh, face, 0.0, 1.0)
        if _meets_box(a, b, wp.mesh_eval_position(mesh, face, 0.0, 0.0), middle, half):
            return True
    return False


@wp.func
def _corner(x: wp.float64, y: wp.float64, z: wp.float64):
    return wp.vec3(wp.float32(x), wp.float32(y), wp.float32(z))


@wp.kernel
def _drop_blocked(
    mesh: wp.uint64,
    points: wp.array2d(dtype=wp.float64),
    half: wp.float64,
    low: wp.float64,
    high: wp.float64,
    heights: wp.array2d(dtype=wp.float32),
):
    layer, column = wp.tid()
    if wp.isnan(heights[layer, column]):
        return
    x, y, z = points[column, 0], points[column, 1], wp.float64(heights[layer, column])
    inset = wp.float64(1.0e-4)
    lower = _corner(x - half + inset, y - half + inset, z + low + inset)
    upper = _corner(x + half - inset, y + half - inset, z + high - inset)
    if _is_in_box(mesh, lower, upper):
        heights[layer, column] = wp.nan


@wp.kernel
def _find_floors(
    mesh: wp.uint64,
    points: wp.array(dtype=wp.vec2),
    bottom: float,
    top: float,
    slope: float,
    heights: wp.array2d(dtype=wp.float32),
):
    column = wp.tid()
    start = wp.vec3(points[column][0], points[column][1], top)
    count = wp.int32(0)
    for _ in range(64):
        query = wp.mesh_query_ray(mesh, start, wp.vec3(0.0, 0.0, -1.0), _FAR)
        if not query.result or count >= heights.shape[0]:
            return
        z = start[2] - query.t
        is_new = wp.bool(True)
        if count > 0:
            is_new = heights[count - 1, column] - z > 0.02
        if query.normal[2] > slope and is_new:
            heights[count, column] = z
            count += 1
        start = wp.vec3(start[0], start[1], z - 0.001)
        if start[2] < bottom:
            return


@wp.func
def _to_segment(p: wp.vec2, a: wp.vec3, b: wp.vec3):
    """Return the distance in the plane from a point to a segment."""
    along = wp.vec2(b[0] - a[0], b[1] - a[1])
    off = p - wp.vec2(a[0], a[1])
    share = wp.clamp(wp.dot(off, along) / wp.max(wp.dot(along, along), 1.0e-12), 0.0, 1.0)
    return wp.length(off - share * along)


@wp.func
def _edge_distance(p: wp.vec2, a: wp.vec3, b: wp.vec3, low: float, high: float):
    """Return the distance in the plane to the part of an edge between two heights."""
    if wp.max(a[2], b[2]) < low or wp.min(a[2], b[2]) > high:
        return _FAR
    rise = b[2] - a[2]
    first, last = wp.float32(0.0), wp.float32(1.0)
    if wp.abs(rise) > 1.0e-9:
        one, two = (low - a[2]) / rise, (high - a[2]) / rise
        first, last = wp.max(0.0, wp.min(one, two)), wp.min(1.0, wp.max(one, two))
    return _to_segment(p, a + first * (b - a), a + last * (b - a))


@wp.func
def _cut_distance(p: wp.vec2, a: wp.vec3, b: wp.vec3, c: wp.vec3, height: float):
    """Return the distance in the plane to the segment in which a triangle intersects the plane at a height."""
    ends, count = wp.mat22(), wp.int32(0)
    for edge in range(3):
        u, v = a, b
        if edge == 1:
            u, v = b, c
        elif edge == 2:
            u, v = c, a
        if (u[2] - height) * (v[2] - height) < 0.0 and count < 2:
            share = (height - u[2]) / (v[2] - u[2])
            ends[count, 0] = u[0] + share * (v[0] - u[0])
            ends[count, 1] = u[1] + share * (v[1] - u[1])
            count += 1
    if count < 2:
        return _FAR
    return _to_segment(p, wp.vec3(ends[0, 0], ends[0, 1], 0.0), wp.vec3(ends[1, 0], ends[1, 1], 0.0))


@wp.func
def _is_pierced(p: wp.vec2, a: wp.vec3, b: wp.vec3, c: wp.vec3, low: float, high: float):
    """Test the vertical segment above a point against a triangle."""
    across = (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
    if wp.abs(across) < 1.0e-12:
        return False
    u = ((p[0] - a[0]) * (c[1] - a[1]) - (p[1] - a[1]) * (c[0] - a[0])) / across
    v = ((b[0] - a[0]) * (p[1] - a[1]) - (b[1] - a[1]) * (p[0] - a[0])) / across
    z = a[2] + u * (b[2] - a[2]) + v * (c[2] - a[2])
    return u >= 0.0 and v >= 0.0 and u + v <= 1.0 and z >= low and z <= high


@wp.func
def _nearest_within(mesh: wp.uint64, p: wp.vec2, reach: float, z0: float, z1: float):
    """Return the distance in the plane to the nearest triangle between two heights; at most ``reach``."""
    nearest = wp.float32(reach)
    query, face = (
        wp.mesh_query_aabb(mesh, wp.vec3(p[0] - reach, p[1] - reach, z0), wp.vec3(p[0] + reach, p[1] + reach, z1)),
        wp.int32(0),
    )
    while wp.mesh_query_aabb_next(query, face):
        a, b = wp.mesh_eval_position(mesh, face, 1.0, 0.0), wp.mesh_eval_position(mesh, face, 0.0, 1.0)
        c = wp.mesh_eval_position(mesh, face, 0.0, 0.0)
        if _is_pierced(p, a, b, c, z0, z1):
            nearest = 0.0
        for edge in range(3):
            u, v = a, b
            if edge == 1:
                u, v = b, c
            elif edge == 2:
                u, v = c, a
            nearest = wp.min(nearest, _edge_distance(p, u, v, z0, z1))
        nearest = wp.min(nearest, _cut_distance(p, a, b, c, z0))
        nearest = wp.min(nearest, _cut_distance(p, a, b, c, z1))
    return nearest


@wp.kernel
def _measure(
    mesh: wp.uint64,
    feet: wp.array(dtype=wp.vec3),
    reach: float,
    low: float,
    high: float,
    found: wp.array(dtype=wp.float32),
):
    """Search a small square first: a triangle outside of it is no nearer than its half side."""
    place = wp.tid()
    foot = feet[place]
    p, z0, z1 = wp.vec2(foot[0], foot[1]), foot[2] + low, foot[2] + high
    half = wp.float32(0.25) * reach
    nearest = _nearest_within(mesh, p, half, z0, z1)
    while half < reach and nearest > half - 1.0e-3:
        half = wp.min(2.0 * half, reach)
        nearest = _nearest_within(mesh, p, half, z0, z1)
    found[place] = nearest


@wp.kernel
def _look(
    mesh: wp.uint64,
    origins: wp.array(dtype=wp.vec3),
    directions: wp.array(dtype=wp.vec3),
    found: wp.array(dtype=wp.int32),
):
    ray = wp.tid()
    query = wp.mesh_query_ray(mesh, origins[ray], directions[ray], _FAR)
    found[ray] = wp.where(query.result, query.face, -1)


class CollisionMesh:
    """Triangle tests of a scene; they run on the CPU, so that results are the same on every machine.

    Args:
        corners: (F, 3, 3) corners of the scene's faces [m]; F is at least 1.
    """

    def __init__(self, corners: Float32Array) -> None:
        self.corners = np.ascontiguousarray(corners, dtype=np.float32)
        points = self.corners.reshape(-1, 3)
        self._mesh = wp.Mesh(
            points=wp.array(points, dtype=wp.vec3, device="cpu"),
            indices=wp.array(np.arange(len(points), dtype=np.int32), dtype=wp.int32, device="cpu"),
        )

    def drop_blocked(self, heights: Float32Array, points: FloatArray, *, half: float, low: float, high: float) -> None:
        """Set to NaN the heights of floors that have a triangle in the box above them.

        Args:
            heights: (L, n) heights of floors [m]; NaN for none.
            points: (n, 2) centers x, y of the boxes [m].
            half: Half of the sides of the boxes [m].
            low: Height above the floor at which the boxes start [m].
            high: Height above the floor at which the boxes end [m].
        """
        filled = wp.array(heights, dtype=wp.float32, device="cpu", copy=False)
        inputs = [self._mesh.id, wp.array(points, dtype=wp.float64, device="cpu", copy=False), half, low, high, filled]
        wp.launch(_drop_blocked, dim=heights.shape, inputs=inputs, device="cpu")

    def find_floors(self, points: FloatArray, *, most: int, slope: float) -> Float32Array:
        """Find the floors at points of the plane: faces that point up.

        Args:
            points: (n, 2) points x, y [m].
            most: Largest number of floors at one point.
            slope: Steepest slope of a floor [rad].

        Returns:
            (most, n) heights of the floors, from the highest down [m]; NaN for none.
        """
        heights = wp.full((most, len(points)), float("nan"), dtype=wp.float32, device="cpu")
        bottom, top = float(self.corners[..., 2].min()) - 0.001, float(self.corners[..., 2].max()) + 1.0
        flat = wp.array(np.ascontiguousarray(points, dtype=np.float32), dtype=wp.vec2, device="cpu")
        wp.launch(
            _find_floors,
            dim=len(points),
            inputs=[self._mesh.id, flat, bottom, top, float(np.cos(slope)), heights],
            device="cpu",
        )
        return heights.numpy()

    def clearance(self, feet: FloatArray, *, low: float, high: float, reach: float) -> Float32Array:
        """Measure the horizontal distance between vertical axes and the nearest triangle.

        Args:
            feet: (n, 3) lower ends of the axes [m].
            low: Height above the lower end from which triangles count [m].
            high: Height above the lower end up to which triangles count [m].
            reach: Upper limit of the measured distance [m].

        Returns:
            (n,) distances [m].
        """
        found = wp.zeros(len(feet), dtype=wp.float32, device="cpu")
        inputs = [self._mesh.id, _vectors(feet), reach, low, high, found]
        wp.launch(_measure, dim=len(feet), inputs=inputs, device="cpu")
        return found.numpy()

    def first_faces(self, origins: FloatArray, directions: FloatArray) -> IndexArray:
        """Return the face (n,) that each ray hits first; -1 for none.

        Args:
            origins: (n, 3) origins of the rays [m].
            directions: (n, 3) directions of the rays.
        """
        found = wp.zeros(len(origins), dtype=wp.int32, device="cpu")
        wp.launch(
            _look,
            dim=len(origins),
            inputs=[self._mesh.id, _vectors(origins), _vectors(directions), found],
            device="cpu",
        )
        return found.numpy()


def _vectors(values: FloatArray | IndexArray) -> wp.array:
    return wp.array(np.ascontiguousarray(values, dtype=np.float32), dtype=wp.vec3, device="cpu")
