"""Geometry of an episode for the ray tracer: one mesh per body, with mipmapped textures."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from nimbus.datagen.episode.layout import SurfaceLook
from nimbus.datagen.episode.observation import Labels
from nimbus.datagen.meshes.triangles import Triangles
from nimbus.datagen.render.baked_light.weighing import WeighedLight
from nimbus.datagen.render.raytracer import tone_tables
from nimbus.datagen.render.raytracer.kernel_data import LEVELS, TINTS, Boxes, DeviceScene, MaterialRow
from nimbus.datagen.render.raytracer.mipmap import mipmap
from nimbus.datagen.render.raytracer.pieces import MeshPieces, cut
from nimbus.datagen.render.render_inputs import RenderPart
from nimbus.datagen.textures.procedural import surface_image, texture_period

_MOST_RECTANGLES = 64
"""Largest number of rectangles of a part that are tested one by one; a part with more is faster as a mesh."""
_EVEN = 1e-5
"""Difference up to which texture coordinates count as equal."""
_NO_SHADOW = frozenset({"floor", "backdrop"})
"""Instances without shadows: light is assumed to enter through the walls of the room."""

_meshes: weakref.WeakKeyDictionary[Triangles, dict[str, wp.Mesh]] = weakref.WeakKeyDictionary()


@dataclass(frozen=True, kw_only=True)
class Geometry:
    """Meshes of one episode on the device."""

    scene: Any
    """``DeviceScene`` of the ray tracer."""
    bodies: tuple[str, ...]
    """Body of each of the G meshes; empty for static ones."""
    keep: tuple[wp.Mesh, ...]
    """Device meshes, kept alive because the scene refers to them by number only."""


def build_geometry(
    parts: Sequence[RenderPart],
    surfaces: Mapping[str, SurfaceLook],
    labels: Labels,
    *,
    device: wp.Device,
    baked: WeighedLight | None = None,
) -> Geometry:
    """Group parts by body, concatenate their attributes and upload them."""
    groups = _group(parts)
    ordered = [part for group in groups for part in group.parts]
    worn = [surfaces.get(part.instance.partition(".")[0], SurfaceLook()) for part in ordered]
    looks = [look_of(part, surface) for part, surface in zip(ordered, worn, strict=True)]
    meshes = [None if group.rectangle is not None else _device_mesh(group.triangles, device) for group in groups]
    counts = [len(triangles.faces) for triangles, _ in looks]
    # Images are compared by identity: parts that show the same object share its texels on the device.
    distinct = {id(image): image for _, image in looks}
    texture = {key: place for place, key in enumerate(distinct)}
    images = [mipmap(image) for image in distinct.values()]
    sizes = [len(image.texels) for image in images]
    instance = {name: place for place, name in enumerate(labels.instance_names)}
    tints = [surface.color for surface in worn]

    def upload(values: NDArray | list, dtype: Any) -> wp.array:
        return wp.array(values, dtype=dtype, device=device)

    # Rectangles come first in all tables: the kernels intersect them directly, without a tree.
    flat = np.array([group.rectangle is not None for group in groups])
    scene = DeviceScene()
    scene.mesh_count = len(groups)
    scene.rectangle_count = int(flat.sum())
    scene.smooth = upload(np.array([not _is_flat(group) for group in groups], dtype=np.uint8), wp.uint8)
    scene.meshes = upload(np.array([mesh.id if mesh else 0 for mesh in meshes], dtype=np.uint64), wp.uint64)
    scene.face_start = upload(np.cumsum([0] + [len(group.triangles.faces) for group in groups[:-1]]), wp.int32)
    pieces = [cut(group.triangles) for group in groups]
    # Faces of a piece are drawn together, so they are neighbors in memory.
    order = _face_order(groups, pieces)
    scene.face_part = upload(np.repeat(np.arange(len(ordered)), counts)[order], wp.int32)
    solid = [piece for piece, group in zip(pieces, groups, strict=True) if group.rectangle is None]
    put_pieces(scene, solid, upload)
    normals = np.concatenate([t.corner_normals for t, _ in looks]).reshape(-1, 3, 3)[order]
    scene.corner_normals = upload(normals.reshape(-1, 3), wp.vec3)
    uvs = np.concatenate([t.corner_uvs for t, _ in looks]).reshape(-1, 3, 2)[order].reshape(-1, 2)
    scene.corner_uvs = upload(uvs, wp.vec2)
    uv_rows, is_even = _rectangle_uvs(uvs[: 6 * scene.rectangle_count])
    scene.rectangle_uvs, scene.is_even = upload(uv_rows, wp.vec2), upload(is_even.astype(np.uint8), wp.uint8)
    rows = np.zeros(len(ordered), dtype=np.dtype(MaterialRow.numpy_dtype()))  # pyright: ignore[reportArgumentType, reportCallIssue]
    rows["tint"], rows["instance"] = tone_tables.linear(np.array(tints)), [instance[part.instance] for part in ordered]
    paints = [_paint(triangles, image) for triangles, image in looks]
    # A part of plain colors needs no texture: its negative density tells the kernel to use face_paint.
    rows["density"] = [
        _texel_density(triangles, image) if paint is None else -1.0
        for (triangles, image), paint in zip(looks, paints, strict=True)
    ]
    painted = [
        np.zeros((n, 3), dtype=np.float32) if paint is None else paint for n, paint in zip(counts, paints, strict=True)
    ]
    painted = np.concatenate(painted) * np.repeat(rows["tint"], counts, axis=0)
    scene.face_paint = upload(painted[order], wp.vec3)
    rows["texture"] = [texture[id(image)] for _, image in looks]
    rows["width"] = [images[place].width for place in rows["texture"]]
    rows["height"] = [images[place].height for place in rows["texture"]]
    scene.looks = upload(rows, MaterialRow)
    starts = np.cumsum([0] + sizes[:-1])
    # Small textures have fewer levels; the kernel never reads the repeated entries that fill up their rows.
    levels = [np.resize(image.starts, LEVELS) + start for image, start in zip(images, starts, strict=True)]
    scene.level_start = upload(np.stack(levels).astype(np.int32), wp.int32)
    scene.texels = upload(np.concatenate([image.texels for image in images]), wp.uint32)
    scene.semantics = upload(labels.instance_semantics, wp.uint8)
    scene.to_linear = upload(tone_tables.LINEAR_OF_SRGB, wp.float32)
    scene.to_srgb = upload(np.concatenate([*tone_tables.BYTE_OF_LIGHT.values()]), wp.uint8)
    _put_grids(scene, ordered, baked, order, upload)
    _put_boxes(scene, pieces, upload)
    scene.casts = upload(np.array([group.casts_shadow for group in groups], dtype=np.uint8), wp.uint8)
    scene.rectangles = upload(_rectangle_rows(groups).reshape(-1, 3), wp.vec3d)
    return Geometry(
        scene=scene,
        bodies=tuple(group.body for group in groups),
        keep=tuple(mesh for mesh in meshes if mesh is not None),
    )


@dataclass(frozen=True, kw_only=True)
class _Group:
    """Unit of tracing: all parts of a body, or one rectangle."""

    body: str
    parts: tuple[RenderPart, ...]
    triangles: Triangles
    casts_shadow: bool
    rectangle: NDArray[np.float32] | None = None


def _face_order(groups: Sequence[_Group], pieces: Sequence[MeshPieces]) -> NDArray[np.int64]:
    """Return the faces (F,) in the order of the device: rectangles first, unchanged, then piece after piece."""
    starts = np.cumsum([0] + [len(group.triangles.faces) for group in groups[:-1]])
    return np.concatenate(
        [
            start + (piece.faces if group.rectangle is None else np.arange(len(piece.faces)))
            for start, group, piece in zip(starts, groups, pieces, strict=True)
        ]
    )


def put_pieces(scene: Any, solid: Sequence[MeshPieces], upload: Callable[[NDArray, Any], wp.array]) -> None:
    """Upload faces and vertices of the meshes, piece after piece; meshes come after rectangles.

    Faces get the order of the pieces.
    """
    boxes = [len(mesh.boxes) for mesh in solid]
    scene.piece_count, scene.vertex_count = sum(boxes), sum(len(mesh.points) for mesh in solid)
    if not solid:
        return
    mesh_of_piece = np.repeat(np.arange(len(solid)) + scene.mesh_count - len(solid), boxes)
    point_counts = np.concatenate([mesh.point_counts for mesh in solid])
    points = np.cumsum([0] + [len(mesh.points) for mesh in solid])
    every = np.concatenate([mesh.boxes for mesh in solid])
    scene.piece_mesh = upload(mesh_of_piece, wp.int32)
    scene.piece_middle = upload(every.mean(axis=1), wp.vec3)
    scene.piece_half = upload(0.5 * (every[:, 1] - every[:, 0]), wp.vec3)
    scene.piece_points = upload(np.cumsum([0, *point_counts]), wp.int32)
    scene.piece_faces = upload(np.cumsum([0, *np.concatenate([mesh.face_counts for mesh in solid])]), wp.int32)
    scene.face_normals = upload(np.concatenate([mesh.normals for mesh in solid]), wp.vec3)
    scene.outward = upload(np.concatenate([mesh.outward for mesh in solid]), wp.vec3)
    scene.points = upload(np.concatenate([mesh.points for mesh in solid]), wp.vec3)
    corners = [mesh.corners.ravel() + start for mesh, start in zip(solid, points, strict=False)]
    scene.corners = upload(np.concatenate(corners), wp.int32)
    scene.vertex_mesh = upload(np.repeat(mesh_of_piece, point_counts), wp.int32)


def _put_boxes(scene: Any, pieces: Sequence[MeshPieces], upload: Callable[[NDArray, Any], wp.array]) -> None:
    """Upload boxes around the pieces of all meshes, and around each mesh."""
    boxes = Boxes()
    every = np.concatenate([piece.boxes for piece in pieces])
    boxes.count, boxes.eight = len(every), 8
    boxes.mesh = upload(np.repeat(np.arange(len(pieces)), [len(piece.boxes) for piece in pieces]), wp.int32)
    boxes.lower, boxes.upper = upload(every[:, 0], wp.vec3), upload(every[:, 1], wp.vec3)
    # Structures are assigned by value, hence after their fields are set.
    scene.boxes = boxes
    bounds = np.stack([[piece.boxes[:, 0].min(axis=0), piece.boxes[:, 1].max(axis=0)] for piece in pieces])
    scene.middles = upload(bounds.mean(axis=1), wp.vec3d)
    scene.halves = upload(0.5 * np.ptp(bounds, axis=1), wp.vec3d)


def _put_grids(
    scene: Any,
    parts: Sequence[RenderPart],
    baked: WeighedLight | None,
    order: NDArray[np.int64],
    upload: Callable[[NDArray, Any], wp.array],
) -> None:
    """Upload the light grids of all faces, in the given order, and the light; all parts share a scene's samples."""
    scene.is_baked = baked is not None
    if baked is None:
        return
    none = [np.zeros(len(part.triangles.faces), dtype=np.int32) for part in parts]
    grids = [part.grid for part in parts]
    steps = np.concatenate([g.steps if g else n for g, n in zip(grids, none, strict=True)])
    start = np.concatenate([g.start if g else n for g, n in zip(grids, none, strict=True)])
    scene.grid_steps, scene.grid_start = upload(steps[order], wp.int32), upload(start[order], wp.int32)
    scene.grid_samples = upload(next(grid.samples for grid in grids if grid), wp.int32)
    scene.light_values = upload(baked.values, wp.vec4)
    scene.key = wp.vec3(*baked.key)


