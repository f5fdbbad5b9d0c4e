"""Preview of a task for a host, which writes layouts, reach, one planned attempt and images as files and markers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from nimbus.datagen.episode.layout import Camera, VisualLayout
from nimbus.datagen.errors import Diagnostic, InputError
from nimbus.datagen.geometry.cameras import camera_poses
from nimbus.datagen.load.engines import find_unsupported_task
from nimbus.datagen.simulate.newton import NewtonSimulation
from nimbus.datagen.simulate.physx_world import STEP_RATE
from nimbus.datagen.tasks.scene_assets import SceneAssets
from nimbus.datagen.tasks.task import Task
from nimbus.datagen.ui.layout_section import SAMPLE_COUNT
from nimbus.datagen.ui.preview import Preview
from nimbus.datagen.ui.remote.host_link import HostLink, LiveSimulation, StoppedByUser
from nimbus.datagen.ui.remote.messages import CameraMarker, Marker, RegionMarker, StageView, ViewportMarkers
from nimbus.datagen.ui.scene_look import PreviewMotion, SceneLook
from nimbus.datagen.usd.layout_export import BodyMotion, write_layout_stage
from nimbus.datagen.usd.stacked_steps import write_steps
from nimbus.datagen.usd.stage_changes import write_stage_changes

_SPOT = 0.012
"""Side length of an object's marker [m]."""


class ScenePreview:
    """Preview that draws and plans; every call uses the task that it gets.

    Args:
        folder: Folder for stages and images.
        preview: Computes the content.
        link: Link to the stage that the host has open.
    """

    def __init__(self, folder: Path, *, preview: Preview | None = None, link: HostLink | None = None) -> None:
        self._folder, self._preview = folder, preview or Preview()
        self._link = link or HostLink()
        self._live: LiveSimulation | None = None
        """Simulation of the last live plan, whose files the host has open."""
        self._count = 0
        self._look: SceneLook | None = None
        self._stacked = False
        self._outlined: object = None
        """Parts of the task from which the markers of regions and cameras were made."""
        self.stage: StageView | None = None
        self.variation = ""
        """Layer that changes the stage; empty for the original stage."""
        self.markers = ViewportMarkers()
        self.pictures: dict[str, str] = {}
        """Image files by camera."""

    def examine(self, task: Task) -> list[Diagnostic]:
        """Return the doctor's findings."""
        return self._preview.examine(task)

    def show_layout(self, task: Task, *, seed: int, index: int) -> str:
        """Write one layout as a stage; return a one-line summary."""
        look = self._preview.layout(task, seed=seed, index=index)
        self._show(task, look)
        count = len(look.layout.physical.objects) if look.layout else 0
        return f"episode {index}: {count} objects"

    def plan(self, task: Task, *, seed: int, index: int) -> str:
        """Plan and execute one attempt as an animation; return its outcome in one line."""
        look = self._preview.plan(task, seed=seed, index=index)
        self._show(task, look)
        return _outcome_line(look)

    @property
    def stop_count(self) -> int:
        """Number of stops so far."""
        return self._link.stop_count

    def plan_live(self, task: Task, *, seed: int, index: int, stops_before: int) -> str:
        """Plan one attempt, and execute it with PhysX in the stage that the host opens for it.

        Args:
            task: The task.
            seed: Seed of the layouts.
            index: Number of the layout.
            stops_before: Value of :attr:`stop_count` at the request; a later stop ends the plan, even before it begins.

        Raises:
            InputError: PhysX cannot run the task, or the host cannot open the stage.
        """
        if why := find_unsupported_task(task):
            raise InputError(why, where=str(task.path), instead="use Plan one, which executes in MuJoCo")
        link = self._link
        link.begin(stops_before)
        if link.is_stopped:
            return "stopped before it began"

        def simulate(assets: SceneAssets, visual: VisualLayout) -> NewtonSimulation:
            """Make the simulation of the stage that the host opens."""
            self._live = LiveSimulation(assets, visual, link, rate=task.rate)
            return self._live

        try:
            self._look = self._preview.plan(task, seed=seed, index=index, simulate=simulate)
        except StoppedByUser:
            steps = self._live.hosted.step_count if self._live and self._live.hosted else 0
            return f"stopped after {steps / STEP_RATE:.1f} s"
        finally:
            link.end()
            self.stage, self.variation = None, ""
        return f"in PhysX: {_outcome_line(self._look)}"

    def stop(self) -> None:
        """End a live plan before its next step of physics, and a waiting one before it begins."""
        self._link.stop()

    def vary(self, task: Task, *, seed: int, index: int) -> str:
        """Write the layer that changes the open stage to the layout of an episode."""
        if self.stage is None or self.stage.duration > 0.0 or self._look is None or self._stacked:
            self.show_layout(task, seed=seed, index=max(0, index - 1))
        assert self.stage is not None
        look = self._preview.layout(task, seed=seed, index=index)
        after = self._write(task, look)
        layer = after.with_name(f"{after.stem}-changes.usda")
        changed = write_stage_changes(layer, before=Path(self.stage.path), after=after)
        self._look, self.variation = look, str(layer)
        return f"episode {index} in place: {changed} prims changed"

    def restore(self, task: Task) -> str:
        """Show the original stage."""
        self.variation = ""
        return ""

    def stack(self, task: Task, *, count: int) -> str:
        """Show steps of the last motion, evenly spaced, as regions of one stage.

        Raises:
            InputError: There is no planned motion yet.
        """
        look = self._look
        if look is None or look.layout is None or look.motion.step_count < 2:
            raise InputError("there is no motion to show", instead="press Plan one first")
        motion, assets = look.motion, self._preview.assets(task)
        rows = np.unique(np.linspace(0, motion.step_count - 1, count).round().astype(int))
        self._count += 1
        folder = self._folder / f"{self._count:05d}-stacked"
        path = write_steps(folder, assets.stage, assets.robot, look.layout, _rows(motion, rows))
        self.stage, self.variation, self._stacked = StageView(path=str(path), duration=0.0), "", True
        self.markers = ViewportMarkers()
        self._outlined = None
        return f"{len(rows)} steps of {motion.step_count} side by side"

    def sample(self, task: Task, *, seed: int) -> str:
        """Mark the start positions of the objects of many layouts."""
        layouts = list(self._preview.samples(task, seed=seed, count=SAMPLE_COUNT))
        spots = [Marker(kind="sample", position=item.position, size=_SPOT) for one in layouts for item in one.objects]
        self._mark(task, spots)
        return f"{len(layouts)} layouts, {len(spots)} objects"

    def reach(self, task: Task) -> str:
        """Mark the cells at which the tool can point down."""
        assets, heights = self._preview.assets(task), self._preview.heights(task)
        spots = [
            spot
            for name, found in assets.reach.items()
            for spot in _cells(found, heights.get(task.regions[name].on, 0.0) if name in task.regions else 0.0)
        ]
        self._mark(task, spots)
        reached = sum(spot.kind == "reached" for spot in spots)
        return f"{reached} of {len(spots)} cells of the regions are within reach"

    def clear(self, task: Task) -> str:
        """Remove the markers of samples and reach."""
        self._mark(task, [])
        return ""

    def photograph(self, task: Task) -> str:
        """Render the cameras' images of the first step shown."""
        from PIL import Image

        if self._look is None or self._look.layout is None:
            self.show_layout(task, seed=0, index=0)
        assert self._look is not None
        self._count += 1
        for name, frames in self._preview.pictures(task, self._look, 0).items():
            path = self._folder / f"{self._count:05d}-{name}.png"
            Image.fromarray(frames.rgb[0]).save(path)
            self.pictures = self.pictures | {name: str(path)}
        return f"{len(self.pictures)} pictures"

    def outline(self, task: Task) -> None:
        """Draw regions and cameras at their current positions."""
        outlined = task.path, task.scene, task.robot, task.regions, task.cameras
        if outlined != self._outlined:
            self._mark(task, list(self.markers.spots))
            self._outlined = outlined

    def _show(self, task: Task, look: SceneLook) -> None:
        path = self._write(task, look)
        duration = (look.motion.step_count - 1) / look.motion.rate
        self._look, self.variation, self._stacked = look, "", False
        self.stage = StageView(path=str(path), duration=duration)
        self._mark(task, list(self.markers.spots))

    def _write(self, task: Task, look: SceneLook) -> Path:
        """Write the stage of a look to a new file."""
        assert look.layout is not None
        self._count += 1
        motion, assets = look.motion, self._preview.assets(task)
        path = self._folder / f"{self._count:05d}-{task.name}.usda"
        moved = BodyMotion(names=motion.names, positions=motion.positions, wxyz=motion.wxyz, rate=motion.rate)
        write_layout_stage(path, assets.stage, assets.robot, look.layout, moved)
        return path

    def _mark(self, task: Task, spots: list[Marker]) -> None:
        heights = self._preview.heights(task)
        regions = tuple(
            RegionMarker(
                id=f"regions.{name}.center",
                name=name,
                center=(*region.center, heights.get(region.on, 0.0)),
                size=region.size,
            )
            for name, region in task.regions.items()
        )
        look = self._preview.bare(task)
        cameras = tuple(_frustum(camera, look) for camera in self._preview.cameras(task))
        self.markers = ViewportMarkers(regions=regions, cameras=cameras, spots=tuple(spots))


