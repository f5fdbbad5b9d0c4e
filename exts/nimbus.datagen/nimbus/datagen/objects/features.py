"""Named points of an object: centers of cavities, origins of frames, keypoints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.objects.model import ObjectModel


def features(model: ObjectModel) -> dict[str, FloatArray]:
    """Points (3,) of an object by name, in its own frame [m]."""
    cavities = {name: (np.asarray(box)[0] + np.asarray(box)[1]) / 2 for name, box in model.cavities.items()}
    frames = {name: np.asarray(frame)[:3, 3] for name, frame in model.frames.items()}
    return cavities | frames | dict(model.keypoints)


def known_features(points: Mapping[str, Any]) -> list[str]:
    """Names of points that may follow the dot."""
    return sorted({"center", "top", *points})
