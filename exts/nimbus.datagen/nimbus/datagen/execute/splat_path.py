"""The Plan stage of navigation through splats: a path whose views leave the capture is a failed attempt."""

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
"""Opacity from which a pixel shows the capture."""
MOST_UNCOVERED = 0.1
"""Share of a view that may show less."""
_WIDTH = 64
"""[px] Width of the views that are looked at before anything is rendered."""
_SLOW = 240.0
"""[s] Preparing 3 million splats, and compiling kernels, takes less."""
_EVERY = 8
"""Rows between them."""


class SplatPathPlanner(PathPlanner):
    """Plans as :class:`PathPlanner`, then looks along the path in small views of the splats."""

    version: ClassVar[int] = 1

    def process(self, item: Randomized[NavigationAssets]) -> Iterator[Planned[NavigationAssets]]:
        """Yield the one attempt at a layout."""
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
        InputError: Its scenes have none.
    """
    if not isinstance(task.source, SplatSource):
        what = "the pipeline draws splats, and the task's scenes have none"
        raise InputError(
            what, where=f"{task.path}: scene", instead="write splats: or splat_homes:, or pipeline: nav_mesh"
        )
    return task.source


def check_views(outline: SplatRasterizer, layouts: tuple[Layout, ...], trajectory: Trajectory) -> Trajectory:
    """Make a trajectory a failed one where a view of it shows too much of nothing."""
    worst = 0.0
    rows = np.unique(np.append(np.arange(0, trajectory.step_count, _EVERY), trajectory.step_count - 1))
    places, turns = trajectory.body_positions[rows], trajectory.body_wxyz[rows]
    names = {name: row for row, name in enumerate(trajectory.body_names)}
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
