# type: ignore  # Warp's kernel language only looks like Python to a type checker.
"""The ray tracer: one kernel for every device, which writes images in the form in which they are stored.

A ray meets only the meshes whose boxes cover its tile of the image, and a shadow ray only those whose shadows cover
its cell of a grid across the light; both tables are made before the launch (see ``culling``).
"""

from __future__ import annotations

import warp as wp

from nimbus.datagen.render.kernel_data import BRIGHTEST, GRID, LEVELS, TILE, TONES, Images, Light, Scene, Steps, Views

_SHADOW_OFFSET = wp.constant(4.0e-4)
"""[m] Shadow rays start this far off the surface."""
_FAR = wp.constant(1.0e6)


@wp.struct
class Hit:
    """Where a ray ends; ``mesh`` is -1 when it leaves the scene."""

    mesh: wp.int32
    distance: wp.float32
    face: wp.int32
    u: wp.float32
    v: wp.float32
    normal: wp.vec3
    """Of the face, in the world frame."""


@wp.func
def _meet_rectangle(steps: Steps, step: int, mesh: int, origin: wp.vec3, ray: wp.vec3) -> wp.vec3:
    """Distance, and the shares of the two edges; a distance of -1 for a miss."""
    offset = steps.rectangles[step, mesh, 0] - origin
    normal = steps.rectangles[step, mesh, 1]
    distance = wp.dot(offset, normal) / wp.dot(ray, normal)
    across = ray * distance - offset
    s = wp.dot(across, steps.rectangles[step, mesh, 2])
    t = wp.dot(across, steps.rectangles[step, mesh, 3])
    if not (distance > 0.0 and s >= 0.0 and s <= 1.0 and t >= 0.0 and t <= 1.0):
        distance = -1.0
    return wp.vec3(distance, s, t)


@wp.func
def _trace(scene: Scene, steps: Steps, views: Views, step: int, tile: int, origin: wp.vec3, ray: wp.vec3) -> Hit:
    hit = Hit()
    hit.mesh = -1
    hit.distance = _FAR
    for place in range(views.tile_start[tile], views.tile_start[tile + 1]):
        mesh = views.tile_meshes[place]
        if views.nearest[step, mesh] > hit.distance:
            break
        if scene.meshes[mesh] == wp.uint64(0):
            met = _meet_rectangle(steps, step, mesh, origin, ray)
            if met[0] >= 0.0 and met[0] < hit.distance:
                # Its two faces share the diagonal from the first corner.
                first = met[1] >= met[2]
                hit.mesh = mesh
                hit.distance = met[0]
                hit.face = wp.where(first, 0, 1)
                hit.u = wp.where(first, 1.0 - met[1], 1.0 - met[2])
                hit.v = wp.where(first, met[1] - met[2], met[1])
                hit.normal = steps.rectangles[step, mesh, 1]
        else:
            mesh_T_world = steps.mesh_T_world[step, mesh]
            query = wp.mesh_query_ray(
                scene.meshes[mesh],
                wp.transform_point(mesh_T_world, origin),
                wp.transform_vector(mesh_T_world, ray),
                hit.distance,
            )
            if query.result:
                hit.mesh = mesh
                hit.distance = query.t
                hit.face = query.face
                hit.u = query.u
                hit.v = query.v
                hit.normal = query.normal
    if hit.mesh >= 0 and scene.meshes[hit.mesh] != wp.uint64(0):
        world_T_mesh = wp.transform_inverse(steps.mesh_T_world[step, hit.mesh])
        hit.normal = wp.normalize(wp.transform_vector(world_T_mesh, hit.normal))
    return hit


@wp.func
def _in_shadow(scene: Scene, steps: Steps, light: Light, step: int, point: wp.vec3) -> wp.bool:
    corner = steps.grid_corner[step]
    scale = steps.grid_scale[step]
    x = wp.int32(wp.floor((wp.dot(point, light.across) - corner[0]) * scale[0]))
    y = wp.int32(wp.floor((wp.dot(point, light.along) - corner[1]) * scale[1]))
    if x < 0 or y < 0 or x >= GRID or y >= GRID:
        return wp.bool(False)
    cell = (step * GRID + y) * GRID + x
    for place in range(steps.cell_start[cell], steps.cell_start[cell + 1]):
        mesh = steps.cell_meshes[place]
        if scene.meshes[mesh] == wp.uint64(0):
            met = _meet_rectangle(steps, step, mesh, point, light.towards)
            if met[0] >= 0.0:
                return wp.bool(True)
        else:
            mesh_T_world = steps.mesh_T_world[step, mesh]
            start = wp.transform_point(mesh_T_world, point)
            if wp.mesh_query_ray_anyhit(
                scene.meshes[mesh], start, wp.transform_vector(mesh_T_world, light.towards), _FAR
            ):
                return wp.bool(True)
    return wp.bool(False)


@wp.func
def _texel(scene: Scene, start: int, index: int) -> wp.vec3:
    packed = scene.texels[start + index]
    return wp.vec3(
        scene.to_linear[wp.int32(packed & wp.uint32(255))],
        scene.to_linear[wp.int32((packed >> wp.uint32(8)) & wp.uint32(255))],
        scene.to_linear[wp.int32((packed >> wp.uint32(16)) & wp.uint32(255))],
    )


