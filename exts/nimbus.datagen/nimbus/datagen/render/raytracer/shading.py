# type: ignore  # Warp's kernel language only looks like Python to a type checker.
"""Shading of a ray's hit: normals, textures and shadows."""

from __future__ import annotations

import warp as wp

from nimbus.datagen.render.raytracer.kernel_data import BASE as _BASE
from nimbus.datagen.render.raytracer.kernel_data import (
    BRIGHTEST,
    GRID,
    LEVELS,
    MAP,
    TONES,
    DeviceLight,
    DeviceScene,
    MaterialRow,
    Steps,
)

wp.set_module_options({"enable_backward": False})

SHADOW_OFFSET = wp.constant(4.0e-4)
"""Distance from the surface at which shadow rays start [m]."""
_FAR = wp.constant(1.0e6)
_LEVEL = wp.constant(3.0e-4)
"""Height above a face up to which a height map's pixel counts as the face itself [m]."""
_MOST_CELLS = wp.constant(16)
"""Largest number of cells of the grid in which casters are searched for a whole row of a tile."""
_ABOVE = wp.constant(4.0e-3)
"""Height above a face from which geometry in a height map counts as a caster [m]."""


@wp.struct
class Hit:
    """Hit of a ray; ``mesh`` is -1 when it leaves the scene."""

    mesh: wp.int32
    face: wp.int32
    """Face of the scene."""
    depth: wp.float32
    u: wp.float32
    v: wp.float32
    normal: wp.vec3
    """Normal of the face, in the world frame."""


@wp.struct
class Received:
    """Linear light on a surface, in shadow and outside it."""

    facing: wp.float32
    shaded: wp.vec3
    lit: wp.vec3


@wp.func
def shading_normal(scene: DeviceScene, steps: Steps, step: int, hit: Hit, ray: wp.vec3) -> wp.vec3:
    """Return the interpolated normal in the world frame, on the side of the ray."""
    flat = hit.normal
    if wp.dot(flat, ray) > 0.0:
        flat = -flat
    normal = flat
    if scene.smooth[hit.mesh] != wp.uint8(0):
        smooth = (
            scene.corner_normals[hit.face * 3] * hit.u
            + scene.corner_normals[hit.face * 3 + 1] * hit.v
            + scene.corner_normals[hit.face * 3 + 2] * (1.0 - hit.u - hit.v)
        )
        turned = wp.normalize(steps.world_R_mesh[step * steps.mesh_rows + hit.mesh] * smooth)
        # An open surface may be seen from its back, to which its corner normals do not point.
        if wp.dot(turned, flat) < 0.0:
            turned = -turned
        # Near a silhouette the interpolated normal may face away from the ray; the flat one never does.
        if wp.dot(turned, ray) <= 0.0 and wp.length_sq(smooth) > 0.0:
            normal = turned
    return normal


@wp.func
def lowest(bits: wp.uint32) -> int:
    """Return the number of the lowest bit that is set."""
    # bits & -bits keeps the lowest bit; minus one, it has a bit for each position below that. Warp has no instruction
    # for this.
    return wp.int32(wp.bit_count((bits & (~bits + wp.uint32(1))) - wp.uint32(1)))


@wp.func
def _casts_on(scene: DeviceScene, steps: Steps, step: int, mesh: int, point: wp.vec3) -> wp.bool:
    row = step * steps.mesh_rows + mesh
    if scene.meshes[mesh] == wp.uint64(0):
        place = wp.vec4(point[0], point[1], point[2], 1.0)
        distance = wp.dot(steps.shades[row * 3], place)
        s = wp.dot(steps.shades[row * 3 + 1], place)
        t = wp.dot(steps.shades[row * 3 + 2], place)
        return wp.min(wp.min(s, t), distance) >= 0.0 and wp.max(s, t) <= 1.0
    # The mesh's acceleration structure is in its own frame, so the ray is transformed instead of the mesh.
    start = (point - steps.positions[row]) * steps.world_R_mesh[row]
    return wp.mesh_query_ray_anyhit(scene.meshes[mesh], start, steps.light_in_mesh[row], _FAR)


