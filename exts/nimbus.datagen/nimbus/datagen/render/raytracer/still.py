# type: ignore  # Warp's kernel language only looks like Python to a type checker.
"""Reuse of pixels: search for the tiles of a static camera that show the same as in the previous step.

A tile is kept when none of its inputs has changed: the meshes drawn there, the rectangles that it may show, and the
casters of shadows on its visible points. Pixels are therefore bit-identical with and without reuse, and independent of
earlier renderings.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from nimbus.datagen.render.raytracer.kernel_data import GRID, SEAM, TILE, DeviceScene, Steps, Views
from nimbus.datagen.render.raytracer.raster import face_number
from nimbus.datagen.render.raytracer.scene_table import PlacedSteps

wp.set_module_options({"enable_backward": False})

_ROUNDING = 1.0e-3
"""Margin [m]; it is larger than the offset of shadow rays and the error of single precision."""
_WORDS = wp.constant(GRID // 32)
"""Words per row of the grid across the light, one bit per cell."""


@wp.struct
class Changes:
    """Differences of K steps from the steps before them, with a grid across the light of the shadows that changed."""

    step_before: wp.int32
    """Number of the step before the first one, in the previously rendered stack."""
    margin: wp.float32
    """Distance around a moved mesh within which light has changed [m]."""
    words: wp.int32
    moved: wp.array(dtype=wp.uint32)
    """Bits of the G meshes that moved, in a few words for each step."""
    shades: wp.array2d(dtype=wp.uint8)
    """(K, G) meshes whose shadow may have changed."""
    corners: wp.array(dtype=wp.vec2)
    scales: wp.array(dtype=wp.vec2)
    cells: wp.array2d(dtype=wp.uint32)
    """Bits of the cells covered by those shadows, at the step or before it."""


@wp.func
def _has_moved(changes: Changes, step: int, mesh: int) -> wp.bool:
    bits = changes.moved[step * changes.words + (mesh >> 5)]
    return (bits >> wp.uint32(mesh & 31)) & wp.uint32(1) != wp.uint32(0)


@wp.kernel
def _mark_shadows(scenes: wp.array(dtype=DeviceScene), steps: Steps, before: Steps, changes: Changes):
    """Mark the cells that the boxes of changed shadows cover."""
    step, box, which = wp.tid()
    boxes = scenes[0].boxes
    mesh = boxes.mesh[box]
    if changes.shades[step, mesh] == wp.uint8(0):
        return
    found = steps.bounds[step * steps.box_rows + box]
    # A shadow changes both the cells that it covers now and those that it covered a step before.
    if which == 1:
        if step == 0:
            found = before.bounds[changes.step_before * steps.box_rows + box]
        else:
            found = steps.bounds[(step - 1) * steps.box_rows + box]
    corner = changes.corners[step]
    scale = changes.scales[step]
    limit = float(GRID - 1)
    low_x = wp.int32(wp.clamp((found[0] - changes.margin - corner[0]) * scale[0], 0.0, limit))
    low_y = wp.int32(wp.clamp((found[1] - changes.margin - corner[1]) * scale[1], 0.0, limit))
    high_x = wp.int32(wp.clamp((found[2] + changes.margin - corner[0]) * scale[0], 0.0, limit))
    high_y = wp.int32(wp.clamp((found[3] + changes.margin - corner[1]) * scale[1], 0.0, limit))
    for word in range(low_y >> 5, (high_y >> 5) + 1):
        bits = _range_bits(low_y, high_y, word)
        for row in range(low_x, high_x + 1):
            # Boxes overlap, and their threads set bits of the same word.
            wp.atomic_or(changes.cells, step, row * _WORDS + word, bits)


@wp.func
def _range_bits(low: int, high: int, word: int) -> wp.uint32:
    """Return the bits from ``low`` to ``high`` that are in a word."""
    every = ~wp.uint32(0)
    first = wp.uint32(wp.max(low - word * 32, 0))
    last = wp.uint32(wp.min(high - word * 32, 31))
    return (every << first) & (every >> (wp.uint32(31) - last))


@wp.kernel
def _choose_tiles(
    scenes: wp.array(dtype=DeviceScene), views: Views, before: Views, changes: Changes, step: int, step_before: int
):
    """Mark the tiles of a step that have to be rendered."""
    tile = wp.tid()
    scene = scenes[0]
    columns = (views.width + TILE - 1) // TILE
    rows = (views.height + TILE - 1) // TILE
    left = (tile % columns) * TILE
    top = (tile // columns) * TILE
    views.stale[tile] = wp.uint8(1)
    for word in range(views.tiles.words):
        now = views.tiles.bits[(step * rows * columns + tile) * views.tiles.words + word]
        then = before.tiles.bits[(step_before * rows * columns + tile) * views.tiles.words + word]
        # Sets of both steps are needed, because a rectangle may have moved into, out of or within the tile.
        if ((now | then) & changes.moved[step * changes.words + word]) != wp.uint32(0):
            return
    last = wp.int32(-1)
    low = wp.vec2(1.0e9, 1.0e9)
    high = wp.vec2(-1.0e9, -1.0e9)
    for y in range(top, wp.min(top + TILE, views.height)):
        start = (step * views.height + y) * views.width
        start_before = (step_before * views.height + y) * views.width
        for x in range(left, wp.min(left + TILE, views.width)):
            key = views.meshes.nearest[start + x]
            # The key contains nearness and face: where it differs, the pixel shows something else.
            if key != before.meshes.nearest[start_before + x]:
                return
            face = face_number(key)
            if face != last and face >= 0:
                # The same face at the same depth may still have moved, within its plane or by turning.
                if _has_moved(changes, step, scene.vertex_mesh[scene.corners[face * 3]]):
                    return
                last = face
        # The bounds are those of the points that the tile showed when it was last rendered. They still hold, because
        # nothing that is visible in it has moved since.
        reach = views.reach[y * columns + tile % columns]
        low = wp.min(low, wp.vec2(reach[0], reach[1]))
        high = wp.max(high, wp.vec2(reach[2], reach[3]))
    limit = float(GRID)
    corner = changes.corners[step]
    scale = changes.scales[step]
    low_x = wp.max((low[0] - corner[0]) * scale[0], 0.0)
    low_y = wp.max((low[1] - corner[1]) * scale[1], 0.0)
    high_x = wp.min((high[0] - corner[0]) * scale[0], limit - 1.0)
    high_y = wp.min((high[1] - corner[1]) * scale[1], limit - 1.0)
    if low_x <= high_x and low_y <= high_y:
        for word in range(wp.int32(low_y) >> 5, (wp.int32(high_y) >> 5) + 1):
            bits = _range_bits(wp.int32(low_y), wp.int32(high_y), word)
            for row in range(wp.int32(low_x), wp.int32(high_x) + 1):
                if (changes.cells[step, row * _WORDS + word] & bits) != wp.uint32(0):
                    return
    views.stale[tile] = wp.uint8(0)


@dataclass(frozen=True, kw_only=True)
class Shown:
    """Stack of K steps of one layout as shown by a camera."""

    placed: PlacedSteps
    view: Any


def find_changes(scenes: wp.array, now: Shown, before: Shown | None, *, is_baked: bool) -> Any:
    """Return the changes of each of K steps from its predecessor.

    Args:
        scenes: The scene of all steps, on the device.
        now: The steps.
        before: Stack rendered previously by the same camera; None for none.
        is_baked: True for a scene with seams.
    """
    device = scenes.device
    # Without an earlier stack the first step is compared with the last one of this stack: choose_tiles renders all of
    # its tiles in any case.
    before = before or now
    shown, shown_before = now.placed, before.placed
    last = len(shown_before) - 1

    def earlier(name: str) -> NDArray[Any]:
        return np.concatenate([getattr(shown_before, name)[last:], getattr(shown, name)[:-1]])

    moved = np.any(shown.poses != earlier("poses"), axis=-1)
    casts = shown.casts | earlier("casts")
    # A mesh that moved neither in this step nor in the one before cannot change its shadow, because the light is
    # constant in an episode.
    shades = moved & casts
    # With baked light a moving body also darkens its surroundings, within two seams.
    margin = _ROUNDING + (2 * SEAM if is_baked else 0.0)
    extents = np.stack([shown.extents, earlier("extents")])
    low = np.where(shades[..., None], extents[:, :, :, 0], 1e6).min(axis=(0, 2)) - 2 * margin
    high = np.where(shades[..., None], extents[:, :, :, 1], -1e6).max(axis=(0, 2)) + 2 * margin
    changes = Changes()
    changes.margin = margin
    changes.step_before, changes.words = last, -(-moved.shape[1] // 32)
    # Flags are packed into 32-bit words, in the layout of the kernel's sets.
    bits = np.zeros((len(moved), changes.words * 32), dtype=bool)
    bits[:, : moved.shape[1]] = moved
    words = np.packbits(bits, axis=1, bitorder="little").view(np.uint32)
    changes.moved = wp.array(words.ravel(), dtype=wp.uint32, device=device)
    changes.shades = wp.array(shades.astype(np.uint8), dtype=wp.uint8, device=device)
    changes.corners = wp.array(low, dtype=wp.vec2, device=device)
    changes.scales = wp.array(GRID / np.maximum(high - low, 1e-6), dtype=wp.vec2, device=device)
    changes.cells = wp.zeros((len(moved), GRID * (GRID // 32)), dtype=wp.uint32, device=device)
    steps = now.placed.steps
    inputs = [scenes, steps, before.placed.steps, changes]
    wp.launch(_mark_shadows, dim=(len(moved), steps.box_rows, 2), inputs=inputs, device=device)
    return changes


def choose_tiles(scenes: wp.array, now: Shown, before: Shown | None, changes: Any, step: int) -> None:
    """Mark the stale tiles of a step; in the first step of a camera, all tiles are stale."""
    stale, earlier = now.view.stale, now if step else before
    if earlier is None:
        stale.fill_(1)
        return
    step_before = step - 1 if step else changes.step_before
    inputs = [scenes, now.view, earlier.view, changes, step, step_before]
    wp.launch(_choose_tiles, dim=len(stale), inputs=inputs, device=stale.device)
