"""Cavities of containers, found on solids with known cavities."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import trimesh

from nimbus.datagen.objects.imported.rooms import find_rooms


def turned(profile: list[tuple[float, float]]) -> trimesh.Trimesh:
    """Return a solid of revolution about z from points (radius, height) that begin and end on the axis."""
    return trimesh.creation.revolve(np.array(profile), sections=48)


def carved(size: tuple[float, float, float], *rooms: tuple[float, float, float, float]) -> trimesh.Trimesh:
    """Return a block of 5 mm cells with boxes (x, y, width, depth) carved from the top down to a floor of 5 mm."""
    counts = np.round(np.array(size) / 0.005).astype(int)
    filled = np.ones(counts, dtype=bool)
    for x, y, width, depth in rooms:
        left, front, right, back = (round(value / 0.005) for value in (x, y, x + width, y + depth))
        filled[left:right, front:back, 1:] = False
    around = np.pad(filled, 1)
    corners = []
    for axis in range(3):
        for side in (-1, 1):
            is_bare = filled & ~np.roll(around, -side, axis=axis)[1:-1, 1:-1, 1:-1]
            square = np.zeros((4, 3))
            square[:, axis] = side > 0
            square[:, [(axis + 1) % 3, (axis + 2) % 3]] = [[0, 0], [1, 0], [1, 1], [0, 1]][::side]
            corners.append(np.argwhere(is_bare)[:, None] + square)
    squares = np.concatenate(corners) * 0.005
    triangles = np.concatenate([squares[:, [0, 1, 2]], squares[:, [0, 2, 3]]])
    return trimesh.Trimesh(**trimesh.triangles.to_kwargs(triangles), process=True)


def handle() -> trimesh.Trimesh:
    ring = trimesh.creation.torus(major_radius=0.025, minor_radius=0.004)
    ring.apply_transform(trimesh.transformations.rotation_matrix(np.pi / 2, [1, 0, 0]))
    return ring.apply_translation([0.06, 0, 0.05])


MUG = [(0, 0), (0.04, 0), (0.04, 0.09), (0.036, 0.09), (0.036, 0.005), (0, 0.005)]
SHELLS: dict[str, tuple[Callable[[], Any], list[float]]] = {
    "mug with a handle": (lambda: trimesh.util.concatenate([turned(MUG), handle()]), [np.pi * 0.036**2 * 0.085]),
    "bowl": (lambda: turned([(0, 0), (0.03, 0), (0.08, 0.05), (0.077, 0.05), (0.028, 0.004), (0, 0.004)]), [4.3e-4]),
    "pan": (lambda: turned([(0, 0), (0.11, 0), (0.12, 0.04), (0.117, 0.04), (0.107, 0.004), (0, 0.004)]), [1.42e-3]),
    "plate": (lambda: turned([(0, 0), (0.07, 0), (0.11, 0.02), (0.107, 0.02), (0.068, 0.004), (0, 0.004)]), [3.9e-4]),
    "espresso cup": (lambda: turned([(r * 0.6, z * 0.5) for r, z in MUG]), [np.pi * 0.0216**2 * 0.0425]),
    "tray": (lambda: carved((0.3, 0.2, 0.03), (0.005, 0.005, 0.29, 0.19)), [0.29 * 0.19 * 0.025]),
    "caddy of four": (
        lambda: carved((0.2, 0.1, 0.1), *((0.005 + 0.05 * i, 0.005, 0.04, 0.09) for i in range(4))),
        [0.04 * 0.09 * 0.095] * 4,
    ),
    "ramekin": (
        lambda: turned([(0, 0), (0.045, 0), (0.045, 0.04), (0.04, 0.04), (0.04, 0.005), (0, 0.005)]),
        [1.76e-4],
    ),
    "tray for pens": (
        lambda: carved((0.2, 0.12, 0.06), (0.005, 0.005, 0.19, 0.03), (0.005, 0.04, 0.19, 0.075)),
        [0.19 * 0.03 * 0.055, 0.19 * 0.075 * 0.055][::-1],
    ),
    "pitcher scanned closed": (
        lambda: trimesh.util.concatenate(
            [turned([(0, 0), (0.05, 0), (0.06, 0.2), (0.058, 0.203), (0, 0.203)]), handle()]
        ),
        [],
    ),
    "closed box": (lambda: trimesh.creation.box((0.1, 0.08, 0.06)), []),
    "ball": (lambda: trimesh.creation.icosphere(radius=0.05), []),
    "bottle": (lambda: turned([(0, 0), (0.035, 0), (0.035, 0.14), (0.012, 0.17), (0.012, 0.2), (0, 0.2)]), []),
    "domed lid": (lambda: turned([(0, 0), (0.1, 0), (0.06, 0.03), (0, 0.045)]), []),
    "cup upside down": (lambda: turned([(r, -z) for r, z in MUG]), []),
    "ring": (lambda: trimesh.creation.torus(major_radius=0.05, minor_radius=0.015), []),
    "pipe": (lambda: trimesh.creation.annulus(r_min=0.03, r_max=0.035, height=0.1), []),
}


@pytest.mark.parametrize("name", SHELLS)
def test_rooms_of_known_solids_are_found(name: str) -> None:
    make, volumes = SHELLS[name]
    mesh = make()
    rooms = find_rooms(np.asarray(mesh.vertices), np.asarray(mesh.faces, dtype=np.int32))
    assert [room.volume for room in rooms] == pytest.approx(volumes, rel=0.12)
    surface = trimesh.sample.sample_surface(mesh, 20_000, seed=0)[0]
    for room in rooms:
        is_inside = ((surface > room.lower + 1e-3) & (surface < room.upper - 1e-3)).all(axis=1)
        assert is_inside.mean() < 0.002 and np.prod(room.upper - room.lower) > 0.28 * room.volume
