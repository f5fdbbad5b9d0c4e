# type: ignore  # Warp's kernel language only looks like Python to a type checker.
"""Inputs and outputs of the ray tracer's kernels: flat device arrays in structures."""

from __future__ import annotations

import warp as wp

wp.config.quiet = True

TILE = wp.constant(8)
"""Side of a tile [px]."""
GRID = wp.constant(128)
"""Number of cells along each side of the grid across the light."""
MAP = wp.constant(96)
"""Side of a mesh's height map [px]."""
BASE = wp.constant(64.0)
"""Offset added to heights toward the light to make them positive [m]."""
TINTS = wp.constant(4096)
"""Number of entries of the table from sRGB to linear light."""
LEVELS = wp.constant(12)
"""Largest number of mip levels of a texture."""
TONES = wp.constant(16384)
"""Number of entries of the table from linear light to sRGB bytes."""
SEAM = wp.constant(0.02)
"""Width of seams [m]: the distance within which a moving body darkens a surface beside it."""
BRIGHTEST = wp.constant(4.0)
"""Linear light at the end of the table of TONES entries."""


@wp.struct
class MaterialRow:
    """Material of a part."""

    tint: wp.vec3
    density: wp.float32
    """Texels per meter; less than zero where each face has one color, that of ``face_paint``."""
    texture: wp.int32
    width: wp.int32
    height: wp.int32
    instance: wp.int32


@wp.struct
class Boxes:
    """Boxes around pieces of meshes, in the frames of the meshes [m]."""

    count: wp.int32
    eight: wp.int32
    """Number of corners of a box; a variable, so that loops over them are not unrolled."""
    mesh: wp.array(dtype=wp.int32)
    lower: wp.array(dtype=wp.vec3)
    upper: wp.array(dtype=wp.vec3)


@wp.struct
class DeviceScene:
    """Constant data of a layout: G meshes, F faces, P parts; rectangles come first.

    A mesh with the number 0 is a rectangle. Kernels take an array of scenes, one for each layout.
    """

    mesh_count: wp.int32
    rectangle_count: wp.int32
    vertex_count: wp.int32
    piece_count: wp.int32
    """Number of pieces of meshes; each is a range of faces and of vertices."""
    piece_mesh: wp.array(dtype=wp.int32)
    piece_middle: wp.array(dtype=wp.vec3)
    piece_half: wp.array(dtype=wp.vec3)
    """Half extents of a box around the piece, in the frame of its mesh [m]."""
    piece_points: wp.array(dtype=wp.int32)
    piece_faces: wp.array(dtype=wp.int32)
    """First face of each piece, and the end of the last one; faces are numbered piece after piece."""
    outward: wp.array(dtype=wp.vec3)
    """Outward normals of faces of closed surfaces; zero for faces of open ones, whose backs can be visible."""
    face_normals: wp.array(dtype=wp.vec3)
    """Unit normals of the faces of meshes, in the frame of each mesh."""
    points: wp.array(dtype=wp.vec3)
    """Vertices of all meshes in their own frames, piece after piece."""
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
    """Texture coordinates at the first corner of each rectangle, and their increments along its two edges."""
    is_even: wp.array(dtype=wp.uint8)
    """One byte per rectangle: 1 if ``rectangle_uvs`` is valid in both of its faces."""
    looks: wp.array(dtype=MaterialRow)
    level_start: wp.array2d(dtype=wp.int32)
    texels: wp.array(dtype=wp.uint32)
    semantics: wp.array(dtype=wp.uint8)
    to_linear: wp.array(dtype=wp.float32)
    to_srgb: wp.array(dtype=wp.uint8)
    """Tables of all tone curves, one after the other."""
    is_baked: wp.bool
    """True if some faces have baked light, in the grids of :class:`FaceGrid`."""
    grid_steps: wp.array(dtype=wp.int32)
    """Steps of each face's grid; 0 for faces without one."""
    grid_start: wp.array(dtype=wp.int32)
    grid_samples: wp.array(dtype=wp.int32)
    light_values: wp.array(dtype=wp.vec4)
    """Linear light at each sample, and the fraction of the key light in it."""
    key: wp.vec3
    """Key light where its fraction is 1."""
    boxes: Boxes
    casts: wp.array(dtype=wp.uint8)
    """One byte per mesh: 1 if it casts shadows."""
    middles: wp.array(dtype=wp.vec3d)
    halves: wp.array(dtype=wp.vec3d)
    """Centers and half extents of boxes around the meshes, in the frame of each [m]."""
    rectangles: wp.array(dtype=wp.vec3d)
    """Four rows per rectangle, in the frame of its body: first corner [m], unit normal, and both edges divided by their
    squared lengths [1/m]."""


