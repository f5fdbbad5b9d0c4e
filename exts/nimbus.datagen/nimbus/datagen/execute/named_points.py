"""Where the points of things are: their middle, their top, their keypoints, frames and cavities."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.errors import InputError, suggest
from nimbus.datagen.tasks.points import is_tool
from nimbus.datagen.tasks.references import Expression, RegionRef, resolve

if TYPE_CHECKING:
    from nimbus.datagen.execute.workcell import Workcell
    from nimbus.datagen.objects.model import ObjectModel

Float = NDArray[np.float64]


def resolve_point(cell: Workcell, names: Mapping[str, Any], thing: Expression, feature: str) -> Float:
    """A point (3,) of a thing in the world frame [m].

    Args:
        cell: The scene as it is now.
        names: What the names of the task stand for.
        thing: Leads to an object, a fixture or a region; ``tool`` is the robot's.
        feature: ``center``, ``top``, or the name of a keypoint, frame or cavity of the object.

    Raises:
        InputError: The thing has no such point.
    """
    if is_tool(thing, names):
        return cell.tool_pose()[:3, 3]
    found = resolve(thing, names)
    if isinstance(found, RegionRef):
        region = cell.regions[found.name]
        return np.array([*region.center, cell.stage.surfaces[region.on].upper[2]])
    low, high = cell.bounds(found.name)
    center = (low + high) / 2
    if feature == "center":
        return center
    if feature == "top":
        return np.array([*center[:2], high[2]])
    points = features(cell.model(found.name)) if found.name in cell.objects else {}
    if feature not in points:
        raise InputError(f"'{found.name}' has no point '{feature}'", instead=suggest(feature, known_features(points)))
    return (cell.pose(found.name) @ np.append(points[feature], 1.0))[:3]


def features(model: ObjectModel) -> dict[str, Float]:
    """Points (3,) of an object by name, in its own frame [m]."""
    cavities = {name: (np.asarray(box)[0] + np.asarray(box)[1]) / 2 for name, box in model.cavities.items()}
    frames = {name: np.asarray(frame)[:3, 3] for name, frame in model.frames.items()}
    return cavities | frames | dict(model.keypoints)


def known_features(points: Mapping[str, Any]) -> list[str]:
    """Names of points that may follow the dot."""
    return sorted({"center", "top", *points})
