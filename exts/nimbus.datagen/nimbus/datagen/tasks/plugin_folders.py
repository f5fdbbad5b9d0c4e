"""Folders of ``--skills`` as Python packages, so that their files can share code: ``from ._shared import …``."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType

from nimbus.datagen.files.bounded import check_regular

_PREFIX = "nimbus_skills."


def module_name(path: Path) -> str:
    """Return the name under which a file of a folder is imported; it makes the folder a package.

    Args:
        path: Absolute path of the file.
    """
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
    name = _PREFIX + re.sub(r"\W", "_", "_".join(path.parent.parts[1:]))
    while name in sys.modules and sys.modules[name].__path__ != [str(path.parent)]:
        name += "_"  # ``a/b_c`` and ``a_b/c`` differ
    if name not in sys.modules:
        package = sys.modules[name] = ModuleType(name)
        package.__path__ = [str(path.parent)]
    return f"{name}.{path.stem.replace('.', '_')}"


def is_of_folder(module: str) -> bool:
    """Return True for the name of a module that was imported from a folder of ``--skills``."""
    return module.startswith(_PREFIX)


def forget_modules(names: Iterable[str]) -> None:
    """Forget those of some modules that come from folders of ``--skills``, so that they can be imported again."""
    for name in filter(is_of_folder, list(names)):
        module = sys.modules.pop(name)
        package, _, stem = name.rpartition(".")
        if getattr(sys.modules.get(package), stem, None) is module:
            delattr(sys.modules[package], stem)


_LARGEST_SOURCE = 16 << 20
"""Largest source file [bytes]."""


class _UncachedLoader(SourceFileLoader):
    """Loader of a user's file that neither reads nor writes bytecode.

    Python uses existing bytecode if the file's size and the second of its change are the same, and would miss a quick
    change.
    """

    def path_stats(self, path: str) -> dict[str, float]:
        """Refuse, so that bytecode is neither read nor written.

        Raises:
            OSError: Always.
        """
        raise OSError("bytecode is not used")

    def get_data(self, path: str) -> bytes:
        """Read a source file.

        Raises:
            InputError: It is not a regular file, such as a link to an endless device, or it is too large.
        """
        check_regular(Path(path), limit=_LARGEST_SOURCE)
        return super().get_data(path)


class _Finder(MetaPathFinder):
    """Finder of the modules of these packages: their source files and subfolders with ``__init__.py``.

    No other module is found there, so that the hash of a plug-in covers every module that a relative import can load.
    """

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the file of a module; None for modules of other packages.

        Raises:
            ModuleNotFoundError: The folder has no such module.
        """
        if path is None or not is_of_folder(fullname):
            return None
        folder, stem = Path(path[0]), fullname.rpartition(".")[2]
        files = [file for file in folder.glob("*.py") if file.stem.replace(".", "_") == stem]
        if (folder / stem / "__init__.py").is_file():
            files, inside = [folder / stem / "__init__.py"], [str(folder / stem)]
        else:
            inside = None
        if not files:
            raise ModuleNotFoundError(f"no file {stem}.py in {folder}", name=fullname)
        file = str(files[0])
        loader = _UncachedLoader(fullname, file)
        return spec_from_file_location(fullname, file, loader=loader, submodule_search_locations=inside)
