# type: ignore  # Warp's kernel language only looks like Python to a type checker.
"""What the ray tracer's kernel takes and gives: plain arrays on the device, in structures."""

from __future__ import annotations

import warp as wp

wp.config.quiet = True

TILE = wp.constant(8)
"""[px] Side of a tile."""
GRID = wp.constant(128)
"""Cells along each side of the grid across the light."""
MAP = wp.constant(96)
"""Pixels along each side of a mesh's picture from the light."""
BASE = wp.constant(64.0)
"""[m] Added to heights towards the light, so that they are positive."""
TINTS = wp.constant(4096)
"""Entries of the table from sRGB to linear light."""
LEVELS = wp.constant(12)
"""Largest number of sizes a texture is kept in."""
TONES = wp.constant(16384)
"""Entries of the table from linear light to sRGB bytes."""
SEAM = wp.constant(0.02)
"""[m] Height above a place at which what is near it is looked for: seams are as wide."""
BRIGHTEST = wp.constant(4.0)
"""Linear light at the end of that table."""


@wp.struct
class MaterialRow:
    """Paint of a part."""

    tint: wp.vec3
    density: wp.float32
    """Texels per metre; less than zero where each face has one color, that of ``face_paint``."""
    texture: wp.int32
    width: wp.int32
    height: wp.int32
    instance: wp.int32


@wp.struct
class DeviceScene:
    """What stays the same during an episode; G meshes, F faces, P parts.

    A mesh with the number 0 is a rectangle.
    """

    mesh_count: wp.int32
    rectangle_count: wp.int32
    vertex_count: wp.int32
    face_count: wp.int32
    """Number of faces of meshes, without those of rectangles, which come before them."""
    piece_count: wp.int32
    """Number of pieces of meshes; each is a range of faces and of vertices."""
    piece_mesh: wp.array(dtype=wp.int32)
    piece_middle: wp.array(dtype=wp.vec3)
    piece_half: wp.array(dtype=wp.vec3)
    """Half of the sides of a box around it, in the frame of its mesh [m]."""
    piece_points: wp.array(dtype=wp.int32)
    piece_faces: wp.array(dtype=wp.int32)
    """Starts of the faces of each piece, and the end; faces are numbered piece after piece."""
    outward: wp.array(dtype=wp.vec3)
    """Normals; zero for faces whose backs can be seen, which are not of a closed surface."""
    face_normals: wp.array(dtype=wp.vec3)
    """Unit normals of the faces of meshes, in the frame of each."""
    points: wp.array(dtype=wp.vec3)
    """Vertices of all meshes, in the frame of each, piece after piece."""
    vertex_mesh: wp.array(dtype=wp.int32)
    corners: wp.array(dtype=wp.int32)
    """Three vertices of each face of a mesh."""
    meshes: wp.array(dtype=wp.uint64)
    smooth: wp.array(dtype=wp.uint8)
    face_start: wp.array(dtype=wp.int32)
    face_part: wp.array(dtype=wp.int32)
    corner_normals: wp.array(dtype=wp.vec3)
    corner_uvs: wp.array(dtype=wp.vec2)
    face_paint: wp.array(dtype=wp.vec3)
    """Linear color of each face that has only one."""
    rectangle_uvs: wp.array(dtype=wp.vec2)
    """Of the first corner of each rectangle, and what they grow by along its two edges."""
    is_even: wp.array(dtype=wp.uint8)
    """A byte for each rectangle: those three hold in both of its faces."""
    looks: wp.array(dtype=MaterialRow)
    level_start: wp.array2d(dtype=wp.int32)
    texels: wp.array(dtype=wp.uint32)
    semantics: wp.array(dtype=wp.uint8)
    to_linear: wp.array(dtype=wp.float32)
    to_srgb: wp.array(dtype=wp.uint8)
    is_baked: wp.bool
    """Some faces have baked light, in the grids of :class:`FaceGrid`."""
    grid_steps: wp.array(dtype=wp.int32)
    """Steps of each face; 0 for those without."""
    grid_start: wp.array(dtype=wp.int32)
    grid_samples: wp.array(dtype=wp.int32)
    light_values: wp.array(dtype=wp.vec4)
    """Linear light at each sample, and the share of the key light in it."""
    key: wp.vec3
    """The key light where its share is 1."""


@wp.struct
class DeviceLight:
    """One directional light, the sky and ground, and further lights."""

    towards: wp.vec3
    color: wp.vec3
    sky: wp.vec3
    ground: wp.vec3
    across: wp.vec3
    along: wp.vec3
    shadows: wp.bool
    lamp_count: wp.int32
    lamps_towards: wp.array(dtype=wp.vec3)
    lamp_colors: wp.array(dtype=wp.vec3)
    """Of further lights, which cast no shadows."""


@wp.struct
class Sets:
    """For each cell of K grids a set of meshes: bits in a few words."""

    words: wp.int32
    bits: wp.array(dtype=wp.uint32)


