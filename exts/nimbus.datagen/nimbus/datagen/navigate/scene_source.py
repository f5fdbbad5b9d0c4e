"""Sources of scenes: one class for each key that a task's ``scene:`` may have."""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path
from typing import Self

from nimbus.datagen.files.strict_yaml import StrictModel
from nimbus.datagen.navigate.navigation_scene import NavigationScene


class SceneSource(StrictModel):
    """Settings of a source, registered as ``scene`` under the key that chooses it, such as ``homes``."""

    @property
    @abstractmethod
    def count(self) -> int:
        """Number of its scenes."""

    @abstractmethod
    def open(self, number: int) -> NavigationScene:
        """Open a scene by its number, below ``count``.

        Raises:
            InputError: It cannot be used, with the reason in one line.
        """

    @abstractmethod
    def fingerprint(self) -> dict[str, str]:
        """Hash of everything that decides its scenes, by name."""

    def seen_from(self, folder: Path) -> Self:
        """Return the same with its paths seen from the working directory.

        Args:
            folder: Folder of the task file.
        """
        return self