@wp.func
def _from_map(
    scene: DeviceScene, steps: Steps, light: DeviceLight, step: int, mesh: int, point: wp.vec3, normal: wp.vec3
) -> int:
    """Test four pixels of a mesh's height map at a point; return 0 if none shades it, 1 if all do, and -1 otherwise.

    A pixel does not shade when nothing in it rises above the plane of the point's face.
    """
    facing = wp.dot(normal, light.towards)
    # At grazing light the plane of the face rises too steeply over a pixel of the map to be compared with it.
    if facing < 0.1:
        return wp.int32(-1)
    corner = steps.map_corner[step * steps.mesh_rows + mesh]
    scale = steps.map_scale[step * steps.mesh_rows + mesh]
    x = (wp.dot(point, light.across) - corner[0]) * scale[0] - 0.5
    y = (wp.dot(point, light.along) - corner[1]) * scale[1] - 0.5
    column = wp.int32(wp.floor(x))
    line = wp.int32(wp.floor(y))
    # The map covers the whole mesh with a margin, so nothing of the mesh is above a point outside it.
    if column < -1 or line < -1 or column >= MAP or line >= MAP:
        return wp.int32(0)
    height = wp.dot(point, light.towards) + _BASE
    # Heights are compared with the plane of the face over each pixel of the map, so that a face does not shade itself.
    rise_x = -wp.dot(normal, light.across) / (facing * scale[0])
    rise_y = -wp.dot(normal, light.along) / (facing * scale[1])
    first = steps.pictures[step * steps.mesh_rows + mesh] * MAP
    lit = wp.int32(0)
    dark = wp.int32(0)
    for pixel in range(4):
        place_x = column + (pixel & 1)
        place_y = line + (pixel >> 1)
        top = wp.float32(0.0)
        if place_x >= 0 and place_y >= 0 and place_x < MAP and place_y < MAP:
            top = wp.cast(steps.heights.tops[(first + place_y) * MAP + place_x], wp.float32)
        plane = height + (float(place_x) - x) * rise_x + (float(place_y) - y) * rise_y
        if top <= plane + _LEVEL:
            lit += 1
        elif top > wp.max(plane, height) + _ABOVE:
            dark += 1
    # The map decides only where all four pixels agree; at the border of a shadow a ray is traced.
    return wp.where(lit == 4, 0, wp.where(dark == 4, 1, -1))


@wp.func
def _blocker(
    scene: DeviceScene,
    steps: Steps,
    light: DeviceLight,
    step: int,
    point: wp.vec3,
    normal: wp.vec3,
    last: int,
    own: int,
) -> int:
    """Return the mesh that casts its shadow on a point, or -1.

    ``last`` is tried first among the candidates, and ``own`` is the rectangle of the point, or -1.
    """
    corner = steps.grid_corner[step]
    scale = steps.grid_scale[step]
    x = wp.int32(wp.floor((wp.dot(point, light.across) - corner[1]) * scale[1]))
    y = wp.int32(wp.floor((wp.dot(point, light.along) - corner[0]) * scale[0]))
    if x < 0 or y < 0 or x >= GRID or y >= GRID:
        return wp.int32(-1)
    cell = ((step * GRID + y) * GRID + x) * steps.cells.words
    height = wp.dot(point, light.towards)
    tried = last
    for word in range(steps.cells.words):
        bits = steps.cells.bits[cell + word]
        while bits != wp.uint32(0):
            # The last caster is tried first, because neighboring points are mostly in the same shadow. The order does
            # not change the image: all casters give the same shadow.
            mesh = tried
            if tried >= 0:
                tried = wp.int32(-1)
            else:
                mesh = word * 32 + lowest(bits)
                bits = bits & (bits - wp.uint32(1))
                if mesh == last:
                    continue
            # A mesh that ends below the point, along the light, cannot shade it.
            if steps.tops[step * steps.mesh_rows + mesh] > height:
                if scene.meshes[mesh] != wp.uint64(0):
                    known = _from_map(scene, steps, light, step, mesh, point, normal)
                    if known == 1:
                        return mesh
                    if known == 0:
                        continue
                if mesh != own and _casts_on(scene, steps, step, mesh, point):
                    return mesh
    return wp.int32(-1)


