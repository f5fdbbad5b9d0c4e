"""Makes one variant of a declared kind."""

from __future__ import annotations

import zlib

import numpy as np

from nimbus.datagen.objects.contact import piece_triangles
from nimbus.datagen.objects.declaration import ObjectKind, Size
from nimbus.datagen.objects.mass import mass_properties
from nimbus.datagen.objects.model import Float, ObjectModel
from nimbus.datagen.objects.rest import rest_poses
from nimbus.datagen.objects.shape import Shape, smooth_normals
from nimbus.datagen.objects.texture import paint
from nimbus.datagen.streams import stream

_SEED = 0
"""A variant is the same in every run: the run's seed chooses among variants."""


def build_object(library: str, name: str, kind: ObjectKind, variant: int) -> ObjectModel:
    """One variant, the same on every call.

    Args:
        library: The library's name.
        name: The kind's name.
        kind: What the file says about it.
        variant: Number of the variant, from 0.
    """
    address = (library, name, variant)
    texture_size, look = _texture_size(name, variant), stream(_SEED, *address, "look")
    size = _draw_size(kind.size, stream(_SEED, *address, "size"))
    settings = kind.shapes[variant % len(kind.shapes)]
    shape = settings.build(size, stream(_SEED, *address, "shape"))
    physics = stream(_SEED, *address, "physics")
    mass, friction = float(physics.uniform(*kind.mass)), float(physics.uniform(*kind.friction))
    vertices, faces, normals, uvs = smooth_normals(shape.vertices, shape.faces, shape.uvs, shape.crease)
    bounds = np.array([vertices.min(axis=0), vertices.max(axis=0)])
    origin = bounds.mean(axis=0)
    pieces = tuple((points - origin, triangles) for points, triangles in shape.pieces)
    center, inertia = mass_properties(vertices - origin, faces, mass=mass, shell=kind.fill == "shell")
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
        texture=paint(kind.texture, shape.regions, size=texture_size, rng=look),
        convex_pieces=pieces,
        mass=mass,
        center_of_mass=center,
        inertia=inertia,
        friction=friction,
        symmetry=kind.symmetry,
        keypoints=_keypoints(kind, shape, bounds),
        rest_poses=rest_poses(piece_triangles(pieces)[0], center, names=kind.rests, lies_on=kind.lies_on),
        bounds=bounds - origin,
        rolling=kind.symmetry == "revolution",
    )


def _draw_size(size: Size, rng: np.random.Generator) -> Float:
    width, height = rng.uniform(*size.width), rng.uniform(*size.height)
    depth = width if size.depth is None else rng.uniform(*size.depth)
    return np.array([width, depth, height])


def _texture_size(name: str, variant: int) -> tuple[int, int]:
    """Odd sizes that differ between variants and kinds: a renderer may take textures of one size for equal."""
    place = zlib.crc32(name.encode()) % 61 + variant
    return 257 + 2 * (place % 37), 223 + 2 * (place // 37 % 41)


def _keypoints(kind: ObjectKind, shape: Shape, bounds: Float) -> dict[str, Float]:
    """Points on the axis of the bounds by their share of the height, and the shape's own."""
    origin, height = bounds.mean(axis=0), float(bounds[1, 2] - bounds[0, 2])
    shares = {"top": 1.0, "middle": 0.5, "base": 0.0, **kind.keypoints}
    points = {name: np.array([0.0, 0.0, (share - 0.5) * height]) for name, share in shares.items()}
    return {**points, **{name: point - origin for name, point in shape.keypoints.items()}}
