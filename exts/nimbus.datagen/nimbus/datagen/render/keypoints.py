"""Keypoints of objects and grippers: named points fixed to bodies, which are the same for every renderer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.episode.layout import PlacedObject, part_label
from nimbus.datagen.episode.observation import Keypoints, Labels
from nimbus.datagen.errors import InputError
from nimbus.datagen.objects.libraries import open_library
from nimbus.datagen.objects.model import features
from nimbus.datagen.render.render_inputs import ROBOT
from nimbus.datagen.robots.robot import Manipulator, Robot

_MOST = 10_000
"""Largest number of keypoints of an episode; 255 objects have fewer."""


def find_keypoints(objects: Sequence[PlacedObject], robot: Robot, labels: Labels) -> Keypoints:
    """Return the keypoints of an episode, object by object, then those of the grippers.

    An object has the named points of its model (``top``, ``handle``, …), six points on its surface (``x_min`` to
    ``z_max``), and points of its moving parts. A gripper has its tool frame, its hand and its fingers.

    Args:
        objects: Objects of the episode.
        robot: The robot.
        labels: Instances of the masks.

    Raises:
        InputError: The episode has too many keypoints.
    """
    found: list[tuple[str, str, str, FloatArray]] = []
    for item in objects:
        for part, name, place in _object_points(item.library, item.kind, item.variant, item.scale):
            body = part_label(item.name, part) if part else item.name
            instance = body if body in labels.instance_names else item.name
            found.append((f"{body}.{name}", body, instance, np.asarray(place)))
    found += [(name, body, ROBOT, place) for arm in robot.arms for name, body, place in _gripper_points(robot, arm)]
    if len(found) > _MOST:
        raise InputError(f"{len(found)} keypoints in one scene", instead="use fewer objects")
    index = {name: place for place, name in enumerate(labels.instance_names)}
    return Keypoints(
        names=tuple(name for name, *_ in found),
        bodies=tuple(body for _, body, _, _ in found),
        instances=np.array([index[name] for *_, name, _ in found], dtype=np.uint8),
        positions=np.array([place for *_, place in found], dtype=np.float64).reshape(-1, 3),
    )


def _gripper_points(robot: Robot, arm: Manipulator) -> Iterator[tuple[str, str, FloatArray]]:
    """Yield the name of each point of a gripper, its body, and its position in that body."""
    prefix = "gripper" if len(robot.arms) == 1 else f"{arm.name}_gripper"
    yield f"{prefix}.tool", arm.tool.link, np.array(arm.tool.position)
    yield f"{prefix}.hand", arm.tool.link, np.zeros(3)
    for number, link in enumerate(arm.gripper.fingers):
        yield f"{prefix}.finger_{number}", link, np.zeros(3)


@lru_cache(maxsize=512)
def _object_points(library: str, kind: str, variant: int, scale: float) -> tuple[tuple[str, str, FloatArray], ...]:
    """Return the moving part (empty for the base), name and position of each point of a model."""
    model = open_library(library).model(kind, variant, scale)
    found = [
        ("", name, place) for name, place in {**surface_points(model.vertices, model.faces), **features(model)}.items()
    ]
    for part in model.parts:
        points = surface_points(part.vertices, part.faces)
        points |= {name: np.asarray(frame)[:3, 3] for name, frame in part.frames.items()}
        points |= {f"handle_{number}": handle.position for number, handle in enumerate(part.handles)}
        points |= {f"press_{number}": press.position for number, press in enumerate(part.pressings)}
        found += [(part.name, name, place) for name, place in points.items()]
    return tuple(found)


def surface_points(vertices: FloatArray, faces: NDArray[np.integer]) -> dict[str, FloatArray]:
    """Return six points (3,) of a surface: the outermost ones on each axis through the center of its bounds [m].

    If an axis misses the surface, as for a ring, the vertex nearest to the center of that side of the bounds is used.

    Args:
        vertices: (n, 3) [m].
        faces: (m, 3) vertices of each triangle.
    """
    low, high = vertices.min(axis=0), vertices.max(axis=0)
    middle, corners = (low + high) / 2, vertices[faces]
    found = {}
    for axis, name in enumerate("xyz"):
        heights = _crossings(np.delete(corners, axis, axis=2), corners[..., axis], np.delete(middle, axis))
        for side, limit in (("min", low), ("max", high)):
            place = middle.copy()
            if len(heights):
                place[axis] = heights.min() if side == "min" else heights.max()
            else:
                place[axis] = limit[axis]
                place = vertices[np.argmin(np.linalg.norm(vertices - place, axis=1))].astype(np.float64)
            found[f"{name}_{side}"] = place
    return found


def _crossings(flat: FloatArray, heights: FloatArray, at: FloatArray) -> FloatArray:
    """Return the heights at which triangles cross a line along an axis through ``at`` (2,).

    Args:
        flat: (m, 3, 2) corners, projected along the axis.
        heights: (m, 3) coordinates of the corners along the axis.
        at: (2,) position of the line.
    """
    one, other, to = flat[:, 1] - flat[:, 0], flat[:, 2] - flat[:, 0], at - flat[:, 0]
    area = one[:, 0] * other[:, 1] - one[:, 1] * other[:, 0]
    with np.errstate(divide="ignore", invalid="ignore"):
        s = (to[:, 0] * other[:, 1] - to[:, 1] * other[:, 0]) / area
        t = (one[:, 0] * to[:, 1] - one[:, 1] * to[:, 0]) / area
        hit = (np.abs(area) > 1e-12) & (s >= -1e-9) & (t >= -1e-9) & (s + t <= 1 + 1e-9)
    s, t, heights = s[hit], t[hit], heights[hit]
    return heights[:, 0] + s * (heights[:, 1] - heights[:, 0]) + t * (heights[:, 2] - heights[:, 0])
