"""Opened scene of a navigation task, created by its load component and used by the later stages."""

from __future__ import annotations

from dataclasses import dataclass

from nimbus.datagen.navigate.navigation_scene import NavigationScene
from nimbus.datagen.navigate.scene_map import SceneMap
from nimbus.datagen.tasks.task import NavigationTask


@dataclass(frozen=True, kw_only=True, eq=False)
class NavigationAssets:
    """One scene of a task, mapped for its body."""

    task: NavigationTask
    number: int
    """Number of the scene in the task's source."""
    place: SceneMap

    @property
    def scene(self) -> NavigationScene:
        """The scene."""
        return self.place.scene