@wp.struct
class Boxes:
    """Boxes around pieces of meshes, in the frames of those [m]."""

    count: wp.int32
    eight: wp.int32
    """Corners of a box; not a constant, so that loops over them are not unrolled."""
    mesh: wp.array(dtype=wp.int32)
    lower: wp.array(dtype=wp.vec3)
    upper: wp.array(dtype=wp.vec3)


@wp.struct
class Raster:
    """Pictures of the meshes at K steps, of a camera or from the light; V vertices."""

    width: wp.int32
    height: wp.int32
    perspective: wp.bool
    matrices: wp.array(dtype=wp.mat33)
    """From the frame of each mesh to pixels and depth; the first two times the depth with a perspective."""
    offsets: wp.array(dtype=wp.vec3)
    shown: wp.array(dtype=wp.uint8)
    """A byte for each mesh."""
    drawn: wp.array(dtype=wp.uint8)
    """A byte for each piece: its mesh is shown, and it reaches into the picture."""
    places: wp.array(dtype=wp.vec3)
    """(K * V) column and row [px], and how near: one over the depth, or the height towards the light."""
    nearest: wp.array(dtype=wp.uint64)
    """Of each pixel of a camera's picture, as ``raster`` packs it."""
    tops: wp.array(dtype=wp.uint32)
    """Bits of the height of each pixel of a picture from the light; 0 when there is nothing."""


@wp.struct
class Steps:
    """What moves; the rows of K steps of G meshes in one row."""

    world_R_mesh: wp.array(dtype=wp.mat33)
    positions: wp.array(dtype=wp.vec3)
    light_in_mesh: wp.array(dtype=wp.vec3)
    """Direction towards the light in the frame of the mesh."""
    normals: wp.array(dtype=wp.vec3)
    """Of rectangles, in the world frame."""
    shades: wp.array(dtype=wp.vec4)
    """Three planes of each rectangle: distance to it along the light, and shares of its edges, of a world point."""
    tops: wp.array(dtype=wp.float32)
    """How far along the light each mesh reaches [m]."""
    margins: wp.array(dtype=wp.vec2)
    """Reach around each mesh within which its shadow is read from its picture, along the rows and the columns [m]."""
    bounds: wp.array(dtype=wp.vec4)
    """Places of the boxes across the light with those margins: lower and upper corners, along the rows and the columns
    [m]."""
    cells: Sets
    """Which meshes each cell of the grid across the light is in the shadow's way of."""
    grid_corner: wp.array(dtype=wp.vec2)
    grid_scale: wp.array(dtype=wp.vec2)
    near: Sets
    """Moving meshes within two seams of a place, in each cell of a second grid across the light; no words where
    there are no seams."""
    near_corner: wp.array(dtype=wp.vec2)
    near_scale: wp.array(dtype=wp.vec2)
    near_low: wp.array(dtype=wp.vec3)
    near_high: wp.array(dtype=wp.vec3)
    """Corners of a box around each mesh and all within a seam of it, along the axes of the world [m]."""
    corners: wp.array(dtype=wp.vec3)
    edges: wp.array(dtype=wp.vec3)
    """First corner of each rectangle in the world frame [m], and its two edges over the squares of their lengths."""
    heights: Raster
    """The meshes that cast shadows, from the light: one below the other, ``MAP`` lines for each."""
    pictures: wp.array(dtype=wp.int32)
    """Number of each mesh's picture among them: that of a step before, while the mesh stands still."""
    map_corner: wp.array(dtype=wp.vec2)
    map_scale: wp.array(dtype=wp.vec2)
    """Corner of each mesh's picture across the light [m], and its pixels per metre."""


@wp.struct
class Views:
    """One camera at K steps."""

    width: wp.int32
    height: wp.int32
    focal: wp.float32
    positions: wp.array(dtype=wp.vec3)
    world_R_camera: wp.array(dtype=wp.mat33)
    origins: wp.array(dtype=wp.vec3)
    """The camera in the frame of each mesh."""
    mesh_R_camera: wp.array(dtype=wp.mat33)
    planes: wp.array(dtype=wp.vec3)
    """Three planes of each rectangle over the image: one over depth, and the shares of its edges over depth."""
    tiles: Sets
    """Rectangles that each tile can show."""
    meshes: Raster
    is_still: wp.bool
    """Only tiles that are stale are rendered; the images hold those of the step before."""
    stale: wp.array(dtype=wp.uint8)
    """A byte for each tile of one step."""
    reach: wp.array(dtype=wp.vec4)
    """Place of what each row of a tile shows, as ``Steps.bounds``; of the step rendered last."""


@wp.struct
class Images:
    """Outputs of one camera, flat."""

    with_normals: wp.bool
    rgb: wp.array(dtype=wp.uint8)
    depth: wp.array(dtype=wp.float32)
    instance: wp.array(dtype=wp.uint8)
    semantic: wp.array(dtype=wp.uint8)
    normals: wp.array(dtype=wp.int8)
