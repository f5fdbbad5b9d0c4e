"""Estimate of the objects visible along a path, from a few rays per camera before rendering."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from nimbus.datagen.arrays import FloatArray, IndexArray, IntArray
from nimbus.datagen.episode.layout import Camera
from nimbus.datagen.geometry import cameras
from nimbus.datagen.navigate.scene_map import SceneMap

_WIDTH = 48
"""Width of a glimpse [px]."""
_BORDER = 2
"""Margin of the image that is ignored, because the lens and sensor models shift the image there [px]."""
EVERY = 4
"""Number of rows between glimpses."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Glimpses:
    """Fraction of an image that each of the N objects of a scene fills, at G rows of a path."""

    rows: IntArray
    """(G,) rows of the path."""
    shares: FloatArray
    """(G, N) largest fraction over all cameras."""

    def between(self, start: int, stop: int) -> FloatArray:
        """Return the fractions (g, N) at rows from ``start`` to before ``stop``."""
        return self.shares[(self.rows >= start) & (self.rows < stop)]


def look_along(place: SceneMap, views: Sequence[Camera], positions: FloatArray, wxyz: FloatArray) -> Glimpses:
    """Cast rays from all cameras along a path.

    Args:
        place: Scene with its collision mesh.
        views: Cameras on the body.
        positions: (T, 3) positions of the body [m].
        wxyz: (T, 4) orientations of the body.
    """
    count = len(positions)
    rows = np.unique(np.append(np.arange(0, count, EVERY), count - 1))
    things = {thing.name: number for number, thing in enumerate(place.scene.things)}
    of_face = np.concatenate(
        [np.full(len(part.triangles.faces), things[part.name], dtype=np.int32) for part in place.scene.parts]
    )
    shares = np.zeros((len(rows), len(things)))
    for camera in views:
        height = max(round(_WIDTH * camera.height / camera.width), 2 * _BORDER + 1)
        small = replace(camera, width=_WIDTH, height=height, distortion=(0.0, 0.0))
        places, turns = cameras.camera_poses(small, {camera.mount: 0}, positions[rows, None], wxyz[rows, None])
        faces = _first_faces(place, small, cameras.world_T_camera(places, turns))
        seen = np.where(faces >= 0, of_face[faces], -1)
        for number, pixels in enumerate(seen):
            counts = np.bincount(pixels[pixels >= 0], minlength=len(things))
            shares[number] = np.maximum(shares[number], counts / pixels.size)
    return Glimpses(rows=rows, shares=shares)


def _first_faces(place: SceneMap, camera: Camera, poses: FloatArray) -> IndexArray:
    """Return the faces (G, P) that the rays through P pixel centers hit, for camera poses (G, 4, 4) in OpenCV axes."""
    matrix = cameras.intrinsics(camera)
    y, x = np.mgrid[_BORDER : camera.height - _BORDER, _BORDER : camera.width - _BORDER] + 0.5
    rays = np.stack([(x - matrix[0, 2]) / matrix[0, 0], (y - matrix[1, 2]) / matrix[1, 1], np.ones_like(x)], -1)
    directions = np.einsum("gij,pj->gpi", poses[:, :3, :3], rays.reshape(-1, 3))
    origins = np.broadcast_to(poses[:, None, :3, 3], directions.shape)
    found = place.mesh.first_faces(origins.reshape(-1, 3), directions.reshape(-1, 3))
    return found.reshape(len(poses), -1)
