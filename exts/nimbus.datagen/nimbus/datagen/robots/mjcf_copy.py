"""Copy of an MJCF for MuJoCo, from which no name leads to another file of this machine.

MuJoCo's parser differs from Python's, and its rules for the folders of names are not documented. A model of another
user could therefore name files that no check finds. MuJoCo reads a copy of the files that were checked, far below a new
folder.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from xml.etree import ElementTree

from nimbus.datagen.errors import InputError
from nimbus.datagen.robots.model_folder import MJCF_FOLDERS, UPWARDS, MjcfFiles, is_file_name, path_in, read_part

_DEPTH = 4 * UPWARDS
"""Empty folders around the copy; a name goes up by at most twice :data:`UPWARDS`, with the folder of its assets."""


class MjcfCopy:
    """Copy of an MJCF and of the files that it names, at their absolute paths below a folder.

    Files that are no MJCF are links to those of the user.

    Args:
        found: The files; all have been checked.
        folder: New and empty folder.
    """

    def __init__(self, found: MjcfFiles, folder: Path) -> None:
        self._root = folder.resolve().joinpath(*["_"] * _DEPTH)
        self._found = found
        for part in found.parts:
            root = read_part(part)
            self._adapt(root, part)
            self.write(part, root)
        for file in found.others:
            place = self.place(file)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.symlink_to(file.resolve())

    def place(self, file: Path) -> Path:
        """Return the path of the copy of a file."""
        return Path(f"{self._root}{os.path.abspath(file)}")

    def original(self, text: str) -> str:
        """Return a text with the paths of the user's files instead of those of the copies."""
        return text.replace(str(self._root), "")

    def write(self, part: Path, root: ElementTree.Element) -> None:
        """Write an MJCF of the copy."""
        place = self.place(part)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(ElementTree.tostring(root, encoding="unicode"), encoding="utf-8")

    def _adapt(self, root: ElementTree.Element, part: Path) -> None:
        """Let absolute names, and those of attached models, begin in the copy."""
        for element in root.iter():
            for key, value in element.attrib.items():
                if key in MJCF_FOLDERS or is_file_name(key):
                    name = path_in(value, part)
                    is_model = element.tag == "model" and is_file_name(key)
                    element.set(key, str(self._model(name, part)) if is_model else self._rooted(name))

    def _rooted(self, name: str) -> str:
        return f"{self._root}{name}" if name.startswith("/") else name

    def _model(self, name: str, part: Path) -> Path:
        """Return the copy of an attached model, whose name MuJoCo would first look for in the current folder."""
        bases: Iterable[Path] = dict.fromkeys((part.parent, *(one.parent for one in self._found.parts)))
        for base in bases:
            if (file := Path(os.path.normpath(base / name))) in self._found.parts:
                return self.place(file)
        raise InputError(f"there is no file '{name}'", where=str(part), instead="write a path relative to this file")
