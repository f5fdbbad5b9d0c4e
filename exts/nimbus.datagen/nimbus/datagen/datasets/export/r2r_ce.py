"""Writer of R2R-CE's format, which VLN-CE and Habitat read: tasks with instructions, point goals and object goals.

In Habitat's world, y points up: (x, y, z) becomes (x, z, -y). Its agent looks along -z.
"""

from __future__ import annotations

import gzip
import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.datasets.export.discrete_actions import FORWARD, follow_in_steps
from nimbus.datagen.datasets.export.driven_path import DrivenEpisode, check_navigation, file_name, read_driven
from nimbus.datagen.datasets.export.parts import EpisodeParts
from nimbus.datagen.datasets.export.shards import Options
from nimbus.datagen.datasets.export.source import Source
from nimbus.datagen.files.codec import to_json
from nimbus.datagen.store.episode_file.read import EpisodeFile

NEEDS_PARTS = False
NAME = "r2r-ce"
SPLIT = "train"
_RADIUS = {"r2r": 3.0, "pointnav": 0.2}
"""Distance to the goal that counts as success [m]."""
_NEAR_OBJECT = 1.0
"""Radius around a goal object in which the goal counts as reached [m]."""
_WAYPOINT = 1.0
"""Spacing of the points of the reference path [m]."""
_TOKENS = 200
"""Number of tokens of an instruction; shorter ones are padded with 0."""
_PAD, _UNKNOWN = "<pad>", "<unk>"


def write(source: Source, parts: EpisodeParts, tree: Path, options: Options) -> None:
    """Write a dataset into the subfolders ``r2r``, ``pointnav`` and ``objectnav`` of an empty folder.

    Args:
        source: Dataset to export.
        parts: Unused: the format contains no images.
        tree: Folder of the export.
        options: Unused.

    Raises:
        InputError: The source is a manipulation dataset, or an episode is damaged.
    """
    check_navigation(source, NAME)
    driven = []
    for item in source.stored:
        with EpisodeFile(item.path) as episode:
            driven.append(read_driven(item, episode, source))
    words = Counter(word for one in driven for word in tokenize(one.instruction))
    vocabulary = [_PAD, _UNKNOWN, *sorted(words)]
    numbers = {word: number for number, word in enumerate(vocabulary)}
    truth = {str(one.item.position): _truth(one) for one in driven}
    instructed = [_instructed(one, numbers) for one in driven]
    _write(tree, "r2r", {"episodes": instructed, "instruction_vocab": {"word_list": vocabulary}})
    _write(tree, "r2r", truth, suffix="_gt")
    _write(tree, "pointnav", {"episodes": [_to_point(one) for one in driven]})
    _write(tree, "pointnav", truth, suffix="_gt")
    to_objects = [one for one in driven if one.goal_class]
    if to_objects:
        classes = {name: number for number, name in enumerate(sorted({one.goal_class for one in to_objects}))}
        table = {
            "episodes": [_to_object(one) for one in to_objects],
            "goals_by_category": _object_goals(to_objects),
            "category_to_task_category_id": classes,
            "category_to_scene_annotation_category_id": classes,
        }
        _write(tree, "objectnav", table)


def to_habitat(points: FloatArray) -> list[Any]:
    """Convert points (..., 3) [m] to Habitat's frame; return nested lists."""
    x, y, z = np.moveaxis(np.asarray(points, dtype=float), -1, 0)
    return np.round(np.stack([x, z, -y], axis=-1), 6).tolist()


def to_habitat_turn(yaw: float) -> list[float]:
    """Return Habitat's rotation (quaternion xyzw) of an agent with heading ``yaw`` from the x axis [rad]."""
    half = 0.5 * (yaw - 0.5 * np.pi)
    return [0.0, round(float(np.sin(half)), 9), 0.0, round(float(np.cos(half)), 9)]


