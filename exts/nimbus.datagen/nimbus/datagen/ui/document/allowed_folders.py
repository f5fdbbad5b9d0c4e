"""Folders in which a page may open and save files; the user names them at the start."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from nimbus.datagen.errors import InputError


class AllowedFolders:
    """Allowed folders, including everything below them.

    Args:
        folders: The folders; symbolic links in their paths are resolved now.
    """

    def __init__(self, folders: Iterable[Path]) -> None:
        self._folders = list(dict.fromkeys(folder.expanduser().resolve() for folder in folders))

    def check(self, path: Path) -> None:
        """Refuse a path outside of the folders, directly or through a link.

        Args:
            path: Path of a file or folder, whether it exists or not.

        Raises:
            InputError: The path is outside all of the folders.
        """
        try:
            real = path.resolve()
        except (OSError, RuntimeError, ValueError) as error:
            raise InputError(f"invalid path: {error}", where=ascii(str(path)), instead="write another one") from None
        if not any(real.is_relative_to(folder) for folder in self._folders):
            places = ", ".join(map(str, self._folders))
            what = "outside the folders that the studio was started with"
            instead = f"choose one in {places}; 'nimbus studio --folder DIR' allows another folder"
            raise InputError(what, where=str(path), instead=instead)
