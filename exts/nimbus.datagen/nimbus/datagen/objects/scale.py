"""The same object larger or smaller."""

from __future__ import annotations

from dataclasses import replace

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.errors import InputError
from nimbus.datagen.objects.model import ObjectModel


def scale_object(model: ObjectModel, factor: float) -> ObjectModel:
    """A model with every length times a factor, at the same density: mass grows with its cube.

    Args:
        model: Without moving parts.
        factor: Above 0.

    Raises:
        InputError: It has moving parts.
    """
    if factor == 1.0:
        return model
    if model.parts:
        where = f"object library '{model.library}': kinds.{model.kind}"
        raise InputError("has moving parts and comes in one size", where=where, instead="leave out 'scale'")
    return replace(
        model,
        vertices=model.vertices * factor,
        convex_pieces=tuple((points * factor, faces) for points, faces in model.convex_pieces),
        mass=model.mass * factor**3,
        center_of_mass=model.center_of_mass * factor,
        inertia=model.inertia * factor**5,
        keypoints={name: point * factor for name, point in model.keypoints.items()},
        rest_poses=tuple(replace(pose, height=pose.height * factor) for pose in model.rest_poses),
        bounds=model.bounds * factor,
        frames={name: _moved(frame, factor) for name, frame in model.frames.items()},
        cavities={name: box * factor for name, box in model.cavities.items()},
        ball=model.ball * factor,
    )


def _moved(frame: FloatArray, factor: float) -> FloatArray:
    frame = frame.copy()
    frame[:3, 3] *= factor
    return frame
