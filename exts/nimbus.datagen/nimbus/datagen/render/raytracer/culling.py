# type: ignore  # Warp's kernel language only looks like Python to a type checker.
"""Culling: search for the rectangles that a tile of the image can show, and the meshes that shade a cell of the light.

Meshes are located by the boxes around their pieces. Tiles and cells store their meshes as bit sets in ``Sets``.
"""

from __future__ import annotations

import numpy as np
import warp as wp

from nimbus.datagen.render.raytracer.kernel_data import (
    GRID,
    SEAM,
    TILE,
    Boxes,
    DeviceLight,
    DeviceScene,
    Sets,
    Steps,
    Views,
)

wp.set_module_options({"enable_backward": False})

_NEAR = wp.constant(2.0e-3)
"""Depth of the near plane [m]; nearer geometry is ignored."""
_SLACK = wp.constant(0.01)
"""Margin for the error of single precision, as a fraction of a rectangle's edge and of a cell."""
_NOTHING = wp.constant(wp.vec4(1.0e9, 1.0e9, -1.0e9, -1.0e9))
_SMALLEST = wp.constant(1.0e-6)
"""Smallest extent of a grid across the light [m]."""


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
def _projected(views: Views, focal: float, seen: wp.vec3, bounds: wp.vec4) -> wp.vec4:
    row = (0.5 * float(views.height) + focal * seen[1] / seen[2]) / float(TILE)
    column = (0.5 * float(views.width) - focal * seen[0] / seen[2]) / float(TILE)
    return _widened(bounds, row, column)


@wp.kernel
def _image_bounds(
    scenes: wp.array(dtype=DeviceScene), mesh_rows: int, box_rows: int, views: Views, bounds: wp.array(dtype=wp.vec4)
):
    """Compute the tile rows and columns that the box of each rectangle covers."""
    view, box = wp.tid()
    scene = scenes[views.layouts[view]]
    if box >= scene.rectangle_count:
        return
    boxes = scene.boxes
    focal = views.focals[view]
    row = view * mesh_rows + boxes.mesh[box]
    origin = views.origins[row]
    turn = views.mesh_R_camera[row]
    found = wp.vec4(_NOTHING)
    behind = wp.int32(0)
    for corner in range(boxes.eight):
        seen = (_corner(boxes, box, corner) - origin) * turn
        if seen[2] < -_NEAR:
            found = _projected(views, focal, seen, found)
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
                    found = _projected(views, focal, one + share * (other - one), found)
    bounds[view * box_rows + box] = found


@wp.kernel
def _light_bounds(scenes: wp.array(dtype=DeviceScene), lights: wp.array(dtype=DeviceLight), steps: Steps):
    """Compute the extent of each box across the light, with the margin of its mesh [m]."""
    step, box = wp.tid()
    boxes = scenes[steps.layouts[step]].boxes
    if box >= boxes.count:
        return
    along = lights[steps.layouts[step]].along
    across = lights[steps.layouts[step]].across
    row = step * steps.mesh_rows + boxes.mesh[box]
    found = wp.vec4(_NOTHING)
    for corner in range(boxes.eight):
        point = steps.world_R_mesh[row] * _corner(boxes, box, corner) + steps.positions[row]
        found = _widened(found, wp.dot(point, along), wp.dot(point, across))
    margin = steps.margins[row]
    steps.bounds[step * steps.box_rows + box] = found + wp.vec4(-margin[0], -margin[1], margin[0], margin[1])


@wp.kernel
def _frame_casters(scenes: wp.array(dtype=DeviceScene), steps: Steps, extents: wp.array(dtype=wp.vec4d)):
    """Place the grid of each step around everything that casts a shadow."""
    step = wp.tid()
    zero = wp.float64(0.0)
    far = wp.float64(1.0e9)
    low = wp.vec2d(far, far)
    high = wp.vec2d(-far, -far)
    for mesh in range(scenes[steps.layouts[step]].mesh_count):
        row = step * steps.mesh_rows + mesh
        if steps.active[row] != wp.uint8(0):
            found = extents[row]
            low = wp.min(low, wp.vec2d(found[0], found[1]))
            high = wp.max(high, wp.vec2d(found[2], found[3]))
    # A step without casters gets some grid of finite size, whose cells stay empty.
    if low[0] > high[0]:
        low = wp.vec2d(zero, zero)
        high = wp.vec2d(wp.float64(1.0), wp.float64(1.0))
    cells = wp.float64(wp.float32(GRID))
    least = wp.float64(1.0e-6)
    steps.grid_corner[step] = wp.vec2(wp.float32(low[0]), wp.float32(low[1]))
    steps.grid_scale[step] = wp.vec2(
        wp.float32(cells / wp.max(high[0] - low[0], least)), wp.float32(cells / wp.max(high[1] - low[1], least))
    )