@wp.struct
class DeviceLight:
    """One directional light, sky and ground, and further lights."""

    towards: wp.vec3
    color: wp.vec3
    sky: wp.vec3
    ground: wp.vec3
    across: wp.vec3
    along: wp.vec3
    axes: wp.mat33d
    """Rows are the same three unit vectors in double precision: across, along, toward the light."""
    shadows: wp.bool
    lamp_count: wp.int32
    lamps_towards: wp.array(dtype=wp.vec3)
    lamp_colors: wp.array(dtype=wp.vec3)
    """Colors of further lights, which cast no shadows."""


@wp.struct
class Sets:
    """Bit set of meshes for each cell of K grids, in a few words."""

    words: wp.int32
    bits: wp.array(dtype=wp.uint32)


@wp.struct
class Raster:
    """Rasterized meshes at K steps, from a camera or from the light."""

    layouts: wp.array(dtype=wp.int32)
    """Number of the scene of each step."""
    mesh_rows: wp.int32
    vertex_rows: wp.int32
    piece_rows: wp.int32
    """Rows of a step in the tables of meshes, vertices and pieces: those of the largest scene."""
    width: wp.int32
    height: wp.int32
    perspective: wp.bool
    matrices: wp.array(dtype=wp.mat33)
    """Transform from the frame of each mesh to column, row and depth; in perspective, column and row are multiplied by
    the depth."""
    offsets: wp.array(dtype=wp.vec3)
    shown: wp.array(dtype=wp.uint8)
    """One byte per mesh: 1 if it is drawn."""
    drawn: wp.array(dtype=wp.uint8)
    """One byte per piece: 1 if its mesh is drawn and it overlaps the image."""
    places: wp.array(dtype=wp.vec3)
    """Column and row of each vertex [px], and nearness: one over the depth, or the height toward the light."""
    nearest: wp.array(dtype=wp.uint64)
    """Packed nearness and face of each pixel of a camera, see ``raster``."""
    tops: wp.array(dtype=wp.uint32)
    """Bits of the height of each pixel of a height map from the light; 0 for an empty pixel."""


