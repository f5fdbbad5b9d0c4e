# type: ignore  # Warp's kernel language only looks like Python to a type checker.
"""Kernels of the splat rasterizer: cull, project, list by tiles, blend.

The projection is that of 3D Gaussian splatting (Kerbl et al. 2023; Zwicker et al. 2001): a Gaussian's covariance goes
through the Jacobian of the perspective at its mean, and 0.3 px^2 are added against aliasing. Contributions below an
opacity of 1/255 are not drawn, and a pixel is finished when less than 1e-4 of the light gets through. Splats are
blended in the order of the depths of their means, and of their numbers at equal depths, so that the order of threads
does not matter.
"""

from __future__ import annotations

import warp as wp

wp.config.quiet = True

CHUNK = wp.constant(128)
"""Number of splats culled together."""
BLUR = wp.constant(0.3)
"""Variance added in the image [px^2]."""
FAINTEST = wp.constant(1.0 / 255.0)
"""Smallest opacity that a splat contributes to a pixel."""
DONE = wp.constant(1.0e-4)
"""Transmittance below which a pixel is finished."""
OPAQUEST = wp.constant(0.999)
"""Largest opacity of a splat at a pixel."""
REACH = wp.constant(3.3290429)
"""Distance in standard deviations at which opacity 1 falls to 1/255: sqrt(2 ln 255)."""
TILE = wp.constant(16)
"""Side of a tile [px]."""
NEVER = wp.constant(3.0e38)
"""Depth of splats that are not drawn."""


@wp.struct
class DeviceCloud:
    """Splats in the order of a space-filling curve."""

    count: wp.int32
    positions: wp.array(dtype=wp.vec3)
    diagonals: wp.array(dtype=wp.vec3)
    """xx, yy and zz of the covariances [m^2]"""
    crosses: wp.array(dtype=wp.vec3)
    """xy, xz and yz"""
    colors: wp.array(dtype=wp.vec4)
    """sRGB and opacity."""
    degree: wp.int32
    harmonics: wp.array(dtype=wp.float16)
    """Coefficients splat by splat: first channel, second, third."""
    middles: wp.array(dtype=wp.vec4)
    """Center and radius of a ball around the splats of a chunk [m]."""
    is_antialiased: wp.bool


@wp.struct
class DeviceView:
    """Pinhole camera with OpenCV axes."""

    camera_R_world: wp.mat33
    position: wp.vec3
    focal: wp.vec2
    middle: wp.vec2
    width: wp.int32
    height: wp.int32
    near: wp.float32
    far: wp.float32


@wp.struct
class Projected:
    """Projected splats that a view may show."""

    centers: wp.array(dtype=wp.vec2)
    conics: wp.array(dtype=wp.vec4)
    """xx, xy and yy of the inverse covariance [1/px^2]; and twice the logarithm of the opacity over the faintest"""
    depths: wp.array(dtype=wp.float32)
    colors: wp.array(dtype=wp.vec4)
    boxes: wp.array(dtype=wp.vec4i)
    """First and last column, first and last row of pixels; empty if the first is beyond the last."""


@wp.struct
class Pixels:
    """Sums along the rays."""

    through: wp.array(dtype=wp.float32)
    """Transmittance."""
    colors: wp.array(dtype=wp.vec3)
    depths: wp.array(dtype=wp.float32)
    """Depth times weight [m]"""


@wp.func
def may_show(view: DeviceView, place: wp.vec3, radius: float):
    """Return True if a ball intersects the view frustum."""
    seen = view.camera_R_world * (place - view.position)
    if seen[2] + radius < view.near or seen[2] - radius > view.far:
        return False
    # Distance to each side plane of the frustum, through the camera.
    left = view.middle[0]
    right = float(view.width) - left
    top = view.middle[1]
    bottom = float(view.height) - top
    fx = view.focal[0]
    fy = view.focal[1]
    if -seen[0] * fx - seen[2] * left > radius * wp.sqrt(fx * fx + left * left):
        return False
    if seen[0] * fx - seen[2] * right > radius * wp.sqrt(fx * fx + right * right):
        return False
    if -seen[1] * fy - seen[2] * top > radius * wp.sqrt(fy * fy + top * top):
        return False
    if seen[1] * fy - seen[2] * bottom > radius * wp.sqrt(fy * fy + bottom * bottom):
        return False
    return True


