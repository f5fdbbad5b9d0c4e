# type: ignore  # Warp's kernel language only looks like Python to a type checker.
"""Culling: finds the rectangles that a tile of the image can show, and the meshes that shade a cell of the light grid.

Meshes are located by the boxes around their pieces. Tiles and cells store their meshes as bit sets in ``Sets``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from nimbus.datagen.render.raytracer.kernel_data import GRID, SEAM, TILE, Boxes, Sets, Steps, Views

wp.set_module_options({"enable_backward": False})

_NEAR = wp.constant(2.0e-3)
"""Depth of the near plane [m]; nearer geometry is ignored."""
_SLACK = wp.constant(0.01)
"""Margin for the error of single precision, as a fraction of a rectangle's edge and of a cell."""
_NOTHING = wp.constant(wp.vec4(1.0e9, 1.0e9, -1.0e9, -1.0e9))


@wp.func
def _corner(boxes: Boxes, box: int, corner: int) -> wp.vec3:
    low = boxes.lower[box]
    high = boxes.upper[box]
    return wp.vec3(
        wp.where((corner & 1) != 0, high[0], low[0]),
        wp.where((corner & 2) != 0, high[1], low[1]),
        wp.where((corner & 4) != 0, high[2], low[2]),
    )


@wp.func
def _widened(bounds: wp.vec4, row: float, column: float) -> wp.vec4:
    return wp.vec4(wp.min(bounds[0], row), wp.min(bounds[1], column), wp.max(bounds[2], row), wp.max(bounds[3], column))


@wp.func
def _projected(views: Views, seen: wp.vec3, bounds: wp.vec4) -> wp.vec4:
    row = (0.5 * float(views.height) + views.focal * seen[1] / seen[2]) / float(TILE)
    column = (0.5 * float(views.width) - views.focal * seen[0] / seen[2]) / float(TILE)
    return _widened(bounds, row, column)


@wp.kernel
def _image_bounds(boxes: Boxes, mesh_count: int, views: Views, bounds: wp.array(dtype=wp.vec4)):
    """Compute the tile rows and columns that each box covers."""
    step, box = wp.tid()
    row = step * mesh_count + boxes.mesh[box]
    origin = views.origins[row]
    turn = views.mesh_R_camera[row]
    found = wp.vec4(_NOTHING)
    behind = wp.int32(0)
    for corner in range(boxes.eight):
        seen = (_corner(boxes, box, corner) - origin) * turn
        if seen[2] < -_NEAR:
            found = _projected(views, seen, found)
        else:
            behind += 1
    # A box that the near plane cuts is bounded by its visible corners and by the points where its edges meet the
    # plane. Corners behind the camera would project to the wrong side.
    if behind > 0 and behind < 8:
        # An edge is an axis and a corner; only the lower of its two corners counts, so that no edge is taken twice.
        for edge in range(3 * boxes.eight):
            axis = 1 << (edge >> 3)
            corner = edge & 7
            if (corner & axis) == 0:
                one = (_corner(boxes, box, corner) - origin) * turn
                other = (_corner(boxes, box, corner | axis) - origin) * turn
                if (one[2] < -_NEAR) != (other[2] < -_NEAR):
                    # The camera looks along -z, so the plane is at z = -_NEAR.
                    share = (one[2] + _NEAR) / (one[2] - other[2])
                    found = _projected(views, one + share * (other - one), found)
    bounds[step * boxes.count + box] = found


@wp.kernel
def _light_bounds(
    boxes: Boxes, mesh_count: int, steps: Steps, along: wp.vec3, across: wp.vec3, bounds: wp.array(dtype=wp.vec4)
):
    """Compute the extent of each box across the light, with the margin of its mesh [m]."""
    step, box = wp.tid()
    row = step * mesh_count + boxes.mesh[box]
    found = wp.vec4(_NOTHING)
    for corner in range(boxes.eight):
        point = steps.world_R_mesh[row] * _corner(boxes, box, corner) + steps.positions[row]
        found = _widened(found, wp.dot(point, along), wp.dot(point, across))
    margin = steps.margins[row]
    bounds[step * boxes.count + box] = found + wp.vec4(-margin[0], -margin[1], margin[0], margin[1])


