"""Discovery of plug-ins: importing a file registers its classes."""

from __future__ import annotations

import importlib
import importlib.metadata
import inspect
import pkgutil
import re
import sys
from collections.abc import Collection, Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

from pydantic import PydanticSchemaGenerationError, PydanticUserError

from nimbus.datagen import registry
from nimbus.datagen.errors import InputError, quote_words, suggest
from nimbus.datagen.tasks.plugin_folders import forget_modules, module_name
from nimbus.datagen.tasks.plugin_guard import UnendingImportError, guarded_import
from nimbus.datagen.tasks.plugin_origin import add_package, find_user_frame
from nimbus.datagen.tasks.plugin_source import plugin_folder
from nimbus.datagen.tasks.statements import Predicate, Randomization, Skill

_BASES = {"skill": Skill, "predicate": Predicate}
_ANOTHER_NAME = "give yours another name"
_TYPES = (
    "write ObjectReference, Metres, Radians, float, int, bool, Literal[…] or a similar type; mark attributes that are "
    "not parameters with ClassVar"
)
PACKAGES = ("nimbus.datagen.tasks.control_flow", "nimbus.skills", "nimbus.datagen.success", "nimbus.datagen.randomize")
PACKAGES += ("nimbus.datagen.navigate.sources", "nimbus.datagen.navigate.goal_kinds")
"""Packages of Nimbus's composites, skills, conditions, randomizers, sources of scenes and kinds of goals; each of their
modules is imported."""


COMPONENTS = (
    "nimbus.datagen.load.scene_loader",
    "nimbus.datagen.load.navigation_loader",
    "nimbus.datagen.randomize.tabletop",
    "nimbus.datagen.randomize.goals",
    "nimbus.datagen.execute.planner",
    "nimbus.datagen.execute.path_planner",
    "nimbus.datagen.execute.splat_path",
    "nimbus.datagen.policies.correction",
    "nimbus.datagen.policies.planner",
    "nimbus.datagen.teleoperate.demonstration_planner",
    "nimbus.datagen.plan.ompl",
    "nimbus.datagen.plan.curobo.planner",
    "nimbus.datagen.render.newton",
    "nimbus.datagen.render.blender",
    "nimbus.datagen.render.external",
    "nimbus.datagen.render.scene_views",
    "nimbus.datagen.render.splat_views",
    "nimbus.datagen.render.isaacsim.renderer",
    "nimbus.datagen.simulate.isaacsim",
    "nimbus.datagen.store.writer",
)
"""Modules of pipeline components; importing them loads simulator and renderer."""


def check_new(components: Collection[tuple[str, str]], *, path: Path) -> None:
    """Check the classes that a file has registered.

    Raises:
        InputError: The file registers no component, or an unusable component or one of an unknown kind.
    """
    if not components:
        instead = 'put @register("skill", "name") before its class, or begin the file\'s name with _'
        raise InputError("registers nothing", where=str(path), instead=instead)
    words = {word for kind, name in registry.registered() if kind == "composite" for word in _words(name)}
    for kind, name in sorted(components):
        component = registry.lookup(kind, name)
        where = _place(component, path)
        if not set(kind.split("+")) <= set(registry.KINDS):  # one component may implement several stages
            raise InputError(
                f"'{name}' is of unknown kind '{kind}'", where=where, instead=suggest(kind, registry.KINDS)
            )
        if kind == "randomizer":
            _check_randomizer(name, component, where=where)
        if kind in _BASES:
            _check_statement(kind, name, component, where=where)
            if name in words:
                raise InputError(f"'{name}' is a keyword of the task language", where=where, instead=_ANOTHER_NAME)


def _check_randomizer(name: str, component: Any, *, where: str) -> None:
    if not (isinstance(component, type) and issubclass(component, Randomization) and callable(_of(component, "draw"))):
        instead = "derive it from LayoutRandomization of nimbus.datagen.randomize.base"
        raise InputError(f"randomizer '{name}' is not a LayoutRandomization", where=where, instead=instead)
    if lacking := sorted(getattr(component, "__abstractmethods__", ())):
        what = f"randomizer '{name}' has no method '{lacking[0]}'"
        raise InputError(what, where=where, instead=f"write def {lacking[0]}(self, draft, streams): …")
    if _of(component, "part") not in ("physical", "visual"):
        instead = 'write part = "physical", or part = "visual"'
        raise InputError(f"randomizer '{name}' does not name the part of a layout", where=where, instead=instead)


def _of(component: type, name: str) -> Any:
    return getattr(component, name, None)


def _check_statement(kind: str, name: str, component: Any, *, where: str) -> None:
    base = _BASES[kind]
    if not (isinstance(component, type) and issubclass(component, base)):
        raise InputError(
            f"{kind} '{name}' is not a {base.__name__}", where=where, instead=f"derive it from {base.__name__}"
        )
    if lacking := sorted(getattr(component, "__abstractmethods__", ())):
        parameters = ", ".join(inspect.signature(getattr(component, lacking[0])).parameters)
        what = f"{kind} '{name}' has no method '{lacking[0]}'"
        raise InputError(what, where=where, instead=f"write def {lacking[0]}({parameters}): …")


