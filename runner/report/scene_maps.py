"""Maps of a navigation dataset's scenes: free area, paths, starts, goals, and the share that the paths cover."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nimbus.datagen.errors import InputError
from nimbus.datagen.media.pages import jpeg_uri
from nimbus.datagen.navigate.map_picture import COVERED, MapPaths, draw_map
from nimbus.datagen.store.episode_file.read import EpisodeFile
from nimbus.datagen.store.ledger.ledger import Attempt

if TYPE_CHECKING:
    from nimbus.datagen.navigate.free_space import FreeSpace

MOST_SCENES = 4
"""Largest number of mapped scenes, which are those with the most episodes."""
_MOST_PATHS = 150
"""Largest number of paths on one map."""


@dataclass(frozen=True, kw_only=True)
class MappedScene:
    """One map of the page."""

    name: str
    paths: int
    failed: int
    """Goals without a path."""
    note: str
    picture: str
    """Data address of the image."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ScenePaths(MapPaths):
    """Paths of one scene of a dataset."""

    name: str
    number: int


def map_scenes(folder: Path, plans: Iterable[Attempt]) -> list[MappedScene]:
    """Map the scenes with the most episodes; none where the plans have no goals in scenes.

    Args:
        folder: Folder of the dataset.
        plans: Attempts, one for each plan.
    """
    by_scene: dict[int, list[Attempt]] = defaultdict(list)
    for plan in plans:
        if isinstance(goal := _goal(plan), dict) and "number" in goal:
            by_scene[int(goal["number"])].append(plan)
    chosen = sorted(by_scene, key=lambda number: (-sum(plan.success for plan in by_scene[number]), number))
    found = []
    for number in chosen[:MOST_SCENES]:
        paths = _read(folder, number, by_scene[number])
        if paths.paths:
            found.append(_map(paths, _free_space(folder, by_scene[number], number)))
    return found


def _goal(plan: Attempt) -> Any:
    return plan.drawn.get("physical", {}).get("goal")


def _read(folder: Path, number: int, plans: list[Attempt]) -> ScenePaths:
    paths = []
    for plan in [plan for plan in plans if plan.path][:_MOST_PATHS]:
        try:
            with EpisodeFile(folder / plan.path) as episode:
                paths.append(episode.array("observations/body_positions")[:, 0].astype(float))
        except InputError:  # 'nimbus verify' reports the damaged file
            continue
    kept = [_goal(plan) for plan in plans if plan.success]
    failed = [_goal(plan)["start"][:2] for plan in plans if not plan.success]
    return ScenePaths(
        name=str(_goal(plans[0]).get("scene", number)),
        number=number,
        paths=paths,
        starts=np.array([goal["start"][:2] for goal in kept], dtype=float).reshape(-1, 2),
        goals=np.array([goal["goal"][:2] for goal in kept], dtype=float).reshape(-1, 2),
        failed=np.array(failed, dtype=float).reshape(-1, 2),
    )


def _free_space(folder: Path, plans: list[Attempt], number: int) -> FreeSpace | None:
    """Open the scene of stored episodes again; None if it is not on this machine, or has changed."""
    from nimbus.datagen.load.navigation_loader import open_navigation
    from nimbus.datagen.tasks.own_tasks import parse_stored
    from nimbus.datagen.tasks.stored_files import check_stored_files
    from nimbus.datagen.tasks.task import NavigationTask
    from nimbus.runner.system.threads import prepare_libraries

    try:
        with EpisodeFile(folder / next(plan.path for plan in plans if plan.path)) as episode:
            origin, name, where = episode.provenance, episode.layout().key.task, str(episode.path)
        prepare_libraries()
        task = parse_stored(origin, name=name, where=where)
        check_stored_files(task, origin.assets, where=where)
        return open_navigation(task, number).place.space if isinstance(task, NavigationTask) else None
    except InputError:  # a scan that has changed or is on another machine: the paths are drawn without it
        return None


def _map(found: ScenePaths, space: FreeSpace | None) -> MappedScene:
    picture, share = draw_map(found, space)
    note = "the scene is not on this machine: paths only"
    if space is not None and share is not None:
        note = f"{share:.0%} of {space.area:.0f} m² of free area within {COVERED * 100:.0f} cm of a path"
    return MappedScene(
        name=found.name, paths=len(found.paths), failed=len(found.failed), note=note, picture=jpeg_uri(picture)
    )