@wp.func
def can_be_shaded(
    scene: DeviceScene, steps: Steps, step: int, low: wp.vec2, high: wp.vec2, height: float, own: int
) -> wp.bool:
    """Test if something other than ``own`` can cast a shadow within a box across the light.

    ``low`` and ``high`` are its corners, along the columns and along the rows of the grid; nothing in it is lower
    than ``height``.
    """
    corner = steps.grid_corner[step]
    scale = steps.grid_scale[step]
    left = wp.max(wp.int32(wp.floor((low[0] - corner[1]) * scale[1])), 0)
    right = wp.min(wp.int32(wp.floor((high[0] - corner[1]) * scale[1])), GRID - 1)
    top = wp.max(wp.int32(wp.floor((low[1] - corner[0]) * scale[0])), 0)
    bottom = wp.min(wp.int32(wp.floor((high[1] - corner[0]) * scale[0])), GRID - 1)
    if (right - left + 1) * (bottom - top + 1) > _MOST_CELLS:
        return wp.bool(True)
    for word in range(steps.cells.words):
        bits = wp.uint32(0)
        for y in range(top, bottom + 1):
            for x in range(left, right + 1):
                bits = bits | steps.cells.bits[((step * GRID + y) * GRID + x) * steps.cells.words + word]
        while bits != wp.uint32(0):
            mesh = word * 32 + lowest(bits)
            bits = bits & (bits - wp.uint32(1))
            if mesh != own and steps.tops[step * steps.mesh_rows + mesh] > height:
                return wp.bool(True)
    return wp.bool(False)


@wp.func
def _linear(scene: DeviceScene, lane: wp.uint32) -> float:
    return scene.to_linear[wp.int32(lane >> wp.uint32(4))]


@wp.func
def texture_level(look: MaterialRow, footprint: float) -> int:
    """Return the mip level with texels about as large as a pixel; ``footprint`` is its width in texels of level 0."""
    level = wp.int32(0)
    wide = footprint
    while wide > 1.5 and level < LEVELS - 1 and (look.width >> (level + 1)) > 0 and (look.height >> (level + 1)) > 0:
        wide = wide * 0.5
        level = level + 1
    return level


@wp.func
def sample(scene: DeviceScene, look: MaterialRow, uv: wp.vec2, level: int) -> wp.vec3:
    """Return linear RGB, sampled bilinearly from one mip level of a texture.

    Weights are in sixteenths, and two bytes are blended at once in the halves of one integer.
    """
    width = look.width >> level
    height = look.height >> level
    start = scene.level_start[look.texture, level]
    x = (uv[0] - wp.floor(uv[0])) * float(width) - 0.5
    y = (1.0 - (uv[1] - wp.floor(uv[1]))) * float(height) - 0.5
    column = wp.int32(wp.floor(x))
    row = wp.int32(wp.floor(y))
    a = wp.uint32((x - float(column)) * 16.0)
    b = wp.uint32((y - float(row)) * 16.0)
    # Textures repeat: the neighbors of a texel at the border are at the opposite border.
    left = wp.where(column < 0, width - 1, column)
    right = wp.where(column + 1 >= width, 0, column + 1)
    above = start + wp.where(row < 0, height - 1, row) * width
    below = start + wp.where(row + 1 >= height, 0, row + 1) * width
    sixteen = wp.uint32(16)
    outer = wp.uint32(0x00FF00FF)
    middle = wp.uint32(0xFF)
    one = scene.texels[above + left]
    two = scene.texels[above + right]
    three = scene.texels[below + left]
    four = scene.texels[below + right]
    weigh_one = (sixteen - a) * (sixteen - b)
    weigh_two = a * (sixteen - b)
    weigh_three = (sixteen - a) * b
    weigh_four = a * b
    # Weights sum to 256, so that a weighted byte fits into its half of the integer without overflow.
    red_blue = (
        (one & outer) * weigh_one
        + (two & outer) * weigh_two
        + (three & outer) * weigh_three
        + (four & outer) * weigh_four
    )
    eight = wp.uint32(8)
    green = (
        ((one >> eight) & middle) * weigh_one
        + ((two >> eight) & middle) * weigh_two
        + ((three >> eight) & middle) * weigh_three
        + ((four >> eight) & middle) * weigh_four
    )
    return wp.vec3(
        _linear(scene, red_blue & wp.uint32(0xFFFF)), _linear(scene, green), _linear(scene, red_blue >> sixteen)
    )


