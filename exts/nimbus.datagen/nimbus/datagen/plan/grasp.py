"""Antipodal axes for a parallel gripper through a shape, and the grasps on them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nimbus.datagen.arrays import FloatArray

GRASP_VERSION = 1
"""Version of the grasp search; raised when its results change."""
_FINGER_ROOM = 0.006
"""Clearance of the open pads beyond the width that they close on [m]."""
_SAME_PLACE, _SAME_WAY = 0.008, 0.95
"""Distance along each axis [m], and cosine, within which two grasps count as the same."""


@dataclass(frozen=True, kw_only=True)
class GripperShape:
    """Dimensions of a parallel gripper that determine the shapes on which it can close, in the tool's frame [m]."""

    opening: float
    """Distance between the open pads."""
    pad_width: float
    """Extent of a pad along x."""
    pad_height: float
    """Extent of a pad along z; the tool's origin is at its center."""
    finger_thickness: float
    """Extent of a finger along y, outside its pad."""
    finger_depth: float
    """Distance from the tool's origin back to the palm."""

    @property
    def max_width(self) -> float:
        """Width of the widest object that fits between the open pads with clearance [m]."""
        return self.opening - _FINGER_ROOM


_SURFACE_POINTS, _DENSE_POINTS = 1500, 12_000


@dataclass(frozen=True, kw_only=True)
class GraspAxes:
    """Axes along which two pads could press on a shape from opposite sides; ``N`` axes in the shape's frame."""

    middles: FloatArray
    """(N, 3) points halfway between the contacts [m]."""
    directions: FloatArray
    """(N, 3) unit directions from one contact to the other."""
    widths: FloatArray
    """(N,) distances of the contacts [m]."""
    alignments: FloatArray
    """(N,) alignments of both surfaces with the pads, 0 to 1."""
    center: FloatArray
    """(3,) center of mass [m]."""
    radius: float
    """Radius of the shape about its center of mass [m]."""
    vertices: FloatArray
    surface: FloatArray
    """(P, 3) points uniform on the surface [m]."""
    density: float
    """Points per area [1/m²]."""
    dense_surface: NDArray[np.float32]
    """(P, 3) denser points, for measurements with low variance [m]."""
    gripper: GripperShape
    triangles: FloatArray
    """(m, 3, 3) corners of the faces [m]."""
    min_width: float
    """Smallest distance of contacts [m]."""
    friction_angle: float
    """Largest angle between an axis and the normals of its contacts [rad]."""
    open_inside: bool
    """True if a finger may reach into hollows of the shape."""

    @property
    def dense_density(self) -> float:
        """Points per area of the dense surface [1/m²]."""
        return self.density * len(self.dense_surface) / len(self.surface)

    def alignment_of(self, cosine: FloatArray) -> FloatArray:
        """Return the alignment of surfaces with the pads, 0 to 1, from the cosine of the larger angle to the axis."""
        least = np.cos(self.friction_angle)
        return (cosine - least) / (1.0 - least)


@dataclass(frozen=True, kw_only=True)
class Grasp:
    """Pose of the hand for holding an object: the tool's z points at it, its y from finger to finger."""

    world_T_tool: FloatArray
    """(4, 4) tool frame, centered between the pads."""
    object_T_tool: FloatArray
    """(4, 4) tool frame relative to the object."""
    width: float
    """Distance of the contacts [m]."""
    score: float

    @property
    def tilt(self) -> float:
        """Angle between the approach and straight down [rad]."""
        return float(np.arccos(np.clip(-self.world_T_tool[2, 2], -1.0, 1.0)))

    def resembles(self, other: Grasp) -> bool:
        """Return True if two grasps have nearly the same position and direction, with fingers swapped or not."""
        one, two = self.object_T_tool, other.object_T_tool
        if np.abs(one[:3, 3] - two[:3, 3]).max() > _SAME_PLACE:
            return False
        return bool(one[:3, 2] @ two[:3, 2] > _SAME_WAY and abs(one[:3, 1] @ two[:3, 1]) > _SAME_WAY)

    def find_alike(self, poses: FloatArray) -> NDArray[np.bool_]:
        """Return (K,) True for each ``object_T_tool``, (K, 4, 4), that this grasp resembles."""
        own = self.object_T_tool
        near = np.abs(poses[:, :3, 3] - own[:3, 3]).max(axis=1) <= _SAME_PLACE
        near &= poses[:, :3, 2] @ own[:3, 2] > _SAME_WAY
        return near & (np.abs(poses[:, :3, 1] @ own[:3, 1]) > _SAME_WAY)


