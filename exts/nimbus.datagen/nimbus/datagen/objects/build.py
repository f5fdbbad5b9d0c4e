"""Construction of one variant of a declared kind."""

from __future__ import annotations

import zlib
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.objects.articulated import AnyArticulated
from nimbus.datagen.objects.articulated.build import build_articulated
from nimbus.datagen.objects.mass import mass_properties
from nimbus.datagen.objects.model import ObjectModel, RestPose
from nimbus.datagen.objects.rest_poses import rest_poses
from nimbus.datagen.objects.shapes.contact import Piece, piece_triangles
from nimbus.datagen.objects.shapes.shape import Shape, frame_at, smooth_normals
from nimbus.datagen.objects.textures.texture import painter
from nimbus.datagen.random_streams import generator

if TYPE_CHECKING:
    from nimbus.datagen.objects.declaration import ObjectKind, Size

_SEED = 0
"""Seed of variants, equal in every run; the run's seed only chooses among variants."""


def build_object(library: str, name: str, kind: ObjectKind, variant: int) -> ObjectModel:
    """Build one variant, the same on every call.

    Args:
        library: The library's name.
        name: The kind's name.
        kind: The kind's entry in the file.
        variant: Number of the variant, from 0.
    """
    address = (library, name, variant)
    texture_size, look = _texture_size(name, variant), partial(generator, _SEED, *address, "look")
    size = _draw_size(kind.size, generator(_SEED, *address, "size"))
    settings = kind.shapes[variant % len(kind.shapes)]
    if isinstance(settings, AnyArticulated):
        return build_articulated(
            library, name, kind, variant, settings.assemble(size, generator(_SEED, *address, "shape"))
        )
    shape = settings.build(size, generator(_SEED, *address, "shape"))
    physics = generator(_SEED, *address, "physics")
    mass, friction = float(physics.uniform(*kind.mass)), float(physics.uniform(*kind.friction))
    vertices, faces, normals, uvs = smooth_normals(shape.vertices, shape.faces, shape.uvs, shape.crease)
    bounds = np.array([vertices.min(axis=0), vertices.max(axis=0)])
    origin = bounds.mean(axis=0)
    pieces = tuple((points - origin, triangles) for points, triangles in shape.pieces)
    shell = kind.fill == "shell"
    center, inertia = mass_properties(vertices - origin, faces, mass=mass, in_surface=shell, density=shape.weights)
    color, value = next(iter(kind.colors.items()), ("", "#808080"))
    return ObjectModel(
        library=library,
        kind=name,
        variant=variant,
        object_class=kind.object_class,
        category=kind.category,
        vertices=vertices - origin,
        faces=faces,
        normals=normals,
        uvs=uvs,
        painter=painter(kind.texture, shape.regions, size=texture_size, rng=look, color=value),
        convex_pieces=pieces,
        mass=mass,
        center_of_mass=center,
        inertia=inertia,
        friction=friction,
        symmetry=kind.symmetry,
        keypoints=_keypoints(kind, shape, bounds),
        rest_poses=_rest_poses(kind, shape, pieces, center),
        bounds=bounds - origin,
        rolling=kind.symmetry == "revolution" or shape.ball > 0,
        color=color,
        frames=_frames(kind, shape, bounds),
        cavities={name: box - origin for name, box in shape.cavities.items()},
        open_inside=bool(shape.cavities),
        ball=shape.ball,
        sheet=shape.sheet,
        chain=shape.chain,
        heap=shape.heap,
        anchored=kind.anchored,
    )


def _rest_poses(kind: ObjectKind, shape: Shape, pieces: tuple[Piece, ...], center: FloatArray) -> tuple[RestPose, ...]:
    if shape.ball:
        return (RestPose(name="lying", wxyz=(1.0, 0.0, 0.0, 0.0), height=shape.ball, tilt_margin=0.0),)
    return rest_poses(piece_triangles(pieces)[0], center, names=kind.rests, lies_on=kind.lies_on)


def _frames(kind: ObjectKind, shape: Shape, bounds: FloatArray) -> dict[str, FloatArray]:
    """Return the shape's own frames, and the frames that the library file defines relative to the bounds."""
    origin, extent = bounds.mean(axis=0), np.ptp(bounds, axis=0)
    frames = {}
    for name, frame in shape.frames.items():
        frames[name] = frame.copy()
        frames[name][:3, 3] -= origin
    return frames | {name: frame_at(extent * said.at, z=said.z, x=said.x) for name, said in kind.frames.items()}


def _draw_size(size: Size, rng: np.random.Generator) -> FloatArray:
    width, height = rng.uniform(*size.width), rng.uniform(*size.height)
    depth = width if size.depth is None else rng.uniform(*size.depth)
    return np.array([width, depth, height])


def _texture_size(name: str, variant: int) -> tuple[int, int]:
    """Choose odd sizes that differ between variants and kinds, because a renderer may confuse textures of one size."""
    place = zlib.crc32(name.encode()) % 61 + variant
    return 257 + 2 * (place % 37), 223 + 2 * (place // 37 % 41)


def _keypoints(kind: ObjectKind, shape: Shape, bounds: FloatArray) -> dict[str, FloatArray]:
    """Return named points on the vertical axis, at fractions of the height, and the shape's own points."""
    origin, height = bounds.mean(axis=0), float(bounds[1, 2] - bounds[0, 2])
    shares = {"top": 1.0, "middle": 0.5, "base": 0.0, **kind.keypoints}
    points = {name: np.array([0.0, 0.0, (share - 0.5) * height]) for name, share in shares.items()}
    return {**points, **{name: point - origin for name, point in shape.keypoints.items()}}