@wp.func
def surface_light(light: DeviceLight, normal: wp.vec3) -> Received:
    """Return the light on a surface, in shadow and outside it."""
    up = 0.5 * (normal[2] + 1.0)
    received = Received()
    received.facing = wp.dot(normal, light.towards)
    received.shaded = light.sky * up + light.ground * (1.0 - up)
    received.lit = received.shaded + light.color * received.facing
    for lamp in range(light.lamp_count):
        more = light.lamp_colors[lamp] * wp.max(wp.dot(normal, light.lamps_towards[lamp]), 0.0)
        received.shaded += more
        received.lit += more
    return received


@wp.func
def _baked_value(scene: DeviceScene, start: int, steps: int, i: int, j: int) -> wp.vec4:
    # Row r has steps - r + 1 points; the rows before i add up to the first two terms.
    return scene.light_values[scene.grid_samples[start + i * (steps + 1) - (i * (i - 1)) / 2 + j]]


@wp.func
def baked_light(scene: DeviceScene, hit: Hit) -> wp.vec4:
    """Interpolate the light in a face's grid, with the fraction of the key light; -1 for faces without a grid."""
    steps = scene.grid_steps[hit.face]
    if steps == 0:
        return wp.vec4(0.0, 0.0, 0.0, -1.0)
    start = scene.grid_start[hit.face]
    x = wp.clamp(hit.u, 0.0, 1.0) * float(steps)
    y = wp.clamp(hit.v, 0.0, 1.0) * float(steps)
    i = wp.min(wp.int32(x), steps - 1)
    j = wp.min(wp.int32(y), steps - 1 - i)
    a = wp.min(x - float(i), 1.0)
    b = wp.min(y - float(j), 1.0)
    up = _baked_value(scene, start, steps, i + 1, j)
    side = _baked_value(scene, start, steps, i, j + 1)
    # A cell consists of two triangles; at the long side of the face only the first one exists.
    if a + b <= 1.0 or i + j + 2 > steps:
        return _baked_value(scene, start, steps, i, j) * wp.max(1.0 - a - b, 0.0) + up * a + side * b
    return _baked_value(scene, start, steps, i + 1, j + 1) * (a + b - 1.0) + up * (1.0 - b) + side * (1.0 - a)


@wp.func
def footprint(look: MaterialRow, depth: float, ray: wp.vec3, normal: wp.vec3, pixel: float) -> float:
    """Return the width of a pixel on a surface [texels]; ``pixel`` is its width at unit distance."""
    long = wp.length(ray)
    # On a slanted surface a pixel covers an ellipse. Dividing by the square root of the slant gives the geometric mean
    # of its axes; the lower bound keeps surfaces at grazing angles from becoming too blurred.
    slant = wp.max(-wp.dot(normal, ray) / long, 0.2)
    return depth * long * pixel * look.density / wp.sqrt(slant)


@wp.func
def corner_uv(scene: DeviceScene, hit: Hit) -> wp.vec2:
    """Return the texture coordinates of a hit."""
    return (
        scene.corner_uvs[hit.face * 3] * hit.u
        + scene.corner_uvs[hit.face * 3 + 1] * hit.v
        + scene.corner_uvs[hit.face * 3 + 2] * (1.0 - hit.u - hit.v)
    )


@wp.func
def caster(
    scene: DeviceScene,
    steps: Steps,
    light: DeviceLight,
    step: int,
    hit: Hit,
    place: wp.vec3,
    normal: wp.vec3,
    facing: float,
    last: int,
) -> int:
    """Return the mesh that casts its shadow on a point, or -1; ``last`` is the previous caster."""
    if facing <= 0.0 or not light.shadows:
        return wp.int32(-1)
    # A rectangle casts no shadow on itself.
    own = wp.where(scene.meshes[hit.mesh] == wp.uint64(0), hit.mesh, -1)
    return _blocker(scene, steps, light, step, place + normal * SHADOW_OFFSET, hit.normal, last, own)


@wp.func
def byte(scene: DeviceScene, tone: int, value: float) -> wp.uint8:
    """Return the sRGB byte of linear light, by the tone curve that starts at ``tone``."""
    return scene.to_srgb[tone + wp.int32(wp.clamp(value * (float(TONES) / BRIGHTEST), 0.0, float(TONES - 1)))]
