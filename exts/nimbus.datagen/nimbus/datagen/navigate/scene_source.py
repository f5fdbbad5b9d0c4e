"""Interface of the sources of scenes; each key of a task's ``scene:`` selects one."""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path
from typing import ClassVar, Self

from nimbus.datagen.files.strict_yaml import StrictModel
from nimbus.datagen.navigate.navigation_scene import NavigationScene


class SceneSource(StrictModel):
    """Base class of a source's settings, registered as ``scene`` under its key, such as ``homes``."""

    file_kind: ClassVar[str] = ""
    """Kind of the files that the settings name, in the fingerprint; empty for generated scenes."""

    @property
    def paths(self) -> tuple[Path, ...]:
        """Paths of the files that the settings name.

        Raises:
            InputError: A path or pattern matches no file.
        """
        return ()

    @property
    @abstractmethod
    def count(self) -> int:
        """Number of scenes of the source."""

    @abstractmethod
    def open(self, number: int) -> NavigationScene:
        """Open or generate a scene.

        Args:
            number: Number of the scene, from 0 to ``count`` - 1.

        Raises:
            InputError: The scene cannot be used.
        """

    @abstractmethod
    def fingerprint(self) -> dict[str, str]:
        """Return hashes or versions of everything that determines the scenes, by name."""

    def seen_from(self, folder: Path) -> Self:
        """Return a copy whose paths are relative to the working directory.

        Args:
            folder: Folder of the task file.
        """
        return self
