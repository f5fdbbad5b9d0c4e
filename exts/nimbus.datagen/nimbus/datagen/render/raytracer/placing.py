# type: ignore  # Warp's kernel language only looks like Python to a type checker.
"""Poses of meshes and rectangles, as the light and the cameras see them; computed on the device in double precision.

Every table has the rows of one step or view after the other, with as many rows for each as the largest scene needs.
"""

from __future__ import annotations

import warp as wp

from nimbus.datagen.render.raytracer.kernel_data import BASE, MAP, SEAM, DeviceLight, DeviceScene, Steps, Views

wp.set_module_options({"enable_backward": False})

_WIDER = wp.constant(wp.float64(1.01))
"""Margin around a mesh in its height map [px]; it covers the four pixels around a point, and rounding."""
_ROUNDING = wp.constant(wp.float64(1e-5))
"""Margin above the error of single precision [m]."""
_SEAM = wp.constant(wp.float64(SEAM))
"""``SEAM`` in double precision [m]."""
_ZERO, _ONE, _TWO = wp.constant(wp.float64(0.0)), wp.constant(wp.float64(1.0)), wp.constant(wp.float64(2.0))
_SMALLEST = wp.constant(wp.float64(1e-6))


@wp.struct
class Placed:
    """Meshes of K steps in the world frame."""

    positions: wp.array(dtype=wp.vec3d)
    rotations: wp.array(dtype=wp.mat33d)
    rectangles: wp.array(dtype=wp.vec3d)
    """Four rows per rectangle, as in ``DeviceScene.rectangles``."""
    extents: wp.array(dtype=wp.vec4d)
    """Extent of each mesh across the light with its margin: lower and upper corner, along the rows and the columns
    [m]."""
    moves: wp.array(dtype=wp.uint8)
    """One byte per mesh: 1 if it casts shadows and moves with a body."""


@wp.struct
class Eyes:
    """Cameras of V views."""

    positions: wp.array(dtype=wp.vec3d)
    rotations: wp.array(dtype=wp.mat33d)
    """Orientations in the world frame, OpenGL axes."""
    focals: wp.array(dtype=wp.float64)
    """Focal lengths [px]."""


@wp.func
def _single(value: wp.vec3d) -> wp.vec3:
    return wp.vec3(wp.float32(value[0]), wp.float32(value[1]), wp.float32(value[2]))


@wp.func
def _single_matrix(value: wp.mat33d) -> wp.mat33:
    return wp.matrix_from_rows(_single(value[0]), _single(value[1]), _single(value[2]))


@wp.func
def rotation_matrix(wxyz: wp.vec4d) -> wp.mat33d:
    """Return the matrix of a unit quaternion, with the terms of ``transforms.quat_to_matrix``."""
    w = wxyz[0]
    x = wxyz[1]
    y = wxyz[2]
    z = wxyz[3]
    return wp.mat33d(
        _ONE - _TWO * (y * y + z * z),
        _TWO * (x * y - w * z),
        _TWO * (x * z + w * y),
        _TWO * (x * y + w * z),
        _ONE - _TWO * (x * x + z * z),
        _TWO * (y * z - w * x),
        _TWO * (x * z - w * y),
        _TWO * (y * z + w * x),
        _ONE - _TWO * (x * x + y * y),
    )


@wp.func
def _plane(slope: wp.vec3d, corner: wp.vec3d) -> wp.vec4:
    single = _single(slope)
    return wp.vec4(single[0], single[1], single[2], wp.float32(-wp.dot(slope, corner)))


@wp.func
def _place_rectangle(
    scene: DeviceScene,
    steps: Steps,
    placed: Placed,
    row: int,
    mesh: int,
    at: int,
    position: wp.vec3d,
    rotation: wp.mat33d,
    towards: wp.vec3d,
) -> wp.bool:
    """Write a rectangle and its shadow's planes; return True if the light reaches its front."""
    # Rows 2 and 3 are edges over their squared lengths: a product with them is 0 to 1 inside the rectangle.
    corner = rotation * scene.rectangles[mesh * 4] + position
    normal = rotation * scene.rectangles[mesh * 4 + 1]
    one = rotation * scene.rectangles[mesh * 4 + 2]
    other = rotation * scene.rectangles[mesh * 4 + 3]
    placed.rectangles[at * 4] = corner
    placed.rectangles[at * 4 + 1] = normal
    placed.rectangles[at * 4 + 2] = one
    placed.rectangles[at * 4 + 3] = other
    steps.normals[row] = _single(normal)
    steps.corners[row] = _single(corner)
    steps.edges[row * 2] = _single(one)
    steps.edges[row * 2 + 1] = _single(other)
    facing = wp.dot(normal, towards)
    scaled = wp.vec3d(_ZERO, _ZERO, _ZERO)
    # Light along the plane of a rectangle never meets it.
    if wp.abs(facing) > wp.float64(1e-9):
        scaled = normal / facing
    steps.shades[row * 3] = _plane(-scaled, corner)
    steps.shades[row * 3 + 1] = _plane(one - wp.dot(one, towards) * scaled, corner)
    steps.shades[row * 3 + 2] = _plane(other - wp.dot(other, towards) * scaled, corner)
    return facing > _ZERO