@wp.kernel
def _grow(
    scenes: wp.array(dtype=DeviceScene),
    steps: Steps,
    moves: wp.array(dtype=wp.uint8),
    grown: wp.array(dtype=wp.vec4),
    limits: wp.array2d(dtype=wp.float32),
):
    """Extend the boxes of moving meshes by two seams, and find the common limits of the boxes of each step."""
    step, box = wp.tid()
    boxes = scenes[steps.layouts[step]].boxes
    if box >= boxes.count:
        return
    if moves[step * steps.mesh_rows + boxes.mesh[box]] == wp.uint8(0):
        return
    # Seams are measured from a point one seam above a surface, and reach one seam from there.
    reach = 2.0 * SEAM
    found = steps.bounds[step * steps.box_rows + box] + wp.vec4(-reach, -reach, reach, reach)
    grown[step * steps.box_rows + box] = found
    for side in range(2):
        wp.atomic_min(limits, step, side, found[side])
        wp.atomic_max(limits, step, side + 2, found[side + 2])


@wp.kernel
def _frame_near(steps: Steps, limits: wp.array2d(dtype=wp.float32)):
    """Place the grid of each step around everything that moves."""
    step = wp.tid()
    cells = float(GRID)
    steps.near_corner[step] = wp.vec2(limits[step, 0], limits[step, 1])
    steps.near_scale[step] = wp.vec2(
        cells / wp.max(limits[step, 2] - limits[step, 0], _SMALLEST),
        cells / wp.max(limits[step, 3] - limits[step, 1], _SMALLEST),
    )


@wp.struct
class CellMarking:
    """Boxes to put into the cells of grids, one grid for each of K steps or views."""

    layouts: wp.array(dtype=wp.int32)
    mesh_rows: wp.int32
    box_rows: wp.int32
    bounds: wp.array(dtype=wp.vec4)
    corners: wp.array(dtype=wp.vec2)
    scales: wp.array(dtype=wp.vec2)
    active: wp.array(dtype=wp.uint8)
    """One byte per mesh: 1 to consider it."""
    rows: wp.int32
    columns: wp.int32
    has_rectangles_only: wp.bool
    is_clipped: wp.bool
    """True to add rectangles only to cells that their shadows touch."""


@wp.kernel
def _mark(
    scenes: wp.array(dtype=DeviceScene),
    lights: wp.array(dtype=DeviceLight),
    steps: Steps,
    marking: CellMarking,
    sets: Sets,
):
    """Add each box's mesh to the sets of the cells that the box covers."""
    step, box = wp.tid()
    layout = marking.layouts[step]
    scene = scenes[layout]
    boxes = scene.boxes
    if box >= wp.where(marking.has_rectangles_only, scene.rectangle_count, boxes.count):
        return
    mesh = step * marking.mesh_rows + boxes.mesh[box]
    if marking.active[mesh] == wp.uint8(0):
        return
    rows = marking.rows
    columns = marking.columns
    is_clipped = marking.is_clipped and boxes.mesh[box] < scene.rectangle_count
    found = marking.bounds[step * marking.box_rows + box]
    corner = marking.corners[step]
    scale = marking.scales[step]
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
    if is_clipped:
        along = lights[layout].along
        across = lights[layout].across
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
            if is_clipped:
                s = shares[0] + float(row) * slopes[0] + float(column) * slopes[1]
                t = shares[1] + float(row) * slopes[2] + float(column) * slopes[3]
                if wp.abs(s - 0.5) > room[0] or wp.abs(t - 0.5) > room[1]:
                    continue
            # Several threads mark the same word on a GPU. In Warp, |= on an array is atomic, and the result does not
            # depend on their order.
            sets.bits[((step * rows + row) * columns + column) * sets.words + word] |= bit