@wp.kernel
def cull_chunks(cloud: DeviceCloud, view: DeviceView, shown: wp.array(dtype=wp.int32)):
    """Flag the chunks with splats that may be visible."""
    chunk = wp.tid()
    ball = cloud.middles[chunk]
    # The blur of the image extends a splat by up to 4 px, which is widest in space at the far side of the ball.
    reach = ball[3] + 4.0 * (wp.length(wp.vec3(ball[0], ball[1], ball[2]) - view.position) + ball[3]) / view.focal[0]
    shown[chunk] = wp.where(may_show(view, wp.vec3(ball[0], ball[1], ball[2]), reach), 1, 0)


@wp.kernel
def cull_splats(
    cloud: DeviceCloud, view: DeviceView, chunks: wp.array(dtype=wp.int32), shown: wp.array(dtype=wp.int32)
):
    """Flag the splats of the given chunks that may be visible."""
    thread = wp.tid()
    splat = chunks[thread // CHUNK] * CHUNK + thread % CHUNK
    flag = wp.int32(0)
    if splat < cloud.count:
        place = cloud.positions[splat]
        spread = cloud.diagonals[splat]
        depth = wp.dot(view.camera_R_world[2], place - view.position)
        if depth > view.near and depth < view.far:
            reach = (
                REACH * wp.sqrt(spread[0] + spread[1] + spread[2])
                + 2.0 * wp.length(place - view.position) / view.focal[0]
            )
            if may_show(view, place, reach):
                flag = 1
    shown[thread] = flag


@wp.kernel
def collect(flags: wp.array(dtype=wp.int32), places: wp.array(dtype=wp.int32), found: wp.array(dtype=wp.int32)):
    """List the flagged entries in order; ``places`` is the inclusive scan of the flags."""
    thread = wp.tid()
    if flags[thread] == 1:
        found[places[thread] - 1] = thread


@wp.func
def harmonic_color(cloud: DeviceCloud, splat: int, towards: wp.vec3):
    """Sum the real spherical harmonics of degree 1 to 3 in a direction of unit length."""
    x = towards[0]
    y = towards[1]
    z = towards[2]
    count = (cloud.degree + 1) * (cloud.degree + 1) - 1
    total = wp.vec3(0.0, 0.0, 0.0)
    for channel in range(3):
        k = (splat * 3 + channel) * count
        sh = cloud.harmonics
        part = 0.4886025119029199 * (-y * float(sh[k]) + z * float(sh[k + 1]) - x * float(sh[k + 2]))
        if cloud.degree > 1:
            part += 1.0925484305920792 * (x * y * float(sh[k + 3]) - y * z * float(sh[k + 4]))
            part += 0.31539156525252005 * (2.0 * z * z - x * x - y * y) * float(sh[k + 5])
            part += -1.0925484305920792 * x * z * float(sh[k + 6])
            part += 0.5462742152960396 * (x * x - y * y) * float(sh[k + 7])
        if cloud.degree > 2:
            part += -0.5900435899266435 * y * (3.0 * x * x - y * y) * float(sh[k + 8])
            part += 2.890611442640554 * x * y * z * float(sh[k + 9])
            part += -0.4570457994644658 * y * (4.0 * z * z - x * x - y * y) * float(sh[k + 10])
            part += 0.3731763325901154 * z * (2.0 * z * z - 3.0 * x * x - 3.0 * y * y) * float(sh[k + 11])
            part += -0.4570457994644658 * x * (4.0 * z * z - x * x - y * y) * float(sh[k + 12])
            part += 1.445305721320277 * z * (x * x - y * y) * float(sh[k + 13])
            part += -0.5900435899266435 * x * (x * x - 3.0 * y * y) * float(sh[k + 14])
        total[channel] = part
    return total


@wp.kernel
def project(
    cloud: DeviceCloud,
    view: DeviceView,
    chunks: wp.array(dtype=wp.int32),
    shown: wp.array(dtype=wp.int32),
    numbers: wp.array(dtype=wp.int32),
    out: Projected,
):
    """Project the flagged splats."""
    row = wp.tid()
    splat = chunks[shown[row] // CHUNK] * CHUNK + shown[row] % CHUNK
    offset = cloud.positions[splat] - view.position
    seen = view.camera_R_world * offset
    depth = seen[2]
    closeness = 1.0 / depth
    color = cloud.colors[splat]
    # The Jacobian is taken within 1.15 times the image, beyond which it grows without limit.
    slope_x = wp.clamp(
        seen[0] * closeness,
        -(view.middle[0] + 0.15 * float(view.width)) / view.focal[0],
        (1.15 * float(view.width) - view.middle[0]) / view.focal[0],
    )
    slope_y = wp.clamp(
        seen[1] * closeness,
        -(view.middle[1] + 0.15 * float(view.height)) / view.focal[1],
        (1.15 * float(view.height) - view.middle[1]) / view.focal[1],
    )
    across = view.focal[0] * closeness * (view.camera_R_world[0] - slope_x * view.camera_R_world[2])
    down = view.focal[1] * closeness * (view.camera_R_world[1] - slope_y * view.camera_R_world[2])
    diagonal = cloud.diagonals[splat]
    cross = cloud.crosses[splat]
    matrix = wp.mat33(diagonal[0], cross[0], cross[1], cross[0], diagonal[1], cross[2], cross[1], cross[2], diagonal[2])
    half = matrix * across
    xx = wp.dot(across, half)
    xy = wp.dot(down, half)
    yy = wp.dot(down, matrix * down)
    # Rounding can make the determinant of a very thin splat negative.
    sharp = wp.max(xx * yy - xy * xy, 0.0)
    xx += BLUR
    yy += BLUR
    area = xx * yy - xy * xy
    opacity = color[3]
    if cloud.is_antialiased:
        # The blur widens a splat; its opacity is reduced so that its total light stays the same.
        opacity *= wp.sqrt(sharp / area)
    numbers[row] = row
    out.depths[row] = NEVER
    out.boxes[row] = wp.vec4i(1, 0, 1, 0)
    if opacity >= FAINTEST:
        level = 2.0 * wp.log(opacity / FAINTEST)
        center = wp.vec2(
            view.focal[0] * seen[0] * closeness + view.middle[0], view.focal[1] * seen[1] * closeness + view.middle[1]
        )
        wide = wp.sqrt(level * xx)
        high = wp.sqrt(level * yy)
        box = wp.vec4i(
            # Limited before the conversion: integers overflow for splats far outside the image.
            wp.max(int(wp.ceil(wp.max(center[0] - wide, -1.0) - 0.5)), 0),
            wp.min(int(wp.floor(wp.min(center[0] + wide, float(view.width)) - 0.5)), view.width - 1),
            wp.max(int(wp.ceil(wp.max(center[1] - high, -1.0) - 0.5)), 0),
            wp.min(int(wp.floor(wp.min(center[1] + high, float(view.height)) - 0.5)), view.height - 1),
        )
        if box[0] <= box[1] and box[2] <= box[3]:
            out.boxes[row] = box
            out.depths[row] = depth
            out.centers[row] = center
            out.conics[row] = wp.vec4(yy / area, -xy / area, xx / area, level)
            rgb = wp.vec3(color[0], color[1], color[2])
            if cloud.degree > 0:
                rgb += harmonic_color(cloud, splat, wp.normalize(offset))
            out.colors[row] = wp.vec4(wp.max(rgb[0], 0.0), wp.max(rgb[1], 0.0), wp.max(rgb[2], 0.0), opacity)


@wp.func
def row_span(conic: wp.vec4, center: wp.vec2, y: int, first: int, last: int):
    """Return the first and last column in which a row of pixels is inside the ellipse; (1, 0) if none is."""
    dy = float(y) + 0.5 - center[1]
    b = conic[1] * dy
    # The ellipse is a quadratic equation in x on this row; without a real root the row misses it.
    root = b * b - conic[0] * (conic[2] * dy * dy - conic[3])
    if root < 0.0:
        return wp.vec2i(1, 0)
    root = wp.sqrt(root)
    x0 = center[0] - 0.5 + (-b - root) / conic[0]
    x1 = center[0] - 0.5 + (-b + root) / conic[0]
    return wp.vec2i(wp.max(first, int(wp.ceil(wp.max(x0, -1.0)))), wp.min(last, int(wp.floor(wp.min(x1, 1.0e6)))))


@wp.func
def blend_span(
    conic: wp.vec4, center: wp.vec2, color: wp.vec4, depth: float, y: int, span: wp.vec2i, start: int, pixels: Pixels
):
    """Blend a splat into a row of pixels, and count the pixels that it finishes."""
    dy = float(y) + 0.5 - center[1]
    finished = wp.int32(0)
    rgb = wp.vec3(color[0], color[1], color[2])
    for x in range(span[0], span[1] + 1):
        pixel = start + x
        through = pixels.through[pixel]
        if through >= DONE:
            dx = float(x) + 0.5 - center[0]
            power = conic[0] * dx * dx + 2.0 * conic[1] * dx * dy + conic[2] * dy * dy
            # Limited below 1, so that the transmittance never becomes exactly zero.
            alpha = wp.min(color[3] * wp.exp(-0.5 * power), OPAQUEST)
            weight = alpha * through
            through -= weight
            pixels.colors[pixel] = pixels.colors[pixel] + weight * rgb
            pixels.depths[pixel] = pixels.depths[pixel] + weight * depth
            pixels.through[pixel] = through
            if through < DONE:
                finished += 1
    return finished


@wp.kernel
def blend_in_order(
    count: int,
    order: wp.array(dtype=wp.int32),
    splats: Projected,
    width: int,
    tiles: int,
    pending: wp.array(dtype=wp.int32),
    pixels: Pixels,
):
    """Blend all splats, nearest first, in one thread, which suits a CPU.

    ``pending`` counts the unfinished pixels of each tile; tiles without any are skipped.
    """
    for place in range(count):
        row = order[place]
        box = splats.boxes[row]
        for tile_y in range(box[2] // TILE, box[3] // TILE + 1):
            for tile_x in range(box[0] // TILE, box[1] // TILE + 1):
                tile = tile_y * tiles + tile_x
                if pending[tile] > 0:
                    finished = wp.int32(0)
                    first = wp.max(box[0], tile_x * TILE)
                    last = wp.min(box[1], tile_x * TILE + TILE - 1)
                    conic = splats.conics[row]
                    center = splats.centers[row]
                    color = splats.colors[row]
                    depth = splats.depths[row]
                    for y in range(wp.max(box[2], tile_y * TILE), wp.min(box[3], tile_y * TILE + TILE - 1) + 1):
                        span = row_span(conic, center, y, first, last)
                        finished += blend_span(conic, center, color, depth, y, span, y * width, pixels)
                    pending[tile] = pending[tile] - finished


@wp.func
def touches(conic: wp.vec4, center: wp.vec2, box: wp.vec4i, tile_x: int, tile_y: int):
    """Return True if some row of the tile is inside the ellipse."""
    first = wp.max(box[0], tile_x * TILE)
    last = wp.min(box[1], tile_x * TILE + TILE - 1)
    for y in range(wp.max(box[2], tile_y * TILE), wp.min(box[3], tile_y * TILE + TILE - 1) + 1):
        span = row_span(conic, center, y, first, last)
        if span[0] <= span[1]:
            return True
    return False


@wp.kernel
def count_tiles(order: wp.array(dtype=wp.int32), splats: Projected, counts: wp.array(dtype=wp.int32)):
    """Count the tiles of each splat, in the order of depth."""
    place = wp.tid()
    row = order[place]
    box = splats.boxes[row]
    found = wp.int32(0)
    for tile_y in range(box[2] // TILE, box[3] // TILE + 1):
        for tile_x in range(box[0] // TILE, box[1] // TILE + 1):
            if touches(splats.conics[row], splats.centers[row], box, tile_x, tile_y):
                found += 1
    counts[place] = found


@wp.kernel
def emit_tiles(
    order: wp.array(dtype=wp.int32),
    splats: Projected,
    tiles: int,
    ends: wp.array(dtype=wp.int32),
    counts: wp.array(dtype=wp.int32),
    keys: wp.array(dtype=wp.int32),
    rows: wp.array(dtype=wp.int32),
):
    """List each splat for each of its tiles, in the order of depth."""
    place = wp.tid()
    row = order[place]
    box = splats.boxes[row]
    # The inclusive scan gives each splat a range of slots of its own, so that no atomics are needed.
    slot = ends[place] - counts[place]
    for tile_y in range(box[2] // TILE, box[3] // TILE + 1):
        for tile_x in range(box[0] // TILE, box[1] // TILE + 1):
            if touches(splats.conics[row], splats.centers[row], box, tile_x, tile_y):
                keys[slot] = tile_y * tiles + tile_x
                rows[slot] = row
                slot += 1


@wp.kernel
def find_ranges(keys: wp.array(dtype=wp.int32), count: int, starts: wp.array(dtype=wp.int32)):
    """Find the start of each tile's list by bisection; the last entry is the end of all lists."""
    tile = wp.tid()
    low = wp.int32(0)
    high = wp.int32(count)
    while low < high:
        half = (low + high) // 2
        if keys[half] < tile:
            low = half + 1
        else:
            high = half
    starts[tile] = low


@wp.kernel
def blend_tiles(
    starts: wp.array(dtype=wp.int32),
    rows: wp.array(dtype=wp.int32),
    splats: Projected,
    width: int,
    height: int,
    tiles: int,
    pixels: Pixels,
):
    """Blend the lists of the tiles with one thread per pixel, which suits a GPU."""
    x, y = wp.tid()
    if x >= width or y >= height:
        return
    tile = (y // TILE) * tiles + x // TILE
    pixel = y * width + x
    through = wp.float32(1.0)
    rgb = wp.vec3(0.0, 0.0, 0.0)
    depth = wp.float32(0.0)
    for slot in range(starts[tile], starts[tile + 1]):
        if through < DONE:
            break
        row = rows[slot]
        conic = splats.conics[row]
        center = splats.centers[row]
        dx = float(x) + 0.5 - center[0]
        dy = float(y) + 0.5 - center[1]
        power = conic[0] * dx * dx + 2.0 * conic[1] * dx * dy + conic[2] * dy * dy
        if power <= conic[3]:
            color = splats.colors[row]
            alpha = wp.min(color[3] * wp.exp(-0.5 * power), OPAQUEST)
            weight = alpha * through
            through -= weight
            rgb += weight * wp.vec3(color[0], color[1], color[2])
            depth += weight * splats.depths[row]
    pixels.through[pixel] = through
    pixels.colors[pixel] = rgb
    pixels.depths[pixel] = depth


@wp.kernel
def finish(
    pixels: Pixels,
    behind: wp.vec3,
    least: float,
    rgb: wp.array(dtype=wp.uint8),
    alpha: wp.array(dtype=wp.float32),
    depth: wp.array(dtype=wp.float32),
):
    """Convert the sums to bytes, opacity and expected depth; 0 below the smallest opacity."""
    pixel = wp.tid()
    through = pixels.through[pixel]
    color = pixels.colors[pixel] + through * behind
    for channel in range(3):
        rgb[3 * pixel + channel] = wp.uint8(wp.clamp(color[channel], 0.0, 1.0) * 255.0 + 0.5)
    seen = 1.0 - through
    alpha[pixel] = seen
    depth[pixel] = wp.where(seen >= least and seen > 0.0, pixels.depths[pixel] / seen, 0.0)
