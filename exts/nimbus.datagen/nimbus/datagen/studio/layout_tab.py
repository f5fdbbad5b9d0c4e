"""The second tab: layouts as they are drawn, where the robot reaches, one attempt as it is planned."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from nimbus.datagen.episode.layout import PhysicalLayout
from nimbus.datagen.studio.errands import Errands
from nimbus.datagen.studio.player import Player, outcome_line
from nimbus.datagen.studio.preview import Preview
from nimbus.datagen.studio.scene_view import SceneView
from nimbus.datagen.tasks.task import Task

SAMPLE_COUNT = 50


class LayoutTab:
    """Samples, reach, plan.

    Args:
        server: A ``viser.ViserServer``.
        task: The task as it stands.
        preview: Draws and plans.
        view: Shows many layouts.
        player: Shows one.
        errands: Where long work is done.
    """

    def __init__(
        self,
        server: Any,
        task: Callable[[], Task],
        preview: Preview,
        view: SceneView,
        player: Player,
        errands: Errands,
    ) -> None:
        self._task, self._preview, self._view, self._player, self._errands = task, preview, view, player, errands
        self._samples: list[PhysicalLayout] = []
        gui = server.gui
        self._seed = gui.add_number("seed", 0, min=0, max=2**31 - 1, step=1)
        self._index = gui.add_number("episode", 0, min=0, max=10**7, step=1)
        draw = gui.add_button_group("layout", ("This one", "Next", f"Sample {SAMPLE_COUNT}", "Clear"))
        draw.on_click(lambda event: self._draw(event.target.value))
        more = gui.add_button_group("check", ("Reach", "Plan one"))
        more.on_click(lambda event: self._check(event.target.value))

    @property
    def samples(self) -> list[PhysicalLayout]:
        """The layouts that were drawn last."""
        return self._samples

    # What buttons do

    def _draw(self, what: str) -> None:
        if what == "Clear":
            self._view.hide("samples")
            self._view.hide("reach")
        elif what in ("This one", "Next"):
            self._index.value = int(self._index.value) + (what == "Next")
            self._errands.send("drawing a layout", self.draw_layout)
        else:
            self._errands.send(f"drawing {SAMPLE_COUNT} layouts", self.draw_samples)

    def _check(self, what: str) -> None:
        work = {"Reach": self.draw_reach, "Plan one": self.plan_one}[what]
        self._errands.send({"Plan one": "planning"}.get(what, what.lower()), work)

    def draw_layout(self) -> None:
        """Show the layout of the episode that is chosen."""
        task = self._task()
        look = self._preview.layout(task, seed=int(self._seed.value), index=int(self._index.value))
        count = len(look.layout.physical.objects) if look.layout else 0
        self._player.show(look, f"Episode {self._index.value}: {count} objects.")

    def draw_samples(self) -> None:
        """Mark the objects of many layouts."""
        begin, samples = time.monotonic(), []
        for layout in self._preview.samples(self._task(), seed=int(self._seed.value), count=SAMPLE_COUNT):
            samples.append(layout)
        self._samples = samples
        self._view.show_samples(samples)
        self._player.say(f"{len(samples)} layouts in {time.monotonic() - begin:.1f} s.")

    def draw_reach(self) -> None:
        """Show where the robot can work."""
        task = self._task()
        assets, heights = self._preview.assets(task), self._preview.heights(task)
        self._view.show_reach(
            assets.reach, {name: heights.get(region.on, 0.0) for name, region in task.regions.items()}
        )
        cells = [bool(cell) for found in assets.reach.values() for cell in found.cells.ravel()]
        self._player.say(f"{sum(cells)} of {len(cells)} cells of the regions are within reach.")

    def plan_one(self) -> None:
        """Plan and execute one attempt, and show its motion."""
        look = self._preview.plan(self._task(), seed=int(self._seed.value), index=int(self._index.value))
        self._player.show(look, outcome_line(look.motion))