@wp.func
def _sample(scene: Scene, texture: int, uv: wp.vec2, footprint: float) -> wp.vec3:
    """Bilinear, from the size whose texels are about as large as a pixel; linear RGB."""
    size = scene.texture_size[texture]
    level = wp.int32(0)
    wide = footprint
    while wide > 1.5 and level < LEVELS - 1 and (size[0] >> (level + 1)) > 0 and (size[1] >> (level + 1)) > 0:
        wide = wide * 0.5
        level = level + 1
    width = size[0] >> level
    height = size[1] >> level
    start = scene.level_start[texture, level]
    x = (uv[0] - wp.floor(uv[0])) * float(width) - 0.5
    y = (1.0 - (uv[1] - wp.floor(uv[1]))) * float(height) - 0.5
    column = wp.int32(wp.floor(x))
    row = wp.int32(wp.floor(y))
    a = x - float(column)
    b = y - float(row)
    left = wp.where(column < 0, width - 1, column)
    right = wp.where(column + 1 >= width, 0, column + 1)
    above = wp.where(row < 0, height - 1, row) * width
    below = wp.where(row + 1 >= height, 0, row + 1) * width
    upper = _texel(scene, start, above + left) * (1.0 - a) + _texel(scene, start, above + right) * a
    lower = _texel(scene, start, below + left) * (1.0 - a) + _texel(scene, start, below + right) * a
    return upper * (1.0 - b) + lower * b


@wp.func
def _smooth_normal(scene: Scene, steps: Steps, step: int, hit: Hit, ray: wp.vec3) -> wp.vec3:
    """Interpolated normal in the world frame, on the side that the ray comes from."""
    world_T_mesh = wp.transform_inverse(steps.mesh_T_world[step, hit.mesh])
    corner = (scene.face_start[hit.mesh] + hit.face) * 3
    smooth = (
        scene.corner_normals[corner] * hit.u
        + scene.corner_normals[corner + 1] * hit.v
        + scene.corner_normals[corner + 2] * (1.0 - hit.u - hit.v)
    )
    flat = hit.normal
    if wp.dot(flat, ray) > 0.0:
        flat = -flat
    normal = wp.normalize(wp.transform_vector(world_T_mesh, smooth))
    if wp.dot(normal, flat) < 0.0:
        normal = -normal
    if wp.dot(normal, ray) > 0.0 or wp.length_sq(smooth) == 0.0:
        normal = flat
    return normal


@wp.func
def _shade(
    scene: Scene,
    steps: Steps,
    light: Light,
    step: int,
    hit: Hit,
    origin: wp.vec3,
    ray: wp.vec3,
    normal: wp.vec3,
    pixel: float,
) -> wp.vec3:
    """Linear light that comes back along a ray; ``pixel`` is its width at unit distance."""
    face = scene.face_start[hit.mesh] + hit.face
    part = scene.face_part[face]
    corner = face * 3
    uv = (
        scene.corner_uvs[corner] * hit.u
        + scene.corner_uvs[corner + 1] * hit.v
        + scene.corner_uvs[corner + 2] * (1.0 - hit.u - hit.v)
    )
    slant = wp.max(-wp.dot(normal, ray), 0.2)
    footprint = hit.distance * pixel * scene.part_density[part] / wp.sqrt(slant)
    albedo = wp.cw_mul(scene.part_tint[part], _sample(scene, scene.part_texture[part], uv, footprint))
    up = 0.5 * (normal[2] + 1.0)
    received = light.sky * up + light.ground * (1.0 - up)
    facing = wp.dot(normal, light.towards)
    if facing > 0.0:
        lit = wp.bool(True)
        if light.shadows:
            lit = not _in_shadow(scene, steps, light, step, origin + ray * hit.distance + normal * _SHADOW_OFFSET)
        if lit:
            received += light.color * facing
    return wp.cw_mul(albedo, received)


@wp.func
def _byte(scene: Scene, value: float) -> wp.uint8:
    return scene.to_srgb[wp.int32(wp.clamp(value * (float(TONES) / BRIGHTEST), 0.0, float(TONES - 1)))]


@wp.func
def _camera_ray(views: Views, x: float, y: float) -> wp.vec3:
    return wp.normalize(
        wp.vec3((x - 0.5 * float(views.width)) / views.focal, (0.5 * float(views.height) - y) / views.focal, -1.0)
    )


@wp.kernel(enable_backward=False)
def render_views(scene: Scene, light: Light, steps: Steps, views: Views, background: wp.vec3, images: Images):
    """One ray through the middle of each pixel: every image. A thread takes one row of a tile."""
    run = wp.tid()
    tile_columns = (views.width + TILE - 1) // TILE
    tile_rows = (views.height + TILE - 1) // TILE
    column = run % tile_columns
    line = run // tile_columns
    y = line % views.height
    step = line // views.height
    tile = (step * tile_rows + y // TILE) * tile_columns + column
    pose = views.poses[step]
    origin = wp.transform_get_translation(pose)
    for x in range(column * TILE, wp.min(column * TILE + TILE, views.width)):
        index = line * views.width + x
        toward = _camera_ray(views, float(x) + 0.5, float(y) + 0.5)
        ray = wp.transform_vector(pose, toward)
        hit = _trace(scene, steps, views, step, tile, origin, ray)
        color = background
        normal = wp.vec3(0.0)
        depth = wp.float32(0.0)
        instance = wp.uint8(0)
        if hit.mesh >= 0:
            normal = _smooth_normal(scene, steps, step, hit, ray)
            depth = -hit.distance * toward[2]
            instance = scene.part_instance[scene.face_part[scene.face_start[hit.mesh] + hit.face]]
            color = _shade(scene, steps, light, step, hit, origin, ray, normal, 1.0 / views.focal)
        images.depth[index] = depth
        images.instance[index] = instance
        images.semantic[index] = scene.semantics[wp.int32(instance)]
        for channel in range(3):
            images.rgb[index * 3 + channel] = _byte(scene, color[channel])
            images.normals[index * 3 + channel] = wp.int8(wp.round(normal[channel] * 127.0))