@wp.struct
class Steps:
    """State of K steps, step after step."""

    layouts: wp.array(dtype=wp.int32)
    """Number of the scene of each step, and of its light."""
    mesh_rows: wp.int32
    box_rows: wp.int32
    """Rows of a step in the tables of meshes and of boxes: those of the largest scene."""
    rectangle_rows: wp.int32
    solid_rows: wp.int32
    """Largest numbers of rectangles and of other meshes of a scene."""
    active: wp.array(dtype=wp.uint8)
    """One byte per mesh: 1 if it casts a shadow."""
    world_R_mesh: wp.array(dtype=wp.mat33)
    positions: wp.array(dtype=wp.vec3)
    light_in_mesh: wp.array(dtype=wp.vec3)
    """Direction toward the light in the frame of the mesh."""
    normals: wp.array(dtype=wp.vec3)
    """Normals of rectangles, in the world frame."""
    shades: wp.array(dtype=wp.vec4)
    """Three linear functions of a world point for each rectangle: distance to it along the light, and edge
    coordinates."""
    tops: wp.array(dtype=wp.float32)
    """Extent of each mesh along the light [m]."""
    margins: wp.array(dtype=wp.vec2)
    """Distance around each mesh within which its shadow is read from its height map, along the rows and the columns
    [m]."""
    bounds: wp.array(dtype=wp.vec4)
    """Extents of the boxes across the light, with those margins: lower and upper corners, along the rows and the
    columns [m]."""
    cells: Sets
    """Meshes that may shadow each cell of the grid across the light."""
    grid_corner: wp.array(dtype=wp.vec2)
    grid_scale: wp.array(dtype=wp.vec2)
    near: Sets
    """Moving meshes within two seams of each cell of a second grid across the light; without words when there are no
    seams."""
    near_corner: wp.array(dtype=wp.vec2)
    near_scale: wp.array(dtype=wp.vec2)
    near_low: wp.array(dtype=wp.vec3)
    near_high: wp.array(dtype=wp.vec3)
    """Corners of a box around each mesh, enlarged by a seam, along the axes of the world [m]."""
    corners: wp.array(dtype=wp.vec3)
    edges: wp.array(dtype=wp.vec3)
    """First corner of each rectangle in the world frame [m], and both edges divided by their squared lengths [1/m]."""
    heights: Raster
    """Height maps of the meshes that cast shadows, one below the other, with ``MAP`` lines each."""
    pictures: wp.array(dtype=wp.int32)
    """Number of each mesh's height map; a map of an earlier step is used while the mesh does not move."""
    map_corner: wp.array(dtype=wp.vec2)
    map_scale: wp.array(dtype=wp.vec2)
    """Corner of each mesh's height map across the light [m], and its pixels per meter."""


@wp.struct
class Views:
    """Views of one size, each of one step."""

    layouts: wp.array(dtype=wp.int32)
    """Number of the scene of each view."""
    steps: wp.array(dtype=wp.int32)
    """Step of each view."""
    focals: wp.array(dtype=wp.float32)
    """Focal lengths [px]."""
    tones: wp.array(dtype=wp.int32)
    """Start of each view's tone curve in ``DeviceScene.to_srgb``."""
    width: wp.int32
    height: wp.int32
    seen: wp.array(dtype=wp.uint8)
    """One byte per mesh: 1 for a rectangle whose front is toward the camera."""
    positions: wp.array(dtype=wp.vec3)
    world_R_camera: wp.array(dtype=wp.mat33)
    origins: wp.array(dtype=wp.vec3)
    """Camera position in the frame of each mesh."""
    mesh_R_camera: wp.array(dtype=wp.mat33)
    planes: wp.array(dtype=wp.vec3)
    """Three linear functions of a pixel for each rectangle: 1 / depth, and both edge coordinates divided by the
    depth."""
    tiles: Sets
    """Rectangles that each tile may show."""
    meshes: Raster
    is_still: wp.bool
    """True when only stale tiles are rendered; the others keep the pixels of the previous step."""
    stale: wp.array(dtype=wp.uint8)
    """One byte per tile of one step: 1 if it must be rendered."""
    reach: wp.array(dtype=wp.vec4)
    """Bounds of the points visible in each row of a tile, as in ``Steps.bounds``, of the latest rendered step."""


@wp.struct
class Images:
    """Outputs of one camera, as flat arrays."""

    with_normals: wp.bool
    with_meshes: wp.bool
    rgb: wp.array(dtype=wp.uint8)
    depth: wp.array(dtype=wp.float32)
    instance: wp.array(dtype=wp.uint8)
    semantic: wp.array(dtype=wp.uint8)
    normals: wp.array(dtype=wp.int8)
    mesh: wp.array(dtype=wp.int32)
    """Number of the visible mesh; -1 where nothing was hit."""