def import_error(error: BaseException, path: Path) -> InputError:
    """Return the one-line error for a file that cannot be imported."""
    if isinstance(error, InputError):
        return error
    if isinstance(error, registry.TakenError):
        what = f"{error.kind} '{error.name}' already exists, in {error.known.__module__}"
        return InputError(what, where=find_user_frame(error) or str(path), instead=_ANOTHER_NAME)
    if isinstance(error, SyntaxError):
        where = f"{error.filename or path}:{error.lineno}"
        return InputError(
            f"cannot be imported: SyntaxError: {error}", where=where, instead="correct the syntax at this line"
        )
    where = find_user_frame(error) or str(path)
    if isinstance(error, PydanticSchemaGenerationError):
        kind = re.search(r"schema for (?:<class '(.+?)'>|(.+?)\.(?:\s|$))", str(error))
        named = f"of type {kind[1] or kind[2]} " if kind else ""
        return InputError(f"a parameter {named}cannot be written in a task file", where=where, instead=_TYPES)
    if isinstance(error, PydanticUserError):
        what = f"a parameter cannot be read: {error.message.splitlines()[0]}"
        return InputError(
            what, where=where, instead="annotate each parameter, such as x: Metres; mark other attributes with ClassVar"
        )
    instead = "fix the error that the import raises"
    if isinstance(error, ModuleNotFoundError) and (path.parent / f"{error.name}.py").is_file():
        instead = f"write from .{error.name} import …"
    return InputError(f"cannot be imported: {type(error).__name__}: {error}", where=where, instead=instead)


def _place(component: Any, path: Path) -> str:
    """Return file and line of a class definition, or the file alone if the line is unknown."""
    try:
        return f"{inspect.getsourcefile(component) or path}:{inspect.getsourcelines(component)[1]}"
    except (TypeError, OSError):
        return str(path)


def _words(composite: str) -> tuple[str, ...]:
    return registry.lookup("composite", composite).words[:1]


def discover_components() -> None:
    """Register the components that come with Nimbus."""
    for module in COMPONENTS:
        importlib.import_module(module)


def discover(skill_folders: Iterable[Path | str] = ()) -> None:
    """Register the skills, conditions and randomizers of Nimbus, of installed packages and of folders.

    Installed packages declare theirs in the entry-point group ``nimbus.skills``.

    Args:
        skill_folders: Folders with further skills, one per file; files whose names begin with ``_`` are loaded only
            when another file imports them (``from ._shared import …``).

    Raises:
        InputError: A folder does not exist, or a file in it cannot be imported, registers nothing, or registers a name
            that is taken.
    """
    for package in PACKAGES:
        _import_package(package)
    for entry in _offered(tuple(sys.path)):
        _load(entry)
    import_folders(skill_folders)


@lru_cache(maxsize=4)
def _offered(path: tuple[str, ...]) -> tuple[importlib.metadata.EntryPoint, ...]:
    """Return the entry points of packages on a search path, cached because the search is slow."""
    return tuple(importlib.metadata.entry_points(group="nimbus.skills"))


def import_folders(folders: Iterable[Path | str]) -> None:
    """Import the files of some folders.

    Raises:
        InputError: A folder does not exist or is empty, or a file in it cannot be imported.
    """
    for folder in folders:
        for path in _files(Path(folder)):
            _import_file(path)


def _files(folder: Path) -> list[Path]:
    where = f"--skills {folder}"
    if folder.is_file():
        raise InputError("is a file", where=where, instead=f"give its folder: {quote_words('--skills', folder.parent)}")
    if not folder.is_dir():
        raise InputError("no such folder", where=where, instead="give the folder of your skills: --skills FOLDER")
    if files := sorted(folder.resolve().glob("[!_]*.py")):
        return files
    raise InputError("no skills in this folder", where=where, instead="put a file with a skill into it, such as tap.py")


def _load(entry: importlib.metadata.EntryPoint) -> None:
    """Import the entry point of an installed package."""
    package = entry.dist.name if entry.dist else "a package"
    where = f"{package}, entry point '{entry.name}' of nimbus.skills"
    before = registry.registered()
    try:
        with guarded_import():
            entry.load()
        if folder := plugin_folder(entry.module) or getattr(sys.modules[entry.module], "__file__", None):
            add_package(Path(folder))
    except (Exception, SystemExit, UnendingImportError) as error:
        registry.forget(registry.registered() - before)
        if isinstance(error, registry.TakenError):
            what = f"{error.kind} '{error.name}' already exists, in {error.known.__module__}"
        else:
            what = f"cannot be imported: {type(error).__name__}: {error}"
        raise InputError(what, where=where, instead="repair or uninstall the package") from error


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
    """Import a file once, as a module of its folder's package, which all callers share."""
    name = module_name(path)
    if name in sys.modules:
        return
    before, modules = registry.registered(), set(sys.modules)
    try:
        with guarded_import():
            importlib.import_module(name)
        check_new(registry.registered() - before, path=path)
    except (Exception, SystemExit, UnendingImportError) as error:
        forget_modules(set(sys.modules) - modules)
        registry.forget(registry.registered() - before)
        raise import_error(error, path) from error
