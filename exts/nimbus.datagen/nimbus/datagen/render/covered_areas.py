# type: ignore  # Warp's kernel language only looks like Python to a type checker.
"""Silhouette areas: the number of pixels that instances would cover without occlusion, in many views at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import warp as wp

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.render.raytracer.placing import Eyes, rotation_matrix
from nimbus.datagen.render.raytracer.scene_table import PlacedSteps, PlacedViews

wp.set_module_options({"enable_backward": False})

_DIRECTIONS = wp.constant(32)
"""Number of half-planes that bound a silhouette; with 32 the area of a round one is exact within 1 %."""
_CORNERS = wp.constant(96)
"""Largest number of corners of a clipped polygon; each clipping line adds at most one to a convex polygon."""
_NEAR = wp.constant(wp.float64(0.01))
"""Smallest depth [m]; nearer points, and points behind the camera, are moved to it."""
_FAR = wp.constant(wp.float64(1e300))
_ZERO = wp.constant(wp.float64(0.0))


@wp.struct
class Outlines:
    """Outlines of the rigid instances of L layouts."""

    starts: wp.array2d(dtype=wp.int32)
    """Start of each instance's points, for each layout; -1 for none."""
    bodies: wp.array2d(dtype=wp.int32)
    """Row of each instance's body in the poses of a step."""
    counts: wp.array2d(dtype=wp.int32)
    """Number of points of each instance."""
    points: wp.array(dtype=wp.vec3d)
    """Points in the frame of the body [m]."""


@wp.func
def _clipped(
    polygon: wp.array3d(dtype=wp.vec2d),
    row: int,
    count: int,
    source: int,
    axis: int,
    limit: wp.float64,
    sign: wp.float64,
) -> int:
    """Clip a polygon at a line along an axis of the image (Sutherland and Hodgman 1974); return its corner count."""
    found = wp.int32(0)
    for corner in range(count):
        here = polygon[row, source, corner]
        ahead = polygon[row, source, wp.where(corner + 1 < count, corner + 1, 0)]
        inside = sign * (here[axis] - limit)
        ahead_inside = sign * (ahead[axis] - limit)
        if inside >= _ZERO and found < _CORNERS:
            polygon[row, 1 - source, found] = here
            found += 1
        if (inside < _ZERO) != (ahead_inside < _ZERO) and found < _CORNERS:
            polygon[row, 1 - source, found] = here + inside / (inside - ahead_inside) * (ahead - here)
            found += 1
    return found


@wp.kernel
def _measure_outlines(
    outlines: Outlines,
    directions: wp.array(dtype=wp.vec2d),
    sine: wp.float64,
    layouts: wp.array(dtype=wp.int32),
    steps: wp.array(dtype=wp.int32),
    body_positions: wp.array2d(dtype=wp.vec3d),
    body_wxyz: wp.array2d(dtype=wp.vec4d),
    eyes: Eyes,
    size: wp.vec2d,
    polygon: wp.array3d(dtype=wp.vec2d),
    areas: wp.array2d(dtype=wp.float64),
):
    """Measure the area inside the image of the convex outline of each instance in each view."""
    view, thing = wp.tid()
    layout = layouts[view]
    start = outlines.starts[layout, thing]
    if start < 0:
        return
    row = view * outlines.starts.shape[1] + thing
    body = outlines.bodies[layout, thing]
    turn = rotation_matrix(body_wxyz[steps[view], body])
    away = body_positions[steps[view], body]
    to_camera = wp.transpose(eyes.rotations[view])
    focal = eyes.focals[view]
    is_in_front = wp.bool(False)
    for place in range(_DIRECTIONS):
        # The furthest extent along each direction is kept in the polygon until its corners are computed.
        polygon[row, 0, place] = wp.vec2d(-_FAR, _ZERO)
    for point in range(start, start + outlines.counts[layout, thing]):
        world = turn * outlines.points[point] + away
        seen = to_camera * (world - eyes.positions[view])
        # In OpenGL axes, the camera looks along -z, and y points up.
        depth = -seen[2]
        if depth > _NEAR:
            is_in_front = wp.bool(True)
        depth = wp.max(depth, _NEAR)
        half = wp.float64(0.5)
        pixel = wp.vec2d(seen[0] / depth * focal + half * size[0], -seen[1] / depth * focal + half * size[1])
        for place in range(_DIRECTIONS):
            reach = wp.dot(pixel, directions[place])
            if reach > polygon[row, 0, place][0]:
                polygon[row, 0, place] = wp.vec2d(reach, _ZERO)
    if not is_in_front:
        return
    for place in range(_DIRECTIONS):
        following = wp.where(place + 1 < _DIRECTIONS, place + 1, 0)
        here = polygon[row, 0, place][0]
        next = polygon[row, 0, following][0]
        one = directions[place]
        other = directions[following]
        polygon[row, 1, place] = wp.vec2d(
            (here * other[1] - next * one[1]) / sine, (next * one[0] - here * other[0]) / sine
        )
    count = wp.int32(_DIRECTIONS)
    source = wp.int32(1)
    for axis in range(2):
        count = _clipped(polygon, row, count, source, axis, _ZERO, wp.float64(1.0))
        count = _clipped(polygon, row, count, 1 - source, axis, size[axis], wp.float64(-1.0))
    total = wp.float64(0.0)
    for corner in range(count):
        here_corner = polygon[row, source, corner]
        ahead = polygon[row, source, wp.where(corner + 1 < count, corner + 1, 0)]
        total += here_corner[0] * ahead[1] - here_corner[1] * ahead[0]
    areas[view, thing] = wp.float64(0.5) * wp.abs(total)


