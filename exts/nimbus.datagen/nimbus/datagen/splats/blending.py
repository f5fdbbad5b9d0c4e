# type: ignore  # Warp's kernel language only looks like Python to a type checker.
"""Kernels of the splat rasterizer that blend projected splats, sequentially or by tiles.

A pixel is finished when its transmittance falls below 1e-4. Splats are blended in the order of their mean depths, and
by their index at equal depths, so that the result does not depend on the order of threads.
"""

from __future__ import annotations

import warp as wp

from nimbus.datagen.splats.projection import Projected

wp.config.quiet = True

DONE = wp.constant(1.0e-4)
"""Transmittance below which a pixel is finished."""
OPAQUEST = wp.constant(0.999)
"""Largest opacity of a splat at a pixel."""
TILE = wp.constant(16)
"""Side of a tile [px]."""
HALF = wp.constant(0.5)
"""Transmittance at the depth of a pixel. The mean depth would mix the edge of a thing with what is behind it."""


@wp.struct
class Pixels:
    """Values along the rays of all pixels."""

    through: wp.array(dtype=wp.float32)
    """Transmittance behind the splats blended so far."""
    colors: wp.array(dtype=wp.vec3)
    depths: wp.array(dtype=wp.float32)
    """Depth of the splat behind which less than half of the light is left; 0 if there is none [unit of the cloud]."""


@wp.func
def row_span(conic: wp.vec4, center: wp.vec2, y: int, first: int, last: int):
    """Return the first and last column of a row of pixels that are inside the ellipse; (1, 0) if there are none."""
    dy = float(y) + 0.5 - center[1]
    b = conic[1] * dy
    # On this row the ellipse is a quadratic equation in x; without a real root, the row misses it.
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
            # The opacity is limited below 1, so that the transmittance stays positive.
            alpha = wp.min(color[3] * wp.exp(-0.5 * power), OPAQUEST)
            weight = alpha * through
            pixels.colors[pixel] = pixels.colors[pixel] + weight * rgb
            if through >= HALF and through - weight < HALF:
                pixels.depths[pixel] = depth
            through -= weight
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
    """Blend all splats in one thread, the nearest first; this suits a CPU.

    ``pending`` counts the unfinished pixels of each tile; tiles with 0 are skipped.
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
    """Return True if a row of the tile's pixels is inside the ellipse."""
    first = wp.max(box[0], tile_x * TILE)
    last = wp.min(box[1], tile_x * TILE + TILE - 1)
    for y in range(wp.max(box[2], tile_y * TILE), wp.min(box[3], tile_y * TILE + TILE - 1) + 1):
        span = row_span(conic, center, y, first, last)
        if span[0] <= span[1]:
            return True
    return False


@wp.kernel
def count_tiles(order: wp.array(dtype=wp.int32), splats: Projected, counts: wp.array(dtype=wp.int32)):
    """Count the tiles that each splat touches, in the order of depth."""
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
    """List each splat for each tile that it touches, in the order of depth."""
    place = wp.tid()
    row = order[place]
    box = splats.boxes[row]
    # The inclusive scan reserves a range of slots for each splat, so that no atomic operations are needed.
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
    """Blend the list of each tile with one thread per pixel; this suits a GPU."""
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
            rgb += weight * wp.vec3(color[0], color[1], color[2])
            if through >= HALF and through - weight < HALF:
                depth = splats.depths[row]
            through -= weight
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
    """Convert the sums to bytes, opacity and median depth; the depth is 0 below the smallest opacity."""
    pixel = wp.tid()
    through = pixels.through[pixel]
    color = pixels.colors[pixel] + through * behind
    for channel in range(3):
        rgb[3 * pixel + channel] = wp.uint8(wp.clamp(color[channel], 0.0, 1.0) * 255.0 + 0.5)
    seen = 1.0 - through
    alpha[pixel] = seen
    depth[pixel] = wp.where(seen >= least and seen > 0.0, pixels.depths[pixel], 0.0)
