"""Preview of a navigation task: maps of its scenes, one planned path, and images along the path."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nimbus.datagen.arrays import ImageArray
from nimbus.datagen.doctor.navigation import examine_navigation
from nimbus.datagen.episode.layout import EpisodeKey, Layout, PhysicalLayout, Vector
from nimbus.datagen.episode.observation import CameraFrames
from nimbus.datagen.episode.trajectory import Trajectory
from nimbus.datagen.errors import Diagnostic
from nimbus.datagen.execute.path_planner import plan_drive
from nimbus.datagen.load.navigation_loader import NavigationLoader
from nimbus.datagen.navigate.map_picture import COVERED, MapPaths, draw_map
from nimbus.datagen.navigate.navigation_scene import NavigationScene
from nimbus.datagen.randomize.goals import draw_views, sampler_of
from nimbus.datagen.render.scene_views import SceneViews, render_parts
from nimbus.datagen.tasks.navigation_assets import NavigationAssets
from nimbus.datagen.tasks.task import NavigationTask
from nimbus.datagen.ui.scene_look import SceneLook, motion_of

_HIDDEN = frozenset({"ceiling"})
"""Classes that would hide the rooms in a view from above."""


@dataclass(frozen=True, kw_only=True)
class SceneMapView:
    """Map of one scene with the first paths of a run."""

    picture: ImageArray
    """(H, W, 3), x to the right and y up."""
    line: str
    """One line with the name of the scene, counts, and the covered fraction of the free area."""


class NavigationPreview:
    """Preview that draws maps and plans paths; every call computes in the caller's thread, for the given task."""

    def __init__(self) -> None:
        self._loader: tuple[str, NavigationLoader] | None = None
        self._views: SceneViews | None = None

    def assets(self, task: NavigationTask, number: int) -> NavigationAssets:
        """Return a scene of a task with its free space; numbers continue with the first scene after the last one.

        Raises:
            InputError: The scene cannot be used.
        """
        if self._loader is None or self._loader[0] != task.text:
            self._loader = task.text, NavigationLoader(task)
        return self._loader[1].assets(number % task.source.count)

    def draw_map(self, task: NavigationTask, *, seed: int, number: int, count: int) -> SceneMapView:
        """Plan the first paths of a scene, and draw them on its free area.

        Args:
            task: The task.
            seed: Seed of the run.
            number: Number of the scene.
            count: Number of goals that are tried.
        """
        assets = self.assets(task, number)
        sampler = sampler_of(task, assets, seed=seed)
        paths, starts, goals, failed = [], [], [], []
        for rank in range(count):
            goal = sampler.goal(rank)
            drive = plan_drive(task, assets, PhysicalLayout(objects=(), drawn={"goal": goal.to_plain()}))
            if drive.outcome.success:
                paths.append(drive.body_positions[:, 0])
                starts.append(goal.start[:2])
                goals.append(goal.goal[:2])
            else:
                failed.append(goal.start[:2])
        space = assets.place.space
        found = MapPaths(
            paths=paths,
            starts=np.array(starts).reshape(-1, 2),
            goals=np.array(goals).reshape(-1, 2),
            failed=np.array(failed).reshape(-1, 2),
        )
        picture, share = draw_map(found, space)
        things = f"{len(assets.scene.rooms)} rooms, {len(assets.scene.goals)} things, {space.area:.0f} m² of free area"
        near = f"{share or 0.0:.0%} of the free area within {COVERED * 100:.0f} cm of a path"
        line = f"{assets.scene.name}: {things}; {len(paths)} of {count} goals have a path, {near}"
        return SceneMapView(picture=picture, line=line)

    def plan(self, task: NavigationTask, *, seed: int, index: int) -> tuple[SceneLook, Trajectory]:
        """Plan the path of an episode in the same way as a run."""
        number, rank = task.address(index)
        assets = self.assets(task, number)
        goal = sampler_of(task, assets, seed=seed).goal(rank)
        physical = PhysicalLayout(objects=(), drawn={"goal": goal.to_plain()})
        drive = plan_drive(task, assets, physical)
        key = EpisodeKey(task=task.name, task_hash=task.content_hash, seed=seed, index=index)
        layout = Layout(key=key, physical=physical, visual=draw_views(task, assets.scene, physical, key=key))
        return self.look(task, layout, drive), drive

    def look(self, task: NavigationTask, layout: Layout, drive: Trajectory) -> SceneLook:
        """Return the scene of an episode without ceilings, with the motion through it."""
        scene = self.assets(task, task.address(layout.key.index)[0]).scene
        hidden = {thing.name for thing in scene.things if thing.object_class in _HIDDEN}
        parts = tuple(part for part in render_parts(scene) if part.instance not in hidden)
        return SceneLook(parts=parts, layout=layout, motion=motion_of(drive), view=_view_from_above(scene))

    def pictures(self, task: NavigationTask, look: SceneLook, drive: Trajectory, step: int) -> dict[str, CameraFrames]:
        """Render the images of the task's cameras in one step of a planned path."""
        if look.layout is None:
            return {}
        if self._views is None:
            self._views = SceneViews()
        number, _ = task.address(look.layout.key.index)
        self._views.load_episode(self.assets(task, number), look.layout, drive)
        rows = slice(step, step + 1)
        return self._views.render(drive.body_names, drive.body_positions[rows], drive.body_wxyz[rows], first_step=step)

    def examine(self, task: NavigationTask) -> list[Diagnostic]:
        """Return the doctor's findings."""
        return list(examine_navigation(task, probe=False).findings)


def _view_from_above(scene: NavigationScene) -> tuple[Vector, Vector]:
    """Return eye and target of a slanted view from above that shows all rooms."""
    low, high = scene.corners.reshape(-1, 3).min(axis=0), scene.corners.reshape(-1, 3).max(axis=0)
    size, (x, y) = float((high - low)[:2].max()), ((low + high)[:2] / 2).tolist()
    ground = float(low[2])
    return (x, y - 0.6 * size, ground + size), (x, y, ground)