def tokenize(text: str) -> list[str]:
    """Split an instruction into words in lower case."""
    return re.findall(r"[^\W_]+(?:'[^\W_]+)?", text.lower())


def scene_id(one: DrivenEpisode) -> str:
    """Return the path of an episode's scene, relative to Habitat's ``data/scene_datasets``."""
    name = file_name(one.scene)
    return f"nimbus/{name}/{name}.glb"


def _start(one: DrivenEpisode) -> dict[str, Any]:
    return {
        "episode_id": str(one.item.position),
        "scene_id": scene_id(one),
        "start_position": to_habitat(one.positions[0]),
        "start_rotation": to_habitat_turn(float(one.yaws[0])),
        "info": {"geodesic_distance": round(one.geodesic, 6)},
    }


def _instructed(one: DrivenEpisode, numbers: dict[str, int]) -> dict[str, Any]:
    tokens = [numbers[word] for word in tokenize(one.instruction)][:_TOKENS]
    return _start(one) | {
        "trajectory_id": one.item.index,
        "goals": [{"position": to_habitat(one.positions[-1]), "radius": _RADIUS["r2r"]}],
        "instruction": {
            "instruction_text": one.instruction,
            "instruction_tokens": tokens + [0] * (_TOKENS - len(tokens)),
        },
        "reference_path": to_habitat(_waypoints(one.positions)),
    }


def _to_point(one: DrivenEpisode) -> dict[str, Any]:
    goal = {"position": to_habitat(one.positions[-1]), "radius": _RADIUS["pointnav"]}
    return _start(one) | {"goals": [goal], "shortest_paths": None, "start_room": None}


def _to_object(one: DrivenEpisode) -> dict[str, Any]:
    return _start(one) | {"goals": [], "object_category": one.goal_class, "shortest_paths": None, "start_room": None}


def _object_goals(driven: list[DrivenEpisode]) -> dict[str, list[dict[str, Any]]]:
    """Return the goal objects by scene and class; the ends of the paths to an object are its view points."""
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for one in driven:
        key = f"{scene_id(one).rpartition('/')[2]}_{one.goal_class}"
        things = found.setdefault(key, {})
        number = len(things)
        thing = things.setdefault(
            one.goal_name,
            {
                "object_id": number,
                "object_name": one.goal_name,
                "object_category": one.goal_class,
                "position": to_habitat(one.thing),
                "radius": _NEAR_OBJECT,
                "view_points": [],
            },
        )
        view = {"position": to_habitat(one.positions[-1]), "rotation": to_habitat_turn(float(one.yaws[-1]))}
        thing["view_points"].append({"agent_state": view, "iou": 0.0})
    return {key: list(things.values()) for key, things in sorted(found.items())}


def _truth(one: DrivenEpisode) -> dict[str, Any]:
    """Return the path of an episode as discrete actions; its heights are those of the nearest path points."""
    steps = follow_in_steps(one.positions[:, :2], float(one.yaws[0]))
    near = np.linalg.norm(one.positions[None, :, :2] - steps.positions[:, None], axis=2).argmin(axis=1)
    places = np.column_stack([steps.positions, one.positions[near, 2]])
    return {
        "actions": list(steps.actions),
        "locations": to_habitat(places),
        "forward_steps": steps.actions.count(FORWARD),
    }


def _waypoints(positions: FloatArray) -> FloatArray:
    """Return points (n, 3) of a path about 1 m apart, including both ends [m]."""
    along = np.append(0.0, np.cumsum(np.linalg.norm(np.diff(positions, axis=0), axis=1)))
    count = max(round(float(along[-1]) / _WAYPOINT), 1)
    places = np.linspace(0.0, along[-1], count + 1)
    return np.column_stack([np.interp(places, along, column) for column in positions.T])


def _write(tree: Path, task: str, table: dict[str, Any], *, suffix: str = "") -> None:
    path = tree / task / SPLIT / f"{SPLIT}{suffix}.json.gz"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(to_json(table).encode(), mtime=0))
