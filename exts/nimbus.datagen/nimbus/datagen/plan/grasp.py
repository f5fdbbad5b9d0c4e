"""Antipodal grasps on a mesh for a parallel gripper, and their ranking for an object that lies somewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Float = NDArray[np.float64]

PAD_HALF_WIDTH = 0.00875
"""Half of a finger pad along the tool's x [m]."""
PAD_HALF_HEIGHT = 0.009
"""Half of a finger pad along the tool's z [m]."""

PAD_SHIFTS = (0.0, 0.006)
"""How far the hand is drawn back from having the contact in the middle of its pads [m]: flat things need it."""
MIN_SUPPORT = 0.25
"""Share of the pads that must meet the surface: edges and tips are no good."""
SUPPORT_DEPTH = 1.5e-3
"""How far from the contact the surface still meets the pad [m]."""


@dataclass(frozen=True, kw_only=True)
class Grasp:
    """One way to hold an object: the tool's z points at it, its y from finger to finger."""

    object_T_tool: Float
    """(4, 4) tool frame, in the middle between the pads, in the object's frame"""
    width: float
    """Distance of the contacts [m]"""
    score: float
    """0 to 1, for the object alone"""


def sample_grasps(
    vertices: ArrayLike,
    faces: ArrayLike,
    *,
    rng: np.random.Generator,
    center_of_mass: ArrayLike | None = None,
    max_width: float = 0.078,
    min_width: float = 0.004,
    finger_depth: float = 0.036,
    friction_angle: float = 0.5,
    count: int = 800,
    axes: int = 800,
    approaches: int = 12,
) -> list[Grasp]:
    """Sample antipodal grasps, best first.

    Rays start at random points of the surface, against the normal there; where they leave the mesh is the opposite
    contact. Around each such axis the hand may come from several directions.

    Args:
        vertices: (n, 3) closed mesh [m].
        faces: (m, 3) triangles.
        rng: Decides the samples.
        center_of_mass: (3,), default the middle of the bounding box.
        max_width: Largest distance of the contacts [m].
        min_width: Smallest one.
        finger_depth: How deep an object may reach between the fingers, from the pads' middle to the palm [m].
        friction_angle: Largest angle between the axis and the normals of its two contacts [rad].
        count: Stop when there are so many grasps.
        axes: Axes to try at most.
        approaches: Directions to try around each axis.
    """
    mesh = _Triangles(np.asarray(vertices, dtype=float), np.asarray(faces, dtype=int))
    middle = 0.5 * (mesh.points.min(axis=(0, 1)) + mesh.points.max(axis=(0, 1)))
    center = middle if center_of_mass is None else np.asarray(center_of_mass, dtype=float)
    radius = float(np.linalg.norm(mesh.points.reshape(-1, 3) - center, axis=1).max())
    least = float(np.cos(friction_angle))
    grasps: list[Grasp] = []
    points, normals = mesh.sample(axes, rng)
    tilts = rng.normal(scale=0.2 * friction_angle, size=points.shape)
    turns = rng.uniform(0.0, 2 * np.pi / approaches, size=axes)
    for point, normal, tilt, turn in zip(points, normals, tilts, turns, strict=True):
        axis = -normal + tilt - (tilt @ normal) * normal
        axis /= np.linalg.norm(axis)
        contact = mesh.opposite(point, axis)
        if contact is None or not min_width <= contact[0] <= max_width:
            continue
        width, far_normal = contact
        alignment = float(min(-axis @ normal, axis @ far_normal))
        if alignment < least:
            continue
        between = point + 0.5 * width * axis
        near = 1.0 - min(1.0, float(np.linalg.norm(between - center)) / radius)
        roomy = min(1.0, (max_width - width) / 0.02)
        score = 0.3 * (alignment - least) / (1.0 - least) + 0.3 * near + 0.1 * roomy
        angles = turn + 2 * np.pi / approaches * np.arange(approaches)
        poses = [_tool_pose(between, axis, angle, shift) for angle in angles for shift in PAD_SHIFTS]
        for pose, support in zip(poses, mesh.pad_support(poses, width), strict=True):
            if support >= MIN_SUPPORT and mesh.depth(pose) <= finger_depth:
                grasps.append(Grasp(object_T_tool=pose, width=width, score=score + 0.3 * float(support)))
        if len(grasps) >= count:
            break
    return sorted(grasps, key=lambda grasp: -grasp.score)


def rank_for_pose(
    grasps: Sequence[Grasp],
    world_T_object: ArrayLike,
    *,
    max_tilt: float = 1.0,
    table_height: float = 0.0,
    pad_clearance: float = 0.001,
    top_down_weight: float = 0.6,
) -> list[Grasp]:
    """Order grasps for an object where it is: from above rather than from the side, and clear of the table.

    Args:
        grasps: Of the object.
        world_T_object: (4, 4)
        max_tilt: Largest angle between the approach and straight down [rad].
        table_height: Height of what the object lies on [m].
        pad_clearance: The pads stay so far above it [m].
        top_down_weight: How much a straight approach counts against the grasp's own score.
    """
    world = np.asarray(world_T_object, dtype=float)
    ranked: list[tuple[float, int, Grasp]] = []
    for index, grasp in enumerate(grasps):
        pose = world @ grasp.object_T_tool
        tilt = float(np.arccos(np.clip(-pose[2, 2], -1.0, 1.0)))
        lowest = pose[2, 3] - table_height - abs(pose[2, 2]) * PAD_HALF_HEIGHT - abs(pose[2, 0]) * PAD_HALF_WIDTH
        if tilt > max_tilt or lowest < pad_clearance:
            continue
        value = grasp.score - top_down_weight * tilt / max_tilt
        ranked.append((-value, index, grasp))
    return [grasp for *_, grasp in sorted(ranked, key=lambda item: item[:2])]