@wp.kernel
def _mark(
    boxes: Boxes,
    mesh_count: int,
    bounds: wp.array(dtype=wp.vec4),
    corners: wp.array(dtype=wp.vec2),
    scales: wp.array(dtype=wp.vec2),
    active: wp.array(dtype=wp.uint8),
    rows: int,
    columns: int,
    sets: Sets,
    steps: Steps,
    rectangles: int,
    along: wp.vec3,
    across: wp.vec3,
):
    """Add each box's mesh to the sets of the cells that the box covers.

    The first ``rectangles`` meshes are rectangles, which are added only to cells that their shadows touch.
    """
    step, box = wp.tid()
    mesh = step * mesh_count + boxes.mesh[box]
    if active[mesh] == wp.uint8(0):
        return
    found = bounds[step * boxes.count + box]
    corner = corners[step]
    scale = scales[step]
    limit = wp.vec2(float(rows), float(columns))
    low = wp.vec2((found[0] - corner[0]) * scale[0], (found[1] - corner[1]) * scale[1])
    high = wp.vec2((found[2] - corner[0]) * scale[0], (found[3] - corner[1]) * scale[1])
    if high[0] < 0.0 or high[1] < 0.0 or low[0] >= limit[0] or low[1] >= limit[1]:
        return
    bit = wp.uint32(1) << wp.uint32(boxes.mesh[box] & 31)
    word = boxes.mesh[box] >> 5
    last_row = wp.int32(wp.min(high[0], limit[0] - 1.0))
    last_column = wp.int32(wp.min(high[1], limit[1] - 1.0))
    first_column = wp.int32(wp.max(low[1], 0.0))
    shares = wp.vec4(0.0)
    slopes = wp.vec4(0.0)
    room = wp.vec2(1.0)
    if boxes.mesh[box] < rectangles:
        # The box of a slanted rectangle covers many cells that its shadow does not touch. They are excluded by the
        # coordinates along both edges, which are linear over the grid: the value at the first cell's center, and
        # the increments from cell to cell.
        one = steps.shades[mesh * 3 + 1]
        two = steps.shades[mesh * 3 + 2]
        slope_one = wp.vec3(one[0], one[1], one[2])
        slope_two = wp.vec3(two[0], two[1], two[2])
        middle = (corner[0] + 0.5 / scale[0]) * along + (corner[1] + 0.5 / scale[1]) * across
        slopes = wp.vec4(
            wp.dot(slope_one, along) / scale[0],
            wp.dot(slope_one, across) / scale[1],
            wp.dot(slope_two, along) / scale[0],
            wp.dot(slope_two, across) / scale[1],
        )
        shares = wp.vec4(wp.dot(slope_one, middle) + one[3], wp.dot(slope_two, middle) + two[3], 0.0, 0.0)
        # A cell may touch the shadow up to half an edge and half a cell from the middle of the edge.
        room = wp.vec2(
            0.5 + _SLACK + (0.5 + _SLACK) * (wp.abs(slopes[0]) + wp.abs(slopes[1])),
            0.5 + _SLACK + (0.5 + _SLACK) * (wp.abs(slopes[2]) + wp.abs(slopes[3])),
        )
    for row in range(wp.int32(wp.max(low[0], 0.0)), last_row + 1):
        for column in range(first_column, last_column + 1):
            if boxes.mesh[box] < rectangles:
                s = shares[0] + float(row) * slopes[0] + float(column) * slopes[1]
                t = shares[1] + float(row) * slopes[2] + float(column) * slopes[3]
                if wp.abs(s - 0.5) > room[0] or wp.abs(t - 0.5) > room[1]:
                    continue
            # Several threads mark the same word on a GPU. In Warp, |= on an array is atomic, and the result does not
            # depend on their order.
            sets.bits[((step * rows + row) * columns + column) * sets.words + word] |= bit


