"""Scenes of a navigation task in the browser: maps in the page, and planned paths in the 3-D view."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nimbus.datagen.ui.browser.player import Player, outcome_line
from nimbus.datagen.ui.navigation_preview import NavigationPreview

if TYPE_CHECKING:
    from nimbus.datagen.errors import Diagnostic
    from nimbus.datagen.tasks.task import NavigationTask


class BrowserNavigation:
    """View of a navigation task in the page.

    Args:
        gui: ``viser.ViserServer.gui``.
        container: Container for the map.
        player: Shows a planned path.
    """

    def __init__(self, gui: Any, container: Any, player: Player) -> None:
        self._gui, self._container, self._player = gui, container, player
        self._preview = NavigationPreview()
        self._map: Any = None

    def begin(self, task: NavigationTask) -> None:
        """Show a hint instead of a map: opening a scene takes seconds, and happens only on request."""
        self._player.say("A navigation task: draw a map, or plan one path, under Layouts.")

    def draw_map(self, task: NavigationTask, *, seed: int, number: int, count: int) -> str:
        """Show the map of a scene below the buttons."""
        found = self._preview.draw_map(task, seed=seed, number=number, count=count)
        if self._map is None:
            with self._container:
                self._map = self._gui.add_image(found.picture, label="map", format="png", order=1000.0)
        else:
            self._map.image = found.picture
        return found.line

    def plan(self, task: NavigationTask, *, seed: int, index: int) -> str:
        """Plan the path of an episode, and show its motion and images."""
        look, drive = self._preview.plan(task, seed=seed, index=index)
        self._player.show(
            look,
            outcome_line(look.motion),
            recorded=lambda step: self._preview.pictures(task, look, drive, step),
        )
        return ""

    def examine(self, task: NavigationTask) -> list[Diagnostic]:
        """Return the doctor's findings."""
        return self._preview.examine(task)
