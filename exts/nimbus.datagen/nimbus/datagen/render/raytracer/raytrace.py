# type: ignore  # Warp's kernel language only looks like Python to a type checker.
"""Ray tracer: one kernel for every device, which writes images in their stored form.

Meshes are rasterized beforehand (see ``raster``). Rectangles are tested in the tiles that they cover, and a shadow ray
meets only the meshes in its cell of a grid across the light (see ``culling``). Camera rays have length one along the
optical axis, so that distances along them are depths. The terms of a ray-rectangle test are linear in the image
position. A thread therefore tests all pixels of one row of a tile against a rectangle at once.
"""

from __future__ import annotations

import warp as wp

from nimbus.datagen.render.raytracer.kernel_data import (
    TILE,
    DeviceLight,
    DeviceScene,
    Images,
    MaterialRow,
    Steps,
    Views,
)
from nimbus.datagen.render.raytracer.raster import corner_shares, face_number, nearness
from nimbus.datagen.render.raytracer.seams import open_share
from nimbus.datagen.render.raytracer.shading import (
    SHADOW_OFFSET,
    Hit,
    Received,
    baked_light,
    byte,
    can_be_shaded,
    caster,
    corner_uv,
    footprint,
    lowest,
    sample,
    shading_normal,
    surface_light,
    texture_level,
)

wp.set_module_options({"enable_backward": False})

Row = wp.types.vector(length=8, dtype=wp.float32)
"""A value for each pixel of one row of a tile."""
Numbers = wp.types.vector(length=8, dtype=wp.int32)
_ROUNDING = wp.constant(1.0e-5)
"""Margin above the error of single precision [m]."""


@wp.func
def _over_row(plane: wp.vec3, x: float, y: float, places: Row) -> Row:
    return Row(plane[0] * x + plane[1] * y + plane[2]) + places * plane[0]


@wp.func
def _mesh_hit(scene: DeviceScene, steps: Steps, views: Views, view: int, key: wp.uint64, x: float, y: float) -> Hit:
    """Return the hit of a pixel on a face of a mesh."""
    face = face_number(key)
    hit = Hit()
    hit.mesh = scene.vertex_mesh[scene.corners[face * 3]]
    hit.face = face + 2 * scene.rectangle_count
    hit.depth = 1.0 / nearness(key)
    shares = corner_shares(scene, views.meshes, view, view * steps.mesh_rows + hit.mesh, face, x, y)
    hit.u = shares[0]
    hit.v = shares[1]
    hit.normal = steps.world_R_mesh[views.steps[view] * steps.mesh_rows + hit.mesh] * scene.face_normals[face]
    return hit


@wp.func
def _rectangle_hit(scene: DeviceScene, steps: Steps, views: Views, view: int, mesh: int, x: float, y: float) -> Hit:
    """Return the hit of a pixel on a rectangle, whose two faces share the diagonal from the first corner."""
    row = view * steps.mesh_rows + mesh
    pixel = wp.vec3(x, y, 1.0)
    hit = Hit()
    hit.mesh = mesh
    hit.depth = 1.0 / wp.dot(views.planes[row * 3], pixel)
    s = wp.dot(views.planes[row * 3 + 1], pixel) * hit.depth
    t = wp.dot(views.planes[row * 3 + 2], pixel) * hit.depth
    # With s and t along the edges, the barycentric coordinates are (1 - s, s - t, t) in the face below the diagonal and
    # (1 - t, s, t - s) in the one above it.
    first = s >= t
    hit.face = scene.face_start[mesh] + wp.where(first, 0, 1)
    hit.u = wp.where(first, 1.0 - s, 1.0 - t)
    hit.v = wp.where(first, s - t, s)
    hit.normal = steps.normals[views.steps[view] * steps.mesh_rows + mesh]
    return hit


@wp.struct
class FlatRow:
    """Values for a row of a tile that shows a single rectangle behind the meshes."""

    is_one: wp.bool
    depth: Row
    u: Row
    v: Row
    """Texture coordinates."""
    level: wp.int32
    """Mip level of the texture."""
    can_be_shaded: wp.bool


