"""Where the points of things are: their middle, their top, their keypoints, frames and cavities."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.errors import InputError, suggest
from nimbus.datagen.objects.features import features, known_features
from nimbus.datagen.tasks.points import is_tool
from nimbus.datagen.tasks.references import Expression, RegionRef, resolve

if TYPE_CHECKING:
    from nimbus.datagen.tasks.workcell_interface import Workcell


def resolve_point(cell: Workcell, names: Mapping[str, Any], thing: Expression, feature: str) -> FloatArray:
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
