"""Sources of scenes: one class for each key of a task's ``scene:``."""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path
from typing import Self

from nimbus.datagen.files.strict_yaml import StrictModel
from nimbus.datagen.navigate.navigation_scene import NavigationScene


class SceneSource(StrictModel):
    """Settings of a source, registered as ``scene`` under its key, such as ``homes``."""

    @property
    @abstractmethod
    def count(self) -> int:
        """Number of its scenes."""

    @abstractmethod
    def open(self, number: int) -> NavigationScene:
        """Open a scene by its number, below ``count``.

        Raises:
            InputError: The scene is unusable.
        """

    @abstractmethod
    def fingerprint(self) -> dict[str, str]:
        """Hashes of everything that determines its scenes, by name."""

    def seen_from(self, folder: Path) -> Self:
        """Return a copy whose paths are relative to the working directory.

        Args:
            folder: Folder of the task file.
        """
        return self
