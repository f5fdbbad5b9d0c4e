# type: ignore  # Warp's kernel language only looks like Python to a type checker.
"""What the ray tracer's kernel takes and gives: plain arrays on the device, in structures."""

from __future__ import annotations

import warp as wp

wp.config.quiet = True

TILE = wp.constant(8)
"""[px] Side of a tile."""
GRID = wp.constant(48)
"""Cells along each side of the grid across the light."""
LEVELS = wp.constant(12)
"""Largest number of sizes a texture is kept in."""
TONES = wp.constant(16384)
"""Entries of the table from linear light to sRGB bytes."""
BRIGHTEST = wp.constant(4.0)
"""Linear light at the end of that table."""


@wp.struct
class Scene:
    """What stays the same during an episode; G meshes, F faces, P parts.

    A mesh with the number 0 is a rectangle.
    """

    meshes: wp.array(dtype=wp.uint64)
    face_start: wp.array(dtype=wp.int32)
    face_part: wp.array(dtype=wp.int32)
    corner_normals: wp.array(dtype=wp.vec3)
    corner_uvs: wp.array(dtype=wp.vec2)
    part_instance: wp.array(dtype=wp.uint8)
    part_tint: wp.array(dtype=wp.vec3)
    part_texture: wp.array(dtype=wp.int32)
    part_density: wp.array(dtype=wp.float32)
    texture_size: wp.array(dtype=wp.vec2i)
    level_start: wp.array2d(dtype=wp.int32)
    texels: wp.array(dtype=wp.uint32)
    semantics: wp.array(dtype=wp.uint8)
    to_linear: wp.array(dtype=wp.float32)
    to_srgb: wp.array(dtype=wp.uint8)


@wp.struct
class Light:
    """One directional light and the sky and ground."""

    towards: wp.vec3
    color: wp.vec3
    sky: wp.vec3
    ground: wp.vec3
    across: wp.vec3
    along: wp.vec3
    shadows: wp.bool


@wp.struct
class Steps:
    """What moves; K steps."""

    mesh_T_world: wp.array2d(dtype=wp.transform)
    rectangles: wp.array3d(dtype=wp.vec3)
    cell_start: wp.array(dtype=wp.int32)
    cell_meshes: wp.array(dtype=wp.int32)
    grid_corner: wp.array(dtype=wp.vec2)
    grid_scale: wp.array(dtype=wp.vec2)


@wp.struct
class Views:
    """One camera at K steps."""

    width: wp.int32
    height: wp.int32
    focal: wp.float32
    poses: wp.array(dtype=wp.transform)
    tile_start: wp.array(dtype=wp.int32)
    tile_meshes: wp.array(dtype=wp.int32)
    nearest: wp.array2d(dtype=wp.float32)


@wp.struct
class Images:
    """Outputs of one camera, flat."""

    rgb: wp.array(dtype=wp.uint8)
    depth: wp.array(dtype=wp.float32)
    instance: wp.array(dtype=wp.uint8)
    semantic: wp.array(dtype=wp.uint8)
    normals: wp.array(dtype=wp.int8)