@wp.func
def _flat_row(
    scene: DeviceScene,
    light: DeviceLight,
    steps: Steps,
    views: Views,
    view: int,
    flat: Numbers,
    closeness: Row,
    x: float,
    y: float,
    places: Row,
) -> FlatRow:
    """Compute the shared values of a row's pixels; (x, y) is the center of its first pixel [px]."""
    found = FlatRow()
    mesh = flat[0]
    if mesh < 0 or wp.min(flat) != wp.max(flat):
        return found
    if scene.is_even[mesh] == wp.uint8(0):
        return found
    found.is_one = wp.bool(True)
    row = view * steps.mesh_rows + mesh
    step = views.steps[view]
    focal = views.focals[view]
    for pixel in range(8):
        found.depth[pixel] = 1.0 / closeness[pixel]
    s = wp.cw_mul(_over_row(views.planes[row * 3 + 1], x, y, places), found.depth)
    t = wp.cw_mul(_over_row(views.planes[row * 3 + 2], x, y, places), found.depth)
    start = scene.rectangle_uvs[mesh * 3]
    one = scene.rectangle_uvs[mesh * 3 + 1]
    other = scene.rectangle_uvs[mesh * 3 + 2]
    found.u = Row(start[0]) + s * one[0] + t * other[0]
    found.v = Row(start[1]) + s * one[1] + t * other[1]
    turn = views.world_R_camera[view]
    step_x = wp.vec3(turn[0, 0], turn[1, 0], turn[2, 0]) / focal
    ray = turn * wp.vec3((x - 0.5 * float(views.width)) / focal, (0.5 * float(views.height) - y) / focal, -1.0)
    normal = steps.normals[step * steps.mesh_rows + mesh]
    # One normal and one mip level serve the whole row: those of its middle, between pixels 3 and 4.
    middle = ray + 3.5 * step_x
    if wp.dot(normal, middle) > 0.0:
        normal = -normal
    look = scene.looks[scene.face_part[scene.face_start[mesh]]]
    depth = 0.5 * (found.depth[3] + found.depth[4])
    found.level = texture_level(look, footprint(look, depth, middle, normal, 1.0 / focal))
    # Most rows lie far from any shadow: one search for the row saves eight shadow rays.
    if light.shadows and wp.dot(normal, light.towards) > 0.0:
        origin = views.positions[view] + normal * SHADOW_OFFSET
        across = _along_row(light.across, origin, ray, step_x, found.depth, places)
        along = _along_row(light.along, origin, ray, step_x, found.depth, places)
        height = _along_row(light.towards, origin, ray, step_x, found.depth, places)
        room = wp.vec2(_ROUNDING, _ROUNDING)
        low = wp.vec2(wp.min(across), wp.min(along)) - room
        high = wp.vec2(wp.max(across), wp.max(along)) + room
        found.can_be_shaded = can_be_shaded(scene, steps, step, low, high, wp.min(height) - _ROUNDING, mesh)
    return found


@wp.func
def _along_row(axis: wp.vec3, origin: wp.vec3, ray: wp.vec3, step_x: wp.vec3, depth: Row, places: Row) -> Row:
    """Return the coordinates of a row's visible points along an axis [m]."""
    return Row(wp.dot(axis, origin)) + wp.cw_mul(Row(wp.dot(axis, ray)) + places * wp.dot(axis, step_x), depth)