@wp.func
def _place_map(steps: Steps, placed: Placed, row: int, slot: int, turned: wp.mat33d, offset: wp.vec3d, box: wp.mat33d):
    """Place a mesh's height map, scaled to fill its area; ``slot`` is -1 for a rectangle, which has none.

    Rows of ``box`` are center and half extents of the mesh.
    """
    middle = turned * box[0] + offset
    half = box[1]
    # This is the box around the rotated bounding box: absolute values select its furthest corner on each axis.
    reach = wp.vec3d(wp.dot(wp.abs(turned[0]), half), wp.dot(wp.abs(turned[1]), half), wp.dot(wp.abs(turned[2]), half))
    side = wp.float64(wp.float32(MAP))
    scale = wp.vec3d(side / wp.max(_TWO * reach[0], _SMALLEST), side / wp.max(_TWO * reach[1], _SMALLEST), _ONE)
    corner = wp.vec3d(middle[0] - reach[0], middle[1] - reach[1], -wp.float64(BASE))
    margin = wp.vec2d(_ZERO, _ZERO)
    if slot >= 0:
        margin = wp.vec2d(_WIDER / scale[1], _WIDER / scale[0])
    steps.map_corner[row] = wp.vec2(wp.float32(corner[0]), wp.float32(corner[1]))
    steps.map_scale[row] = wp.vec2(wp.float32(scale[0]), wp.float32(scale[1]))
    steps.margins[row] = wp.vec2(wp.float32(margin[0]), wp.float32(margin[1]))
    shift = wp.cw_mul(scale, offset - corner)
    # Maps lie one below the other in a single image, so that one launch draws all of them.
    shift[1] = shift[1] + side * wp.float64(slot)
    steps.heights.offsets[row] = _single(shift)
    steps.heights.matrices[row] = _single_matrix(
        wp.matrix_from_rows(scale[0] * turned[0], scale[1] * turned[1], scale[2] * turned[2])
    )
    low = wp.vec2d(corner[1] - margin[0] - _ROUNDING, corner[0] - margin[1] - _ROUNDING)
    placed.extents[row] = wp.vec4d(
        low[0],
        low[1],
        low[0] + _TWO * (reach[1] + margin[0] + _ROUNDING),
        low[1] + _TWO * (reach[0] + margin[1] + _ROUNDING),
    )


@wp.kernel
def place_meshes(
    scenes: wp.array(dtype=DeviceScene),
    lights: wp.array(dtype=DeviceLight),
    bodies: wp.array2d(dtype=wp.int32),
    body_positions: wp.array2d(dtype=wp.vec3d),
    body_wxyz: wp.array2d(dtype=wp.vec4d),
    steps: Steps,
    placed: Placed,
):
    """Compute everything about a mesh that is independent of cameras.

    ``bodies`` holds the row of each mesh's body in the tables of poses, or -1.
    """
    step, mesh = wp.tid()
    layout = steps.layouts[step]
    scene = scenes[layout]
    if mesh >= scene.mesh_count:
        return
    light = lights[layout]
    row = step * steps.mesh_rows + mesh
    body = bodies[layout, mesh]
    position = wp.vec3d(_ZERO, _ZERO, _ZERO)
    rotation = wp.identity(n=3, dtype=wp.float64)
    if body >= 0:
        position = body_positions[step, body]
        rotation = rotation_matrix(body_wxyz[step, body])
    placed.positions[row] = position
    placed.rotations[row] = rotation
    steps.world_R_mesh[row] = _single_matrix(rotation)
    steps.positions[row] = _single(position)
    towards = light.axes[2]
    local = wp.transpose(rotation) * towards
    steps.light_in_mesh[row] = _single(local)
    middle = scene.middles[mesh]
    half = scene.halves[mesh]
    # The support of the bounding box along the light is an upper bound for all points of the mesh.
    top = wp.dot(local, middle) + wp.dot(wp.abs(local), half) + wp.dot(position, towards)
    steps.tops[row] = wp.float32(top)
    casts = scene.casts[mesh] != wp.uint8(0)
    is_active = casts and light.shadows
    slot = mesh - scene.rectangle_count
    if slot < 0:
        at = step * steps.rectangle_rows + mesh
        # A rectangle casts its shadow from the front only, so that a ray meets one caster of a closed box and not two.
        is_front = _place_rectangle(scene, steps, placed, row, mesh, at, position, rotation, towards)
        is_active = is_active and is_front
    steps.active[row] = wp.where(is_active, wp.uint8(1), wp.uint8(0))
    box = wp.matrix_from_rows(middle, half, half)
    _place_map(steps, placed, row, wp.max(slot, -1), light.axes * rotation, light.axes * position, box)
    if scene.is_baked and casts and light.shadows and body >= 0:
        placed.moves[row] = wp.uint8(1)
        center = rotation * middle + position
        reach = wp.vec3d(
            wp.dot(wp.abs(rotation[0]), half), wp.dot(wp.abs(rotation[1]), half), wp.dot(wp.abs(rotation[2]), half)
        )
        seam = wp.vec3d(_SEAM, _SEAM, _SEAM)
        steps.near_low[row] = _single(center - reach - seam)
        steps.near_high[row] = _single(center + reach + seam)