def find_axes(
    vertices: ArrayLike,
    faces: ArrayLike,
    gripper: GripperShape,
    *,
    rng: np.random.Generator,
    center_of_mass: ArrayLike | None = None,
    min_width: float = 0.004,
    friction_angle: float = 0.42,
    count: int = 500,
    open_inside: bool = False,
) -> GraspAxes:
    """Sample antipodal axes of a closed mesh.

    Rays start at random points of the surface, roughly against the normal. The opposite contact is the point where a
    ray finally leaves the mesh. With ``open_inside`` it is the first point where the ray comes out with room for a
    finger beyond, for example on the other side of a cup's wall.

    Args:
        vertices: (n, 3) [m].
        faces: (m, 3) triangles.
        gripper: Gripper that closes on the shape.
        rng: Random generator of the samples.
        center_of_mass: (3,), by default the center of the bounding box.
        min_width: Smallest distance of the contacts [m].
        friction_angle: Largest angle between an axis and the normals of its two contacts [rad].
        count: Number of rays.
        open_inside: Allow a finger to reach into hollows of the mesh, which its contact geometry must leave open.
    """
    points = np.asarray(vertices, dtype=float)
    triangles = points[np.asarray(faces, dtype=int)]
    center = 0.5 * (points.min(axis=0) + points.max(axis=0)) if center_of_mass is None else np.asarray(center_of_mass)
    cross = np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0])
    double_area = np.linalg.norm(cross, axis=1)
    normals = cross / np.maximum(double_area, 1e-15)[:, None]
    origins, normals_there = _sample(triangles, normals, double_area, count, rng)
    # Directions vary inside the friction cone: pads need not press along the normal exactly.
    jitter = rng.normal(scale=0.3 * friction_angle, size=origins.shape)
    directions = jitter - normals_there * (1.0 + np.einsum("ij,ij->i", jitter, normals_there))[:, None]
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    width, far = _opposite(triangles, origins, directions, gripper if open_inside else None)
    near_alignment = -np.einsum("ij,ij->i", directions, normals_there)
    alignment = np.minimum(near_alignment, np.einsum("ij,ij->i", directions, normals[far]))
    good = (width >= min_width) & (width <= gripper.max_width) & (alignment >= np.cos(friction_angle))
    surface, _ = _sample(triangles, normals, double_area, _SURFACE_POINTS, rng)
    dense, _ = _sample(triangles, normals, double_area, _DENSE_POINTS, rng)
    return GraspAxes(
        middles=(origins + 0.5 * width[:, None] * directions)[good],
        directions=directions[good],
        widths=width[good],
        alignments=(alignment[good] - np.cos(friction_angle)) / (1.0 - np.cos(friction_angle)),
        center=np.asarray(center, dtype=float),
        radius=float(np.linalg.norm(points - center, axis=1).max()),
        vertices=points,
        surface=surface,
        density=_SURFACE_POINTS / (0.5 * double_area.sum()),
        dense_surface=dense.astype(np.float32),
        gripper=gripper,
        triangles=triangles,
        min_width=min_width,
        friction_angle=friction_angle,
        open_inside=open_inside,
    )


def _sample(
    triangles: FloatArray, normals: FloatArray, double_area: FloatArray, count: int, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Return points uniform on the surface, and their normals."""
    share = np.cumsum(double_area) / double_area.sum()
    face = np.minimum(np.searchsorted(share, rng.uniform(size=count)), len(triangles) - 1)
    u, v = rng.uniform(size=(2, count, 1))
    # Points of the unit square beyond its diagonal are mirrored into the triangle, which stays uniform.
    u, v = np.where(u + v > 1, 1 - u, u), np.where(u + v > 1, 1 - v, v)
    corner, one, two = (triangles[face, index] for index in range(3))
    return corner + u * (one - corner) + v * (two - corner), normals[face]


def _opposite(
    triangles: FloatArray, origins: FloatArray, directions: FloatArray, gripper: GripperShape | None
) -> tuple[FloatArray, NDArray[np.int64]]:
    """Return the distance of each ray's opposite contact, 0 for none, and its triangle.

    Rays and triangles are intersected after Moeller and Trumbore (1997).

    Args:
        triangles: (m, 3, 3) corners of a closed mesh.
        origins: (r, 3) points on the surface.
        directions: (r, 3) unit directions into the mesh.
        gripper: Gripper that may reach into hollows; None when none may, and the contact is the final exit of a ray.
    """
    corner = triangles[:, 0]
    one, two = triangles[:, 1] - corner, triangles[:, 2] - corner
    normal = np.cross(one, two)
    distance, face = np.zeros(len(origins)), np.zeros(len(origins), dtype=int)
    for index, (origin, direction) in enumerate(zip(origins, directions, strict=True)):
        determinant = -(normal @ direction)
        safe = np.where(np.abs(determinant) < 1e-15, np.inf, determinant)
        from_corner = origin - corner
        turned = np.cross(from_corner, direction)
        u = np.einsum("ij,ij->i", two, turned) / safe
        v = -np.einsum("ij,ij->i", one, turned) / safe
        t = np.einsum("ij,ij->i", normal, from_corner) / safe
        inside = (u >= 0) & (v >= 0) & (u + v <= 1) & np.isfinite(safe)
        behind = float(-t[inside & (t < -1e-4)].max(initial=-np.inf))
        ahead = np.where(inside & (t > 1e-4), t, 0.0)
        if gripper is None:
            if np.isfinite(behind):
                continue  # a surface behind the first contact would be in the finger's way
            face[index] = int(ahead.argmax())
        else:
            face[index] = _far_side(ahead, behind, gripper)
        distance[index] = ahead[face[index]]
    return distance, face


def _far_side(ahead: FloatArray, behind: float, gripper: GripperShape) -> int:
    """Return the triangle of the first surface ahead with room for the open fingers; otherwise one at distance 0.

    The fingers need room beyond that surface and behind the start.

    Args:
        ahead: (m,) distance to each triangle that the ray meets, 0 for the others [m].
        behind: Distance back to the nearest surface behind the start [m].
        gripper: Gripper whose fingers need room.
    """
    hits = np.flatnonzero(ahead)
    hits = hits[np.argsort(ahead[hits], kind="stable")]
    places = ahead[hits]
    beyond = np.append(places, np.inf)
    for place, hit in zip(places, hits, strict=True):
        room = 0.5 * (gripper.opening - place) + gripper.finger_thickness
        next_surface = float(beyond[np.searchsorted(beyond, place + 1e-5)])
        if next_surface - place >= room and behind >= room:
            return int(hit)
    return int(np.argmin(ahead))
