"""A floor with a box on it, as input for baking light."""

from __future__ import annotations

import numpy as np

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.episode.layout import Light
from nimbus.datagen.render.baked_light.basis import StillScene, join_faces

LIGHT = Light(direction=(-0.6, 0.0, -0.8), color=(0.9, 0.9, 0.8), sky=(0.4, 0.4, 0.45), ground=(0.2, 0.2, 0.2))
_SIDES = ((0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3))


def box(low: tuple[float, float, float], high: tuple[float, float, float]) -> tuple[FloatArray, FloatArray]:
    """Return faces (12, 3, 3) of a box [m], and normals (12, 3, 3) at their corners."""
    corners = np.array([[(low, high)[place >> axis & 1][axis] for axis in (2, 1, 0)][::-1] for place in range(8)])
    quads = corners[np.array(_SIDES)]
    faces = np.concatenate([quads[:, [0, 1, 2]], quads[:, [0, 2, 3]]]).astype(float)
    normals = np.cross(faces[:, 1] - faces[:, 0], faces[:, 2] - faces[:, 0])
    middle = (np.array(low) + np.array(high)) / 2
    normals *= np.sign(np.sum(normals * (faces.mean(axis=1) - middle), axis=1, keepdims=True))
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    return faces, np.repeat(normals[:, None], 3, axis=1)


def still_scene() -> StillScene:
    """Return a floor of 4 m with a box of 40 cm at its center."""
    floor: FloatArray = np.array([[[-2, -2, 0], [2, -2, 0], [2, 2, 0]], [[-2, -2, 0], [2, 2, 0], [-2, 2, 0]]], float)
    up = np.tile((0.0, 0.0, 1.0), (2, 3, 1))
    faces, normals = box((-0.2, -0.2, 0.0), (0.2, 0.2, 0.4))
    return join_faces([(floor, up, "floor"), (faces, normals, "box")], np.array([0.0, 0.0, 0.4]))
