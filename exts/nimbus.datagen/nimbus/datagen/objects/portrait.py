"""Image of one object from above and in front, drawn without a simulator."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from PIL import Image as PillowImage
from PIL import ImageDraw

from nimbus.datagen.arrays import FloatArray, ImageArray
from nimbus.datagen.geometry.drawing import PaintedMesh, draw, view_axes
from nimbus.datagen.geometry.transforms import quat_from_axis_angle, quat_to_matrix
from nimbus.datagen.objects.articulated.pose import object_T_part
from nimbus.datagen.objects.model import ObjectModel

_TURN, _RISE = np.deg2rad(35.0), np.deg2rad(32.0)
"""Direction from the object to the camera: from the front to the right, and upward [rad]."""
_OPEN = 0.3
"""Default opening of the parts, as a fraction of their joint ranges."""
_DOT = 2.5
"""Radius of a mark [px]."""
_SAMPLES = 2
"""Number of samples along each side of a pixel."""


def portrait(
    model: ObjectModel,
    *,
    pixels: int = 160,
    span: float | None = None,
    turn: float = _TURN,
    rise: float = _RISE,
    opening: float = _OPEN,
    marks: Sequence[tuple[FloatArray, tuple[int, int, int]]] = (),
) -> ImageArray:
    """Render an object (pixels, pixels, 3) in parallel projection, with its front to the lower left.

    Args:
        model: Object to render.
        pixels: Width and height of the image [px].
        span: Width of the image [m]; by default the object fills the image.
        turn: Azimuth of the camera, from the front to the right [rad].
        rise: Elevation of the camera [rad].
        opening: Opening of the parts, as a fraction of their joint ranges.
        marks: Points (3,) in the object's frame [m] that get a dot, and the colors of the dots (sRGB).
    """
    mesh, axes = _whole(model, opening), view_axes(turn, rise)
    points = mesh.vertices @ axes.T
    low, high = points.min(axis=0), points.max(axis=0)
    span = span or 1.12 * float((high - low)[:2].max())
    image, _ = draw(mesh, axes, center=(low + high) / 2, span=span, size=pixels * _SAMPLES)
    small = image.reshape(pixels, _SAMPLES, pixels, _SAMPLES, 3).mean(axis=(1, 3))
    picture = PillowImage.fromarray((small + 0.5).astype(np.uint8))
    for place, color in marks:
        x, y = ((place @ _front(model) @ axes.T - (low + high) / 2)[:2] / span * pixels).tolist()
        dot = [pixels / 2 + x - _DOT, pixels / 2 - y - _DOT, pixels / 2 + x + _DOT, pixels / 2 - y + _DOT]
        ImageDraw.Draw(picture).ellipse(dot, fill=color)
    return np.asarray(picture)


def _front(model: ObjectModel) -> FloatArray:
    """Return a matrix (3, 3), applied from the right, that turns an articulated object's front to the camera."""
    return quat_to_matrix(quat_from_axis_angle((0, 0, 1), np.pi / 2)).T if model.parts else np.eye(3)


def _whole(model: ObjectModel, opening: float) -> PaintedMesh:
    """Return the object as one mesh, with its parts partly open and its front to the camera."""
    pieces = [(model.vertices, model.normals, model.uvs, model.faces)]
    for part in model.parts:
        low, high = part.joint.range
        place = object_T_part(part, low + opening * (high - low))
        turn = place[:3, :3].T
        pieces.append((part.vertices @ turn + place[:3, 3], part.normals @ turn, part.uvs, part.faces))
    starts = np.cumsum([0, *(len(piece[0]) for piece in pieces)])
    vertices, normals, uvs = (np.concatenate(arrays) for arrays in zip(*(piece[:3] for piece in pieces), strict=True))
    faces = np.concatenate([piece[3] + start for piece, start in zip(pieces, starts, strict=False)])
    front = _front(model)
    return PaintedMesh(vertices=vertices @ front, normals=normals @ front, uvs=uvs, faces=faces, texture=model.texture)