def cover_image(scenes: wp.array, views: Views, *, mesh_rows: int, rectangle_rows: int) -> None:
    """Set the ``tiles`` that rectangles with their front toward the camera cover.

    Args:
        scenes: Scenes by layout.
        views: V views with ``seen``; receives ``tiles``.
        mesh_rows: Rows of a view in the tables of meshes.
        rectangle_rows: Largest number of rectangles of a scene; they have one box each, and come first.
    """
    count, device = len(views.layouts), scenes.device
    marking = CellMarking()
    marking.layouts, marking.mesh_rows, marking.box_rows = views.layouts, mesh_rows, rectangle_rows
    marking.bounds = wp.empty(count * rectangle_rows, dtype=wp.vec4, device=device)
    inputs = [scenes, mesh_rows, rectangle_rows, views, marking.bounds]
    wp.launch(_image_bounds, dim=(count, rectangle_rows), inputs=inputs, device=device)
    marking.corners = wp.zeros(count, dtype=wp.vec2, device=device)
    marking.scales = wp.full(count, wp.vec2(1.0, 1.0), dtype=wp.vec2, device=device)
    marking.active, marking.has_rectangles_only = views.seen, True
    marking.rows, marking.columns = -(-views.height // TILE), -(-views.width // TILE)
    views.tiles = _sets(scenes, marking, boxes=rectangle_rows)


def cover_light(scenes: wp.array, lights: wp.array, steps: Steps, extents: wp.array) -> None:
    """Set the grid across the light, and the sets ``cells`` of the meshes whose shadows touch each of its cells.

    Args:
        scenes: Scenes by layout.
        lights: Light of each.
        steps: K steps with ``active``, ``margins`` and ``shades``; receives ``bounds``, ``grid_corner``,
            ``grid_scale``, ``cells``.
        extents: Extents of the meshes across the light with those margins, as in ``Placed`` [m].
    """
    count, device = len(steps.layouts), scenes.device
    steps.bounds = wp.empty(count * steps.box_rows, dtype=wp.vec4, device=device)
    wp.launch(_light_bounds, dim=(count, steps.box_rows), inputs=[scenes, lights, steps], device=device)
    steps.grid_corner, steps.grid_scale = (wp.empty(count, dtype=wp.vec2, device=device) for _ in range(2))
    wp.launch(_frame_casters, dim=count, inputs=[scenes, steps, extents], device=device)
    marking = _light_marking(steps, steps.bounds, steps.grid_corner, steps.grid_scale)
    marking.active, marking.is_clipped = steps.active, True
    steps.cells = _sets(scenes, marking, boxes=steps.box_rows, lights=lights, steps=steps)


def cover_near(scenes: wp.array, steps: Steps, moves: wp.array) -> None:
    """Set a second grid across the light, whose cells list the moving meshes within two seams.

    Args:
        scenes: Scenes by layout.
        steps: K steps with ``bounds``; receives ``near``, ``near_corner`` and ``near_scale``.
        moves: One byte per mesh: 1 if it moves.
    """
    count, device = len(steps.layouts), scenes.device
    limits = wp.array(np.tile(np.float32((1e9, 1e9, -1e9, -1e9)), (count, 1)), dtype=wp.float32, device=device)
    grown = wp.empty(count * steps.box_rows, dtype=wp.vec4, device=device)
    wp.launch(_grow, dim=(count, steps.box_rows), inputs=[scenes, steps, moves, grown, limits], device=device)
    steps.near_corner, steps.near_scale = (wp.empty(count, dtype=wp.vec2, device=device) for _ in range(2))
    wp.launch(_frame_near, dim=count, inputs=[steps, limits], device=device)
    marking = _light_marking(steps, grown, steps.near_corner, steps.near_scale)
    marking.active = moves
    steps.near = _sets(scenes, marking, boxes=steps.box_rows)


def _light_marking(steps: Steps, bounds: wp.array, corners: wp.array, scales: wp.array) -> CellMarking:
    marking = CellMarking()
    marking.layouts, marking.mesh_rows, marking.box_rows = steps.layouts, steps.mesh_rows, steps.box_rows
    marking.bounds, marking.corners, marking.scales = bounds, corners, scales
    marking.rows = marking.columns = GRID
    return marking


def _sets(
    scenes: wp.array, marking: CellMarking, *, boxes: int, lights: wp.array | None = None, steps: Steps | None = None
) -> Sets:
    count, device = len(marking.layouts), scenes.device
    sets = Sets()
    sets.words = -(-marking.mesh_rows // 32)
    sets.bits = wp.zeros(count * marking.rows * marking.columns * sets.words, dtype=wp.uint32, device=device)
    inputs = [scenes, lights, Steps() if steps is None else steps, marking, sets]
    wp.launch(_mark, dim=(count, boxes), inputs=inputs, device=device)
    return sets


def members(sets: Sets) -> list[list[int]]:
    """Return the meshes of each of the K * rows * columns cells, for inspection."""
    cells = sets.bits.numpy().reshape(-1, sets.words)
    bits = (cells[:, :, None] >> np.arange(32, dtype=np.uint32) & 1).reshape(len(cells), -1)
    return [np.flatnonzero(row).tolist() for row in bits]