@wp.kernel
def render_views(
    scenes: wp.array(dtype=DeviceScene),
    lights: wp.array(dtype=DeviceLight),
    steps: Steps,
    views: Views,
    background: wp.vec3,
    images: Images,
    begin: int,
):
    """Trace one ray through the center of each pixel; a thread handles one row of a tile, starting at ``begin``."""
    run = begin + wp.tid()
    tile_columns = (views.width + TILE - 1) // TILE
    tile_rows = (views.height + TILE - 1) // TILE
    column = run % tile_columns
    line = run // tile_columns
    view = line // views.height
    tile = (view * tile_rows + (line % views.height) // TILE) * tile_columns + column
    if views.is_still:
        # A tile that is unchanged since the previous step was copied, see ``still``.
        if views.stale[tile - view * tile_rows * tile_columns] == wp.uint8(0):
            return
    step = views.steps[view]
    scene = scenes[views.layouts[view]]
    light = lights[views.layouts[view]]
    focal = views.focals[view]
    reach = wp.vec4(1.0e9, 1.0e9, -1.0e9, -1.0e9)
    y = float(line % views.height) + 0.5
    first = float(column * TILE) + 0.5
    places = Row(0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0)
    closeness = Row(0.0)
    flat = Numbers(-1)
    for word in range(views.tiles.words):
        bits = views.tiles.bits[tile * views.tiles.words + word]
        while bits != wp.uint32(0):
            rectangle = word * 32 + lowest(bits)
            bits = bits & (bits - wp.uint32(1))
            row = (view * steps.mesh_rows + rectangle) * 3
            close = _over_row(views.planes[row], first, y, places)
            s = _over_row(views.planes[row + 1], first, y, places)
            t = _over_row(views.planes[row + 2], first, y, places)
            # s, t and close are all divided by the depth, so the test is s <= close instead of s <= 1. Of equally near
            # rectangles the one with the higher number is kept.
            inside = wp.min(wp.min(wp.min(s, t), wp.min(close - s, close - t)), close - closeness)
            if wp.max(inside) >= 0.0:
                for pixel in range(8):
                    if inside[pixel] >= 0.0 and close[pixel] > 0.0:
                        closeness[pixel] = close[pixel]
                        flat[pixel] = rectangle
    origin = views.positions[view]
    world_R_camera = views.world_R_camera[view]
    blocker = wp.int32(-1)
    held = wp.int32(-1)
    look = MaterialRow()
    normal = wp.vec3(0.0)
    received = Received()
    wide = _flat_row(scene, light, steps, views, view, flat, closeness, first, y, places)
    for pixel in range(wp.min(views.width - column * TILE, TILE)):
        x = first + float(pixel)
        index = line * views.width + column * TILE + pixel
        toward = wp.vec3((x - 0.5 * float(views.width)) / focal, (0.5 * float(views.height) - y) / focal, -1.0)
        hit = Hit()
        hit.mesh = -1
        is_wide = wp.bool(False)
        key = views.meshes.nearest[index]
        # Nearness of meshes and of rectangles compares directly; a rectangle wins where both are equal.
        if nearness(key) > closeness[pixel]:
            hit = _mesh_hit(scene, steps, views, view, key, x, y)
        elif wide.is_one and not scene.is_baked:
            is_wide = wp.bool(True)
            hit.mesh = flat[pixel]
            hit.depth = wide.depth[pixel]
            hit.face = scene.face_start[hit.mesh]
            hit.normal = steps.normals[step * steps.mesh_rows + hit.mesh]
        elif flat[pixel] >= 0:
            hit = _rectangle_hit(scene, steps, views, view, flat[pixel], x, y)
        color = background
        depth = wp.float32(0.0)
        instance = wp.int32(0)
        if hit.mesh >= 0:
            ray = world_R_camera * toward
            # All pixels of a flat face share normal, material and light; a smooth face has another normal in each
            # pixel.
            if hit.face != held:
                look = scene.looks[scene.face_part[hit.face]]
                normal = shading_normal(scene, steps, step, hit, ray)
                received = surface_light(light, normal)
                held = wp.where(scene.smooth[hit.mesh] == wp.uint8(0), hit.face, -1)
            depth = hit.depth
            instance = look.instance
            point = origin + ray * depth
            facing = received.facing
            shaded = received.shaded
            lit = received.lit
            if scene.is_baked:
                kept = baked_light(scene, hit)
                if kept[3] >= 0.0:
                    # Below about 1/255 the key light is too weak for a visible shadow, and none is searched.
                    facing = wp.where(kept[3] > 0.004, facing, 0.0)
                    lit = wp.vec3(kept[0], kept[1], kept[2])
                    # Baked light includes the key light, whose fraction is subtracted in the shadow of a moving body.
                    shaded = wp.where(facing > 0.0, wp.max(lit - scene.key * kept[3], wp.vec3(0.0)), lit)
            # The seam darkens ambient light only: the same amount is missing in shadow and outside it.
            if scene.is_baked:
                missing = shaded * (1.0 - open_share(scene, steps, light, step, instance, point, hit.normal))
                shaded -= missing
                lit -= missing
            found = wp.int32(-1)
            if not is_wide or wide.can_be_shaded:
                found = caster(scene, steps, light, step, hit, point, normal, facing, blocker)
            light_on = shaded
            if found >= 0:
                blocker = found
            elif facing > 0.0:
                light_on = lit
            if look.density < 0.0:
                color = wp.cw_mul(scene.face_paint[hit.face], light_on)
            else:
                level = wide.level
                uv = wp.vec2(wide.u[pixel], wide.v[pixel])
                if not is_wide:
                    level = texture_level(look, footprint(look, depth, ray, normal, 1.0 / focal))
                    uv = corner_uv(scene, hit)
                color = wp.cw_mul(wp.cw_mul(look.tint, sample(scene, look, uv, level)), light_on)
            if views.is_still:
                across = wp.dot(point, light.across)
                along = wp.dot(point, light.along)
                reach = wp.vec4(
                    wp.min(reach[0], along), wp.min(reach[1], across), wp.max(reach[2], along), wp.max(reach[3], across)
                )
        else:
            held = wp.int32(-1)
            normal = wp.vec3(0.0)
        images.depth[index] = depth
        images.instance[index] = wp.uint8(instance)
        images.semantic[index] = scene.semantics[instance]
        for channel in range(3):
            images.rgb[index * 3 + channel] = byte(scene, views.tones[view], color[channel])
        if images.with_meshes:
            images.mesh[index] = hit.mesh
        if images.with_normals:
            for channel in range(3):
                images.normals[index * 3 + channel] = wp.int8(wp.round(normal[channel] * 127.0))
    if views.is_still:
        views.reach[(line % views.height) * tile_columns + column] = reach