def _outcome_line(look: SceneLook) -> str:
    outcome, seconds = look.motion.outcome, look.motion.step_count / look.motion.rate
    if outcome is None or outcome.success:
        return f"success, {seconds:.1f} s"
    reason = outcome.reason.value if outcome.reason else ""
    return f"failed after {seconds:.1f} s in {outcome.phase}: {reason} {outcome.detail}".rstrip()


def _rows(motion: PreviewMotion, rows: Any) -> BodyMotion:
    return BodyMotion(names=motion.names, positions=motion.positions[rows], wxyz=motion.wxyz[rows], rate=motion.rate)


def _frustum(camera: Camera, look: SceneLook) -> CameraMarker:
    rows = {name: row for row, name in enumerate(look.motion.names)}
    positions, wxyz = camera_poses(camera, rows, look.motion.positions[:1], look.motion.wxyz[:1])
    return CameraMarker(
        id="" if camera.mount else f"cameras.{camera.name}.pose",
        name=camera.name,
        position=tuple(float(value) for value in positions[0]),
        wxyz=tuple(float(value) for value in wxyz[0]),
        vertical_fov=camera.vertical_fov,
        aspect=camera.width / camera.height,
    )


def _cells(found: Any, height: float) -> list[Marker]:
    side = float(found.to_plain((0.0, 0.0))["cell"])
    return [
        Marker(
            kind="reached" if found.cells[i, j] else "unreached",
            position=(
                float(found.origin[0] + (i + 0.5) * side),
                float(found.origin[1] + (j + 0.5) * side),
                height,
            ),
            size=0.85 * side,
        )
        for i, j in np.ndindex(*found.cells.shape)
    ]
