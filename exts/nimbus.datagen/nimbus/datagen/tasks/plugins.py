"""Finds what plugs in: importing a skill's file registers it."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import pkgutil
import sys
from collections.abc import Iterable
from pathlib import Path

from nimbus.datagen import registry
from nimbus.datagen.errors import InputError
from nimbus.datagen.tasks.plugin_checks import check_new, import_error

PACKAGES = ("nimbus.datagen.tasks.control_flow", "nimbus.skills", "nimbus.datagen.success", "nimbus.datagen.randomize")
"""Where the composites, skills, predicates and randomizers of Nimbus are; every module in them is imported."""


COMPONENTS = (
    "nimbus.datagen.load.scene_loader",
    "nimbus.datagen.randomize.tabletop",
    "nimbus.datagen.execute.planner",
    "nimbus.datagen.plan.ompl",
    "nimbus.datagen.plan.curobo.planner",
    "nimbus.datagen.render.newton",
    "nimbus.datagen.render.isaacsim.renderer",
    "nimbus.datagen.simulate.isaacsim",
    "nimbus.datagen.store.writer",
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
        skill_folders: Folders with further skills, one a file; files whose names begin with ``_`` are left alone.

    Raises:
        InputError: A folder does not exist, or a file in it cannot be imported, registers nothing or a name that is
            taken.
    """
    for package in PACKAGES:
        _import_package(package)
    for entry in importlib.metadata.entry_points(group="nimbus.skills"):
        _load(entry)
    import_folders(skill_folders)


def import_folders(folders: Iterable[Path | str]) -> None:
    """Register what the files of some folders hold.

    Raises:
        InputError: A folder does not exist or holds nothing, or a file in it cannot be imported.
    """
    for folder in folders:
        for path in _files(Path(folder)):
            _import_file(path)


def _files(folder: Path) -> list[Path]:
    where = f"--skills {folder}"
    if folder.is_file():
        raise InputError("is a file", where=where, instead=f"give its folder: --skills {folder.parent}")
    if not folder.is_dir():
        raise InputError("no such folder", where=where)
    if files := sorted(folder.resolve().glob("[!_]*.py")):
        return files
    raise InputError("no skills in this folder", where=where, instead="put a file with a skill into it, such as tap.py")


def _load(entry: importlib.metadata.EntryPoint) -> None:
    """Import what an installed package offers."""
    package = entry.dist.name if entry.dist else "a package"
    where = f"{package}, entry point '{entry.name}' of nimbus.skills"
    before = registry.registered()
    try:
        entry.load()
    except (Exception, SystemExit) as error:
        registry.forget(registry.registered() - before)
        if isinstance(error, registry.TakenError):
            what = f"{error.kind} '{error.name}' is there already, in {error.known.__module__}"
        else:
            what = f"cannot be imported: {type(error).__name__}: {error}"
        raise InputError(what, where=where, instead="mend or uninstall the package") from error


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
    before = registry.registered()
    try:
        spec.loader.exec_module(module)
        check_new(registry.registered() - before, path=path)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        registry.forget(registry.registered() - before)
        raise import_error(error, path) from error
