"""Maps of a navigation dataset's scenes: free area, paths, starts, goals, and the share that the paths cover."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image, ImageDraw

from nimbus.datagen.arrays import FloatArray, ImageArray
from nimbus.datagen.errors import InputError
from nimbus.datagen.media.pages import jpeg_uri
from nimbus.datagen.store.episode_file.read import EpisodeFile
from nimbus.datagen.store.ledger.ledger import Attempt

if TYPE_CHECKING:
    from nimbus.datagen.navigate.free_space import FreeSpace

MOST_SCENES = 4
"""Scenes that are mapped: those with the most episodes."""
_MOST_PATHS = 150
"""Paths on one map."""
_COVERED = 0.5
"""[m] Free area as near to a path is covered."""
_SIDE = 640
"""[px] Longer side of a map."""
_MARGIN = 0.5
"""[m] Around paths where the free area is not known."""
_PAPER, _BLOCKED, _FREE, _NEAR = (250, 250, 248), (222, 222, 226), (196, 205, 214), (176, 214, 186)
_PATH, _START, _GOAL, _FAILED = (60, 110, 200), (40, 140, 70), (200, 50, 60), (150, 150, 156)


@dataclass(frozen=True, kw_only=True)
class MappedScene:
    """One map of the page."""

    name: str
    paths: int
    failed: int
    """Goals without a path"""
    note: str
    picture: str
    """Address that holds it"""


@dataclass(frozen=True, kw_only=True, eq=False)
class ScenePaths:
    """Paths of one scene."""

    name: str
    number: int
    paths: Sequence[FloatArray]
    """(T, 3) each [m]"""
    starts: FloatArray
    """(n, 2) of all attempts [m]"""
    goals: FloatArray
    """(n, 2) [m]"""
    failed: FloatArray
    """(m, 2) starts of attempts without a path [m]"""


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
        except InputError:  # 'nimbus verify' names it
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
    """Open the scene of stored episodes again; None where it is not here."""
    from nimbus.datagen.load.navigation_loader import open_navigation
    from nimbus.datagen.tasks.task import NavigationTask, parse_any_task
    from nimbus.runner.system.threads import prepare_libraries

    try:
        with EpisodeFile(folder / next(plan.path for plan in plans if plan.path)) as episode:
            text, name = episode.provenance.task_text, episode.layout().key.task
        prepare_libraries()
        task = parse_any_task(text, name=name)
        return open_navigation(task, number).place.space if isinstance(task, NavigationTask) else None
    except InputError:  # a scan that is on another machine: the paths are drawn without it
        return None


def _map(found: ScenePaths, space: FreeSpace | None) -> MappedScene:
    if space is None:
        points = np.concatenate(found.paths)[:, :2]
        low, high = points.min(axis=0) - _MARGIN, points.max(axis=0) + _MARGIN
        scale = _SIDE / float((high - low).max())
        rows, columns = np.ceil((high - low) * scale).astype(int)
        ground = np.full((rows, columns, 3), _PAPER, dtype=np.uint8)
        note = "the scene is not here: paths alone"
    else:
        ground, share = _ground(found, space)
        low = np.array(space.origin)
        factor = max(1, _SIDE // max(ground.shape[:2]))
        ground = ground.repeat(factor, axis=0).repeat(factor, axis=1)
        scale = factor / space.cell
        note = f"{share:.0%} of {space.area:.0f} m² of free area within {_COVERED * 100:.0f} cm of a path"
    picture = _draw(ground, found, low, scale)
    return MappedScene(
        name=found.name, paths=len(found.paths), failed=len(found.failed), note=note, picture=jpeg_uri(picture)
    )


def _ground(found: ScenePaths, space: FreeSpace) -> tuple[ImageArray, float]:
    """Cells of a scene (X, Y, 3) by what they are, and the share of the free area that paths cover."""
    from scipy.spatial import KDTree

    nodes = space.main_nodes
    points = np.concatenate(found.paths)
    apart, _ = KDTree(points).query(space.positions[nodes], distance_upper_bound=2 * _COVERED)
    covered = apart <= _COVERED
    ground = np.full((*space.heights.shape[1:], 3), _PAPER, dtype=np.uint8)
    ground[np.isfinite(space.heights).any(axis=0)] = _BLOCKED
    _, i, j = space.nodes[nodes].T
    ground[i, j] = np.where(covered[:, None], _NEAR, _FREE)
    return ground, float(covered.mean())


def _draw(ground: ImageArray, found: ScenePaths, low: FloatArray, scale: float) -> ImageArray:
    """Draw paths onto cells: x to the right, y up."""
    image = Image.fromarray(np.ascontiguousarray(ground.transpose(1, 0, 2)[::-1]))
    draw, height = ImageDraw.Draw(image), image.height

    def pixel(point: FloatArray) -> tuple[float, float]:
        right, up = (point[:2] - low) * scale
        return float(right), float(height - up)

    for path in found.paths:
        draw.line([pixel(point) for point in path[::3]] + [pixel(path[-1])], fill=_PATH, width=1)
    for points, color, radius in ((found.failed, _FAILED, 3), (found.starts, _START, 3), (found.goals, _GOAL, 3)):
        for x, y in map(pixel, points):
            draw.ellipse((x - radius, y - radius, x + radius, y + radius), fill=color)
    return np.asarray(image)