def _tool_pose(origin: Float, axis: Float, angle: float, shift: float) -> Float:
    """Tool frame with y along the axis, turned about it by an angle from an arbitrary start, and drawn back."""
    across, along = _basis(axis)
    approach = np.cos(angle) * across + np.sin(angle) * along
    pose = np.eye(4)
    pose[:3, 0], pose[:3, 1], pose[:3, 2], pose[:3, 3] = (
        np.cross(axis, approach),
        axis,
        approach,
        origin - shift * approach,
    )
    return pose


def _basis(axis: Float) -> tuple[Float, Float]:
    """Two unit vectors across an axis and each other."""
    across = np.asarray(np.cross(axis, np.eye(3)[np.abs(axis).argmin()]), dtype=float)
    across /= np.linalg.norm(across)
    return across, np.asarray(np.cross(axis, across), dtype=float)


class _Triangles:
    """A triangle mesh that rays are shot at."""

    def __init__(self, vertices: Float, faces: NDArray[np.int64]) -> None:
        self.points = vertices[faces]
        self._edges = self.points[:, 1] - self.points[:, 0], self.points[:, 2] - self.points[:, 0]
        cross = np.cross(*self._edges)
        double_area = np.linalg.norm(cross, axis=1)
        self.normals = cross / np.maximum(double_area, 1e-15)[:, None]
        self._share = np.cumsum(double_area) / double_area.sum()
        self._vertices = vertices

    def sample(self, count: int, rng: np.random.Generator) -> tuple[Float, Float]:
        """Points uniform on the surface, and the normals there."""
        face = np.minimum(np.searchsorted(self._share, rng.uniform(size=count)), len(self.points) - 1)
        u, v = rng.uniform(size=(2, count, 1))
        u, v = np.where(u + v > 1, 1 - u, u), np.where(u + v > 1, 1 - v, v)
        return self.points[face, 0] + u * self._edges[0][face] + v * self._edges[1][face], self.normals[face]

    def hits(self, origins: Float, direction: Float) -> tuple[Float, NDArray[np.bool_]]:
        """(R, m) distance to each triangle along parallel rays, and whether it is hit."""
        # Seen along the rays the triangles are flat: barycentric coordinates in that plane.
        across = np.column_stack(_basis(direction))
        corner, one, two = self.points[:, 0] @ across, self._edges[0] @ across, self._edges[1] @ across
        determinant = one[:, 0] * two[:, 1] - one[:, 1] * two[:, 0]
        inverse = np.where(np.abs(determinant) < 1e-14, 0.0, 1.0 / np.where(determinant == 0, 1.0, determinant))
        at = origins @ across
        x, y = at[:, :1] - corner[:, 0], at[:, 1:] - corner[:, 1]
        u = (x * two[:, 1] - y * two[:, 0]) * inverse
        v = (y * one[:, 0] - x * one[:, 1]) * inverse
        depth = self.points[:, 0] @ direction + u * (self._edges[0] @ direction) + v * (self._edges[1] @ direction)
        inside = (u >= -1e-9) & (v >= -1e-9) & (u + v <= 1 + 1e-9) & (inverse != 0)
        return depth - (origins @ direction)[:, None], inside

    def opposite(self, point: Float, axis: Float) -> tuple[float, Float] | None:
        """Where a ray from the surface leaves the mesh for the last time: distance and normal."""
        distance, inside = self.hits(point[None], axis)
        ahead = inside[0] & (distance[0] > 1e-4)
        if not ahead.any():
            return None
        face = int(np.where(ahead, distance[0], -np.inf).argmax())
        # A surface behind the first contact would be in the finger's way.
        behind = inside[0] & (distance[0] < -1e-4)
        return None if behind.any() else (float(distance[0, face]), self.normals[face])

    def pad_support(self, poses: Sequence[Float], width: float) -> Float:
        """Share of both pads that meets the surface within 1.5 mm of the contact's depth, for poses with one y axis."""
        x, z = (axis.reshape(-1, 1) for axis in np.meshgrid(PAD_HALF_WIDTH * _GRID, PAD_HALF_HEIGHT * _GRID))
        points = np.vstack([pose[:3, 3] + x * pose[:3, 0] + z * pose[:3, 2] for pose in poses])
        distance, inside = self.hits(points, poses[0][:3, 1])
        left = np.where(inside, distance, np.inf).min(axis=1)
        right = np.where(inside, distance, -np.inf).max(axis=1)
        near = (np.abs(left + 0.5 * width) < SUPPORT_DEPTH) * 0.5 + (np.abs(right - 0.5 * width) < SUPPORT_DEPTH) * 0.5
        return near.reshape(len(poses), -1).mean(axis=1)

    def depth(self, pose: Float) -> float:
        """How far the mesh reaches from the pads' middle towards the palm, within the width of the hand [m]."""
        local = (self._vertices - pose[:3, 3]) @ pose[:3, :3]
        between = np.abs(local[:, 0]) < 0.02
        return float(-local[between, 2].min(initial=0.0))


_GRID = np.array([-0.8, 0.0, 0.8])