@wp.func
def _is_elsewhere(placed: Placed, one: int, other: int) -> wp.bool:
    """Compare two rows of poses bit by bit."""
    differs = wp.bool(False)
    for axis in range(3):
        if placed.positions[one][axis] != placed.positions[other][axis]:
            differs = wp.bool(True)
        for column in range(3):
            if placed.rotations[one][axis, column] != placed.rotations[other][axis, column]:
                differs = wp.bool(True)
    return differs


@wp.kernel
def choose_maps(scenes: wp.array(dtype=DeviceScene), steps: Steps, placed: Placed, count: int):
    """Select the height maps to draw; the map of an earlier step is reused while its mesh does not move."""
    # One thread per mesh goes through the steps in order, because a step may use the map of an earlier one.
    mesh = wp.tid()
    last = wp.int32(0)
    for step in range(count):
        layout = steps.layouts[step]
        slot = mesh - scenes[layout].rectangle_count
        if slot >= 0 and mesh < scenes[layout].mesh_count:
            row = step * steps.mesh_rows + mesh
            before = row - steps.mesh_rows
            has_changed = wp.bool(True)
            if step > 0:
                if steps.layouts[step - 1] == layout:
                    has_changed = _is_elsewhere(placed, row, before)
            if has_changed:
                last = step * steps.solid_rows + slot
                steps.heights.shown[row] = steps.active[row]
            steps.pictures[row] = last


@wp.kernel
def place_views(scenes: wp.array(dtype=DeviceScene), steps: Steps, placed: Placed, eyes: Eyes, views: Views):
    """Compute everything about a mesh that depends on the camera."""
    view, mesh = wp.tid()
    scene = scenes[views.layouts[view]]
    if mesh >= scene.mesh_count:
        return
    row = view * steps.mesh_rows + mesh
    at = views.steps[view] * steps.mesh_rows + mesh
    eye = eyes.positions[view]
    turn = eyes.rotations[view]
    focal = eyes.focals[view]
    position = placed.positions[at]
    rotation = placed.rotations[at]
    wide = wp.float64(wp.float32(views.width))
    tall = wp.float64(wp.float32(views.height))
    local = wp.transpose(rotation)
    # The difference is taken in double precision; far from the origin, single precision would lose digits.
    views.origins[row] = _single(local * (eye - position))
    views.mesh_R_camera[row] = _single_matrix(local * turn)
    if mesh >= scene.rectangle_count:
        half = wp.float64(0.5)
        to_pixels = wp.mat33d(focal, _ZERO, -half * wide, _ZERO, -focal, -half * tall, _ZERO, _ZERO, -_ONE)
        back = wp.transpose(turn)
        views.meshes.matrices[row] = _single_matrix(to_pixels * back * rotation)
        views.meshes.offsets[row] = _single(to_pixels * (back * (position - eye)))
        views.meshes.shown[row] = wp.uint8(1)
        return
    first = (views.steps[view] * steps.rectangle_rows + mesh) * 4
    corner = placed.rectangles[first]
    normal = placed.rectangles[first + 1]
    half = wp.float64(0.5)
    camera_R_pixel = wp.mat33d(_ONE, _ZERO, -half * wide, _ZERO, -_ONE, half * tall, _ZERO, _ZERO, -focal)
    to_camera = wp.transpose(turn * (camera_R_pixel / focal))
    offset = corner - eye
    away = wp.dot(normal, offset)
    closeness = wp.vec3d(_ZERO, _ZERO, _ZERO)
    # A camera in the plane of a rectangle sees it edge-on: closeness 0 puts it at infinity.
    if wp.abs(away) > wp.float64(1e-12):
        closeness = (to_camera * normal) / away
    views.planes[row * 3] = _single(closeness)
    for edge in range(2):
        along = placed.rectangles[first + 2 + edge]
        views.planes[row * 3 + 1 + edge] = _single(to_camera * along - wp.dot(along, offset) * closeness)
    if away < _ZERO:
        views.seen[row] = wp.uint8(1)