def cover_image(boxes: Boxes, active: NDArray[np.bool_], views: Views, *, count: int) -> None:
    """Set the ``tiles`` that rectangles cover.

    Args:
        boxes: Boxes around pieces of G meshes.
        active: (K, G) True for meshes to consider.
        views: Camera at K steps; receives ``tiles``.
        count: Number of boxes to consider, from the first on.
    """
    steps, meshes = active.shape
    device = boxes.mesh.device
    bounds = wp.empty(steps * boxes.count, dtype=wp.vec4, device=device)
    wp.launch(_image_bounds, dim=(steps, count), inputs=[boxes, meshes, views, bounds], device=device)
    shape = -(-views.height // TILE), -(-views.width // TILE)
    identity = np.tile(((0.0, 0.0), (1.0, 1.0)), (steps, 1, 1))
    views.tiles = _sets(boxes, bounds, identity[:, 0], identity[:, 1], active, shape, count)


def cover_light(
    boxes: Boxes,
    casts: NDArray[np.bool_],
    steps: Steps,
    axes: tuple[Any, Any],
    extents: NDArray[np.float64],
    *,
    rectangles: int,
) -> None:
    """Set the grid across the light, and the sets ``cells`` of the meshes whose shadows touch each of its cells.

    Args:
        boxes: Around pieces of G meshes.
        casts: (K, G) True for meshes that cast shadows.
        steps: K steps with ``margins`` and ``shades``; receives ``bounds``, ``grid_corner``, ``grid_scale``, ``cells``.
        axes: Unit vectors along the rows and the columns of the grid.
        extents: (K, G, 2, 2) lower and upper corners of the meshes with those margins, along the rows and the columns
            [m].
        rectangles: Number of meshes that are rectangles; they come first.
    """
    count, meshes = casts.shape
    device = boxes.mesh.device
    bounds = wp.empty(count * boxes.count, dtype=wp.vec4, device=device)
    along, across = (wp.vec3(*axis) for axis in axes)
    inputs = [boxes, meshes, steps, along, across, bounds]
    wp.launch(_light_bounds, dim=(count, boxes.count), inputs=inputs, device=device)
    steps.bounds = bounds
    low = np.where(casts[..., None], extents[:, :, 0], np.inf).min(axis=1)
    high = np.where(casts[..., None], extents[:, :, 1], -np.inf).max(axis=1)
    # A step without casters gets some grid of finite size, whose cells stay empty.
    low, high = np.where(np.isfinite(low), low, 0.0), np.where(np.isfinite(high), high, 1.0)
    scale = GRID / np.maximum(high - low, 1e-6)
    steps.grid_corner = wp.array(low, dtype=wp.vec2, device=device)
    steps.grid_scale = wp.array(scale, dtype=wp.vec2, device=device)
    clipping = steps, rectangles, along, across
    steps.cells = _sets(boxes, bounds, low, scale, casts, (GRID, GRID), boxes.count, clipping)


def cover_near(boxes: Boxes, moves: NDArray[np.bool_], steps: Steps, around: NDArray[np.float64]) -> None:
    """Set a second grid across the light, whose cells list the moving meshes within two seams, and boxes around them.

    Args:
        boxes: Around pieces of G meshes.
        moves: (K, G) True for meshes that move.
        steps: K steps with ``bounds``; receives the fields that begin with ``near``.
        around: (K, G, 8, 3) corners of a box around each mesh, in the world frame [m].
    """
    # Seams are measured from a point one seam above a surface, and reach one seam from there.
    device, reach = boxes.mesh.device, 2 * SEAM
    low, high = around.min(axis=2) - SEAM, around.max(axis=2) + SEAM
    steps.near_low = wp.array(low.reshape(-1, 3), dtype=wp.vec3, device=device)
    steps.near_high = wp.array(high.reshape(-1, 3), dtype=wp.vec3, device=device)
    bounds = steps.bounds.numpy().reshape(len(moves), -1, 4) + np.array((-reach, -reach, reach, reach), np.float32)
    shown = moves[:, boxes.mesh.numpy(), None]
    low = np.where(shown, bounds[..., :2], np.inf).min(axis=1)
    high = np.where(shown, bounds[..., 2:], -np.inf).max(axis=1)
    scale = GRID / np.maximum(high - low, 1e-6)
    steps.near_corner = wp.array(low, dtype=wp.vec2, device=device)
    steps.near_scale = wp.array(scale, dtype=wp.vec2, device=device)
    grown = wp.array(bounds.reshape(-1, 4), dtype=wp.vec4, device=device)
    steps.near = _sets(boxes, grown, low, scale, moves, (GRID, GRID), boxes.count)


def _sets(
    boxes: Boxes,
    bounds: wp.array,
    corner: NDArray[Any],
    scale: NDArray[Any],
    active: NDArray[np.bool_],
    shape: tuple[int, int],
    boxes_looked_at: int,
    clipping: tuple[Steps, int, Any, Any] | None = None,
) -> Sets:
    steps, count = active.shape
    device = bounds.device
    sets = Sets()
    sets.words = -(-count // 32)
    sets.bits = wp.zeros(steps * shape[0] * shape[1] * sets.words, dtype=wp.uint32, device=device)
    uploads = [wp.array(values, dtype=wp.vec2, device=device) for values in (corner, scale)]
    uploads += [wp.array(active.ravel(), dtype=wp.uint8, device=device)]
    inputs = [boxes, count, bounds, *uploads, *shape, sets, *(clipping or (Steps(), 0, wp.vec3(), wp.vec3()))]
    wp.launch(_mark, dim=(steps, boxes_looked_at), inputs=inputs, device=device)
    return sets


def members(sets: Sets) -> list[list[int]]:
    """Return the meshes of each of the K * rows * columns cells, for inspection."""
    cells = sets.bits.numpy().reshape(-1, sets.words)
    bits = (cells[:, :, None] >> np.arange(32, dtype=np.uint32) & 1).reshape(len(cells), -1)
    return [np.flatnonzero(row).tolist() for row in bits]
