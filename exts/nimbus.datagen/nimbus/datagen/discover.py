"""Finds what plugs in: importing a skill's file registers it."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import pkgutil
import sys
from collections.abc import Iterable
from pathlib import Path

from nimbus.datagen.errors import InputError

PACKAGES = ("nimbus.datagen.composites", "nimbus.skills", "nimbus.datagen.success", "nimbus.datagen.randomize")
"""Where the composites, skills, predicates and randomizers of Nimbus are; every module in them is imported."""


COMPONENTS = (
    "nimbus.datagen.usd.loader",
    "nimbus.datagen.randomize.tabletop",
    "nimbus.datagen.execute.planner",
    "nimbus.datagen.plan.ompl",
    "nimbus.datagen.plan.curobo.planner",
    "nimbus.datagen.render.newton",
    "nimbus.datagen.store.hdf5",
)
"""Where the components of pipelines are; importing them loads simulator and renderer."""


def discover_components() -> None:
    """Register the components that come with Nimbus."""
    for module in COMPONENTS:
        importlib.import_module(module)


def discover(skill_folders: Iterable[Path | str] = ()) -> None:
    """Register the skills, predicates and randomizers of Nimbus, of installed packages and of folders.

    Installed packages name theirs in the entry-point group ``nimbus.skills``.

    Args:
        skill_folders: Folders with further skills, one a file.

    Raises:
        InputError: A folder does not exist, or a file in it cannot be imported.
    """
    for package in PACKAGES:
        _import_package(package)
    for entry in importlib.metadata.entry_points(group="nimbus.skills"):
        entry.load()
    import_folders(skill_folders)


def import_folders(folders: Iterable[Path | str]) -> None:
    """Register what the files of some folders hold.

    Raises:
        InputError: A folder does not exist, or a file in it cannot be imported.
    """
    for folder in folders:
        if not Path(folder).is_dir():
            raise InputError("no such folder", where=f"--skills {folder}")
        for path in sorted(Path(folder).resolve().glob("*.py")):
            _import_file(path)


def _import_package(name: str) -> None:
    try:
        package = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        return
    for module in pkgutil.iter_modules(getattr(package, "__path__", ()), f"{name}."):
        importlib.import_module(module.name)


def _import_file(path: Path) -> None:
    """Import a file once, under a name of its own, so that it is the same module in every caller."""
    name = "nimbus_skills." + "_".join(path.with_suffix("").parts[1:])
    if name in sys.modules:
        return
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec and spec.loader
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        line = f":{error.lineno}" if isinstance(error, SyntaxError) else ""
        what = f"cannot be imported: {type(error).__name__}: {error}"
        raise InputError(what, where=f"{path}{line}") from error
