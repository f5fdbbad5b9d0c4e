"""Construction of a model from an assembly, with masses by volume and the origin in the middle of the base."""

from __future__ import annotations

import zlib
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from nimbus.datagen.objects.articulated.assembly import Assembly, move_frames
from nimbus.datagen.objects.articulated.solids import CREASE
from nimbus.datagen.objects.mass import mass_properties
from nimbus.datagen.objects.model import ObjectModel, RestPose
from nimbus.datagen.objects.shapes.contact import piece_triangles
from nimbus.datagen.objects.shapes.shape import smooth_normals
from nimbus.datagen.objects.textures.texture import painter
from nimbus.datagen.random_streams import generator

if TYPE_CHECKING:
    from nimbus.datagen.objects.declaration import ObjectKind

_SEED = 0
_STANDS = (1.0, 0.0, 0.0, 0.0)


def build_articulated(library: str, name: str, kind: ObjectKind, variant: int, assembly: Assembly) -> ObjectModel:
    """Build the model of an assembly in its upright rest pose.

    Args:
        library: The library's name.
        name: The kind's name.
        kind: The kind's entry in the library.
        variant: Number of the variant.
        assembly: Base and links.
    """
    address = (library, name, variant)
    physics = generator(_SEED, *address, "physics")
    mass, friction = float(physics.uniform(*kind.mass)), float(physics.uniform(*kind.friction))
    surface = assembly.base.surface
    vertices, faces, normals, uvs = smooth_normals(surface.vertices, surface.faces, surface.uvs, CREASE)
    bounds = np.array([vertices.min(axis=0), vertices.max(axis=0)])
    origin = bounds.mean(axis=0)
    pieces = tuple((points - origin, triangles) for points, triangles in assembly.base.pieces)
    volumes = np.array([assembly.base.volume, *(link.density * link.solids.volume for link in assembly.links)])
    masses = mass * volumes / volumes.sum()
    center, inertia = mass_properties(*piece_triangles(pieces), mass=float(masses[0]), in_surface=False)
    height = float(bounds[1, 2] - bounds[0, 2])
    upright = RestPose(name="upright", wxyz=_STANDS, height=height / 2, tilt_margin=0.5)
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
        painter=painter(
            kind.texture,
            assembly.looks.regions,
            size=_texture_size(name, variant),
            rng=partial(generator, _SEED, *address, "look"),
        ),
        convex_pieces=pieces,
        mass=mass,
        center_of_mass=center,
        inertia=inertia,
        friction=friction,
        symmetry="none",
        keypoints={"top": np.array([0, 0, height / 2]), "middle": np.zeros(3), "base": np.array([0, 0, -height / 2])},
        rest_poses=(upright,),
        bounds=bounds - origin,
        rolling=False,
        frames=move_frames(assembly.frames, -origin),
        cavities={place: cavity - origin for place, cavity in assembly.cavities.items()},
        parts=tuple(link.part(origin, float(share)) for link, share in zip(assembly.links, masses[1:], strict=True)),
        anchored=kind.anchored,
    )


def _texture_size(name: str, variant: int) -> tuple[int, int]:
    """Choose an odd texture size [px] that differs between kinds and variants.

    A renderer may confuse textures of equal size.
    """
    place = zlib.crc32(name.encode()) % 61 + variant
    return 601 + 2 * (place % 37), 421 + 2 * (place // 37 % 41)
