"""Scene of a task in the browser: layouts, samples, reach and plans."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from nimbus.datagen.ui.browser.player import Player, outcome_line
from nimbus.datagen.ui.layout_section import SAMPLE_COUNT

if TYPE_CHECKING:
    from nimbus.datagen.episode.layout import PhysicalLayout
    from nimbus.datagen.errors import Diagnostic
    from nimbus.datagen.tasks.task import Task
    from nimbus.datagen.ui.browser.scene_view import SceneView
    from nimbus.datagen.ui.preview import Preview


class BrowserScene:
    """View of a task in the page, with results in a line above the scrubber.

    Args:
        preview: Draws and plans.
        view: Shows regions, cameras, samples and reach.
        player: Shows one layout or motion.
        moved: Called with the id and the new pose of a region or camera that was dragged.
    """

    def __init__(self, preview: Preview, view: SceneView, player: Player, *, moved: Callable[[str, Any], None]) -> None:
        self._preview, self._view, self._player, self._moved = preview, view, player, moved
        self._seen: Task | None = None
        self.samples: list[PhysicalLayout] = []
        """Layouts of the last call of :meth:`sample`."""

    def outline(self, task: Task) -> None:
        """Update scene, regions and cameras after a change."""
        before, self._seen = self._seen, task
        if before is None or _bare_scene(before) != _bare_scene(task):
            self._player.show(self._preview.bare(task), "The robot at home; draw a layout to see objects.")
            before = None
        if before is None or before.regions != task.regions:
            self._view.show_regions(task.regions, self._preview.heights(task), self._move_region)
        if before is None or before.cameras != task.cameras:
            cameras = self._preview.cameras(task)
            self._view.show_cameras(cameras, self._move_camera)
            self._player.look_through(cameras)

    def show_layout(self, task: Task, *, seed: int, index: int) -> str:
        """Show the layout of one episode."""
        look = self._preview.layout(task, seed=seed, index=index)
        count = len(look.layout.physical.objects) if look.layout else 0
        self._player.show(look, f"Episode {index}: {count} objects.")
        return ""

    def sample(self, task: Task, *, seed: int) -> str:
        """Mark the objects of many layouts."""
        begin = time.monotonic()
        self.samples = list(self._preview.samples(task, seed=seed, count=SAMPLE_COUNT))
        self._view.show_samples(self.samples)
        self._player.say(f"{len(self.samples)} layouts in {time.monotonic() - begin:.1f} s.")
        return ""

    def reach(self, task: Task) -> str:
        """Show the reach of the robot."""
        assets, heights = self._preview.assets(task), self._preview.heights(task)
        self._view.show_reach(
            assets.reach, {name: heights.get(region.on, 0.0) for name, region in task.regions.items()}
        )
        cells = [bool(cell) for found in assets.reach.values() for cell in found.cells.ravel()]
        self._player.say(f"{sum(cells)} of {len(cells)} cells of the regions are within reach.")
        return ""

    def clear(self, task: Task) -> str:
        """Remove samples and reach."""
        self._view.hide("samples")
        self._view.hide("reach")
        return ""

    def plan(self, task: Task, *, seed: int, index: int) -> str:
        """Plan and execute one attempt, and show its motion."""
        look = self._preview.plan(task, seed=seed, index=index)
        self._player.show(look, outcome_line(look.motion))
        return ""

    def photograph(self, task: Task) -> str:
        """Render the images of the current step again."""
        self._player.take_pictures()
        return ""

    def examine(self, task: Task) -> list[Diagnostic]:
        """Return the doctor's findings."""
        return self._preview.examine(task)

    def _move_region(self, name: str, x: float, y: float) -> None:
        self._moved(f"regions.{name}.center", [round(float(x), 3), round(float(y), 3)])

    def _move_camera(self, name: str, position: Any, wxyz: Any) -> None:
        self._moved(f"cameras.{name}.pose", {"position": position, "wxyz": wxyz})


def _bare_scene(task: Task) -> tuple[object, ...]:
    """Return the values that determine the appearance of the scene without objects."""
    return task.name, task.scene, task.robot, task.objects