class OutlineTable:
    """Outlines of the rigid instances of several layouts on the device.

    Args:
        outlines: Body and outline points (n, 3) [m] of each rigid instance, for each layout.
        device: The device.
    """

    def __init__(self, outlines: Sequence[Mapping[int, tuple[str, FloatArray]]], device: wp.Device) -> None:
        self._device, self._bodies = device, [[body for body, _ in found.values()] for found in outlines]
        self.things = max(map(len, outlines), default=0)
        starts = np.full((len(outlines), self.things), -1, dtype=np.int32)
        counts = np.zeros((len(outlines), self.things), dtype=np.int32)
        points: list[FloatArray] = []
        start = 0
        for layout, found in enumerate(outlines):
            for thing, (_, outline) in enumerate(found.values()):
                starts[layout, thing], counts[layout, thing] = start, len(outline)
                points.append(outline)
                start += len(outline)
        self._starts = wp.array(starts, dtype=wp.int32, device=device)
        self._counts = wp.array(counts, dtype=wp.int32, device=device)
        self._points = wp.array(np.concatenate(points or [np.zeros((1, 3))]), dtype=wp.vec3d, device=device)
        angles = np.arange(_DIRECTIONS) * (2 * np.pi / _DIRECTIONS)
        directions = np.stack([np.cos(angles), np.sin(angles)], axis=1)
        self._directions = wp.array(directions, dtype=wp.vec2d, device=device)

    def measure(
        self, names: Sequence[Sequence[str]], placed: PlacedSteps, seen: PlacedViews, *, width: int, height: int
    ) -> wp.array:
        """Return areas (V, T) inside the image of the outlines of T instances in V views [px].

        Args:
            names: Names of the bodies of each layout; none for a layout that is not shown.
            placed: The steps.
            seen: The views.
            width: Width of the image [px].
            height: Height of the image [px].
        """
        count, device = len(seen), self._device
        areas = wp.zeros((count, self.things), dtype=wp.float64, device=device)
        if not self.things:
            return areas
        rows = np.zeros((len(names), self.things), dtype=np.int32)
        for layout, (bodies, known) in enumerate(zip(self._bodies, names, strict=True)):
            rows[layout, : len(bodies)] = [known.index(body) for body in bodies] if len(known) else 0
        outlines = Outlines()
        outlines.starts, outlines.counts = self._starts, self._counts
        outlines.bodies, outlines.points = wp.array(rows, dtype=wp.int32, device=device), self._points
        polygon = wp.empty((count * self.things, 2, _CORNERS), dtype=wp.vec2d, device=device)
        sine, size = float(np.sin(2 * np.pi / _DIRECTIONS)), wp.vec2d(float(width), float(height))
        inputs = [outlines, self._directions, sine, seen.views.layouts, seen.views.steps]
        inputs += [placed.body_positions, placed.body_wxyz, seen.eyes, size, polygon, areas]
        wp.launch(_measure_outlines, dim=(count, self.things), inputs=inputs, device=device)
        return areas