def _rectangle_uvs(uvs: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """Return the texture coordinates (3 R, 2) of rectangles, at the first corner and along both edges; (R,) validity.

    Args:
        uvs: (6 R, 2) of the corners of the two faces of each, which share the diagonal from the first corner.
    """
    a, b, c, other_a, other_c, d = np.moveaxis(uvs.reshape(-1, 6, 2), 1, 0)
    rows = np.stack([a, b - a, d - a], axis=1)
    away = np.stack([other_a - a, other_c - c, c - b - (d - a)])
    return rows.reshape(-1, 2), np.all(np.abs(away) < _EVEN, axis=(0, 2))


def _paint(triangles: Triangles, image: NDArray[np.uint8]) -> NDArray[np.float32] | None:
    """Return linear colors (F, 3) of faces that each show a single texel of an image; None if any face shows more."""
    corners = triangles.uvs[triangles.faces]
    if np.any(corners != corners[:, :1]):
        return None
    height, width = image.shape[:2]
    u, v = (corners[:, 0] - np.floor(corners[:, 0])).T
    rows = np.minimum(((1.0 - v) * height).astype(np.int64), height - 1)
    columns = np.minimum((u * width).astype(np.int64), width - 1)
    return tone_tables.LINEAR_OF_SRGB[image[rows, columns, :3].astype(np.int64) * (TINTS // 256)]


def _rectangle_rows(groups: Sequence[_Group]) -> NDArray[np.float64]:
    found = [group.rectangle for group in groups if group.rectangle is not None]
    corner, one, other = np.moveaxis(np.array(found, dtype=np.float64).reshape(-1, 3, 3), 1, 0)
    normal = np.cross(one, other)
    normal /= np.linalg.norm(normal, axis=1, keepdims=True)
    shares = [edge / np.sum(edge * edge, axis=1, keepdims=True) for edge in (one, other)]
    return np.stack([corner, normal, *shares], axis=1)


def _group(parts: Sequence[RenderPart]) -> list[_Group]:
    found: list[_Group] = []
    meshes: dict[tuple[str, bool], list[RenderPart]] = {}
    for part in parts:
        # Baked light already contains the shadows of static parts.
        casts = part.casts_shadow and part.instance not in _NO_SHADOW and part.grid is None
        flat = None if part.is_furnishing else _flat_pieces(part.triangles)
        if flat is None:
            meshes.setdefault((part.body, casts), []).append(part)
            continue
        for place, piece in enumerate(flat):
            a, b, _, _, _, d = piece.vertices[piece.faces.ravel()]
            edges = np.stack([a, b - a, d - a])
            grid = part.grid and part.grid.face_range(2 * place, 2 * place + 2)
            parts_of_one = (replace(part, triangles=piece, grid=grid),)
            found.append(
                _Group(body=part.body, parts=parts_of_one, triangles=piece, casts_shadow=casts, rectangle=edges)
            )
    for (body, casts), group in meshes.items():
        triangles = _joined(tuple(part.triangles for part in group))
        found.append(_Group(body=body, parts=tuple(group), triangles=triangles, casts_shadow=casts))
    return found


@lru_cache(maxsize=256)
def _flat_pieces(triangles: Triangles) -> tuple[Triangles, ...] | None:
    """Return the rectangles of a part one by one; None unless it consists of a few rectangles only."""
    if len(triangles.faces) > 2 * _MOST_RECTANGLES:
        return None
    paired = triangles.as_rectangles()
    return paired and tuple(paired.face_range(face, face + 2) for face in range(0, len(paired.faces), 2))


def look_of(part: RenderPart, surface: SurfaceLook) -> tuple[Triangles, NDArray[np.uint8]]:
    """Return a part's triangles and its image; a procedural texture is projected onto the part."""
    image = surface_image(surface, part.instance)
    if image is None:
        return part.triangles, part.image
    return part.triangles.projected(texture_period(part.instance)), image


_joined_cache: dict[tuple[Triangles, ...], Triangles] = {}


def _joined(pieces: tuple[Triangles, ...]) -> Triangles:
    """Join pieces; equal arguments return the same object, so that its device mesh is built only once."""
    if len(pieces) == 1:
        return pieces[0]
    if pieces not in _joined_cache:
        # The cache is bounded by dropping everything; meshes that are still in use are joined again.
        if len(_joined_cache) >= 64:
            _joined_cache.clear()
        _joined_cache[pieces] = Triangles.concatenate(list(pieces))
    return _joined_cache[pieces]


def _device_mesh(triangles: Triangles, device: wp.Device) -> wp.Mesh:
    by_device = _meshes.setdefault(triangles, {})
    if device.alias not in by_device:
        by_device[device.alias] = wp.Mesh(
            points=wp.array(triangles.vertices, dtype=wp.vec3, device=device),
            indices=wp.array(triangles.faces.ravel(), dtype=wp.int32, device=device),
            # A tree by surface area takes longer to build and less time to trace; each mesh is built once.
            bvh_constructor="sah",
        )
    return by_device[device.alias]


def _is_flat(group: _Group) -> bool:
    """Return True if interpolated normals equal those of the faces."""
    if group.rectangle is None:
        return False
    normal = np.cross(group.rectangle[1], group.rectangle[2])
    return bool(np.all(group.triangles.corner_normals @ normal > 0.9999 * np.linalg.norm(normal)))


def _texel_density(triangles: Triangles, image: NDArray[np.uint8]) -> float:
    """Return texels per meter, from the areas of the triangles and of their texture coordinates."""
    edges = triangles.vertices[triangles.faces]
    area = np.linalg.norm(np.cross(edges[:, 1] - edges[:, 0], edges[:, 2] - edges[:, 0]), axis=1).sum()
    flat = triangles.uvs[triangles.faces]
    one, other = flat[:, 1] - flat[:, 0], flat[:, 2] - flat[:, 0]
    covered = np.abs(one[:, 0] * other[:, 1] - one[:, 1] * other[:, 0]).sum()
    return float(np.sqrt(covered * image.shape[0] * image.shape[1] / max(area, 1e-12)))
