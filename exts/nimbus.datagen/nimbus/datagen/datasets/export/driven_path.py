"""Navigation episode as needed by exports: the path of the body, its goal and its cameras."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.datasets.export.source import ExportItem, Source, read_signals
from nimbus.datagen.episode.layout import Camera
from nimbus.datagen.errors import InputError
from nimbus.datagen.store.episode_file.read import EpisodeFile

BASE = "base"
"""Name of the body whose path is exported. Its frame is on the floor, with x forward and z up."""
_JOINTS = ("x", "y", "yaw")
GL_T_CV = np.diag([1.0, -1.0, -1.0, 1.0])
"""Transform between the OpenCV and OpenGL axes of a camera; it is its own inverse."""


@dataclass(frozen=True, kw_only=True, eq=False)
class DrivenEpisode:
    """Stored drive through a scene, in T steps."""

    item: ExportItem
    scene: str
    """Name of the scene."""
    instruction: str
    positions: FloatArray
    """(T, 3) positions of the body on the floor [m]."""
    yaws: FloatArray
    """(T,) headings, counter-clockwise from x [rad]."""
    goal: FloatArray
    """(3,) position of the goal [m]."""
    thing: FloatArray
    """(3,) center of the goal object [m]; equal to ``goal`` if the goal is not an object."""
    goal_kind: str
    """``point``, ``room``, ``object`` or ``instruction``."""
    goal_name: str
    """Name of the object or room; empty for a point."""
    goal_class: str
    """Class of the goal object; empty if the goal is not an object."""
    geodesic: float
    """Length of the shortest path from the start to the goal [m]."""
    cameras: Mapping[str, Camera]


def check_navigation(source: Source, to: str) -> None:
    """Check that the episodes of a dataset are drives of a mobile base.

    Args:
        source: Dataset to export.
        to: Name of the format.

    Raises:
        InputError: The robot is not a mobile base, or an option changes its signals.
    """
    if source.joint_names != _JOINTS:
        joints = ", ".join(source.joint_names[:4]) + (", ..." if len(source.joint_names) > 4 else "")
        what = f"'{source.task}' is a manipulation dataset (joints {joints}); {to} is for navigation"
        raise InputError(what, where=f"--to {to}", instead="use --to lerobot, or export a navigation dataset")
    if source.views:
        what = f"{to} supports only the stored signals"
        raise InputError(what, where=f"--to {to}", instead="leave out the options that change signals")


def read_driven(item: ExportItem, episode: EpisodeFile, source: Source) -> DrivenEpisode:
    """Read the drive of an episode.

    Args:
        item: Item of the export.
        episode: Opened file of the item.
        source: Dataset to export.

    Raises:
        InputError: The episode has no body :data:`BASE` or no goal, or is damaged.
    """
    signals = read_signals(episode, source)
    names, layout = episode.texts("names/bodies"), episode.layout()
    goal: Any = layout.physical.drawn.get("goal")
    if BASE not in names or not isinstance(goal, Mapping):
        raise InputError(
            "the episode has no base or no goal", where=str(item.path), instead="run 'nimbus verify' for details"
        )
    row = names.index(BASE)
    w, x, y, z = np.moveaxis(episode.array("observations/body_wxyz")[:, row].astype(float), -1, 0)
    try:
        place = np.array(goal["goal"], dtype=float).reshape(3)
        thing = np.array(goal.get("facing") or goal["goal"], dtype=float).reshape(3)
        geodesic, scene = float(goal["geodesic"]), str(goal["scene"])
    except (KeyError, TypeError, ValueError) as error:
        what = f"the goal cannot be read: {type(error).__name__}: {error}"
        raise InputError(what, where=str(item.path), instead="run 'nimbus verify' for details") from None
    return DrivenEpisode(
        item=item,
        scene=scene,
        instruction=signals.instruction,
        positions=episode.array("observations/body_positions")[:, row].astype(float),
        yaws=np.arctan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z)),
        goal=place,
        thing=thing,
        goal_kind=str(goal.get("kind", "point")),
        goal_name=str(goal.get("name", "")),
        goal_class=str(goal.get("object_class", "")) if goal.get("facing") else "",
        geodesic=geodesic,
        cameras={camera.name: camera for camera in layout.visual.cameras},
    )


def file_name(text: str) -> str:
    """Return a name for a folder: a text in which ``_`` replaces unusable characters."""
    return "".join(letter if letter.isalnum() or letter in "-_." else "_" for letter in text).strip(".") or "scene"
