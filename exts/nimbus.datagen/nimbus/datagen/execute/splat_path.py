"""Plan stage of navigation through splats: a path whose views leave the captured space is a failed attempt."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar

import numpy as np

from nimbus.datagen.episode.layout import Camera, Layout
from nimbus.datagen.episode.trajectory import Outcome, Reason, Trajectory
from nimbus.datagen.errors import InputError
from nimbus.datagen.execute.path_planner import PathPlanner
from nimbus.datagen.geometry import cameras
from nimbus.datagen.navigate.splat_source import SplatSource
from nimbus.datagen.pipeline import NoSettings, register_component
from nimbus.datagen.progress import allow
from nimbus.datagen.splats.rasterizer import SplatRasterizer
from nimbus.datagen.stages import Planned, Randomized
from nimbus.datagen.tasks.navigation_assets import NavigationAssets
from nimbus.datagen.tasks.task import NavigationTask

COVERED = 0.9
"""Smallest opacity of a pixel that counts as covered by the splats."""
MOST_UNCOVERED = 0.1
"""Largest fraction of a view's pixels that may be uncovered."""
_WIDTH = 64
"""Width of the small views that are checked before anything is rendered [px]."""
_SLOW = 240.0
"""Upper bound on the time to prepare 3 million splats and to compile the kernels [s]."""
_EVERY = 8
"""Number of rows between two checked views."""


class SplatPathPlanner(PathPlanner):
    """Plans as :class:`PathPlanner` does, then checks small views of the splats along the path."""

    version: ClassVar[int] = 2

    def process(self, item: Randomized[NavigationAssets]) -> Iterator[Planned[NavigationAssets]]:
        """Yield the only attempt at a layout: a new plan, or the plan that is already stored."""
        for planned in super().process(item):
            trajectory = planned.trajectory
            if trajectory.outcome.success and item.scene.request.plan is None:
                assets = item.scene.assets
                with allow(_SLOW):
                    outline = splat_source(assets.task).outline(assets.number)
                trajectory = check_views(outline, item.layouts, trajectory)
            yield replace(planned, trajectory=trajectory)


register_component("plan", "splat_path", SplatPathPlanner, NoSettings)


def splat_source(task: NavigationTask) -> SplatSource:
    """Return the source of a task's splats.

    Raises:
        InputError: The task's scenes have no splats.
    """
    if not isinstance(task.source, SplatSource):
        what = "the pipeline draws splats, but the task's scenes have none"
        raise InputError(
            what, where=f"{task.path}: scene", instead="write splats: or splat_homes:, or pipeline: nav_mesh"
        )
    return task.source


def check_views(outline: SplatRasterizer, layouts: tuple[Layout, ...], trajectory: Trajectory) -> Trajectory:
    """Return the trajectory, marked as failed if splats leave too much of a view along it uncovered."""
    worst = 0.0
    rows = np.unique(np.append(np.arange(0, trajectory.step_count, _EVERY), trajectory.step_count - 1))
    places, turns = trajectory.body_positions[rows], trajectory.body_wxyz[rows]
    names = cameras.BodyRows(trajectory.body_names)
    for camera in {camera for layout in layouts for camera in _small(layout)}:
        alpha = outline.render(camera, *cameras.camera_poses(camera, names, places, turns)).alpha
        worst = max(worst, float((alpha < COVERED).mean(axis=(1, 2)).max()))
    if worst <= MOST_UNCOVERED:
        return trajectory
    detail = f"{worst:.0%} of a view is not covered, at most {MOST_UNCOVERED:.0%}"
    outcome = Outcome(success=False, phase="path", reason=Reason.OUTSIDE_CAPTURE, detail=detail)
    return replace(trajectory, outcome=outcome)


def _small(layout: Layout) -> Iterator[Camera]:
    for camera in layout.visual.cameras:
        height = max(round(_WIDTH * camera.height / camera.width), 1)
        yield replace(camera, width=_WIDTH, height=height, distortion=(0.0, 0.0))
