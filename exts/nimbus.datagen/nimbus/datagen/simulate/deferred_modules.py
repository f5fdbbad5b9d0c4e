"""Modules of other packages that run when a name is first read from them.

Newton imports its sensors, controllers, viewers and the whole of MuJoCo Warp, and Warp parses every kernel that they
define. Nimbus uses none of these kernels: physics runs on MuJoCo's C code.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterable, Mapping
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

_RUN_FOR = ("__all__", "__version__")
"""Names with two underscores that run a module. Imports and debuggers read others of every module."""


class _DeferredModule(ModuleType):
    """Module that runs when a name is read that it does not have yet.

    A module of :class:`importlib.util.LazyLoader` runs when any name is read, also those that a second import of it, an
    import of a submodule and :func:`inspect.getmodule` read.

    Args:
        spec: Specification of the module.
        parts: Submodule by name, for names that are read from the submodule without running the module.
    """

    def __init__(self, spec: ModuleSpec, parts: Mapping[str, str]) -> None:
        super().__init__(spec.name)
        vars(self).update(vars(importlib.util.module_from_spec(spec)))
        self._parts = parts

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name not in _RUN_FOR:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        if part := self._parts.get(name):
            value = getattr(importlib.import_module(f"{self.__name__}.{part}"), name)
            setattr(self, name, value)
            return value
        _run(self)
        return getattr(self, name)

    def __dir__(self) -> Iterable[str]:
        _run(self)
        return dir(self)


def _run(module: ModuleType) -> None:
    """Run a deferred module, which is an ordinary one from then on; if it fails, it remains deferred."""
    assert module.__spec__ and module.__spec__.loader
    module.__class__ = ModuleType
    try:
        module.__spec__.loader.exec_module(module)
    except BaseException:
        module.__class__ = _DeferredModule
        raise


def defer_modules(package: str, names: Iterable[str]) -> None:
    """Defer modules of a package that is not imported yet; modules that do not exist are left out.

    Args:
        package: Name of an installed top-level package.
        names: Names of modules in it, without modules that others import by ``from module import name``.
    """
    spec = None if package in sys.modules else importlib.util.find_spec(package)
    for root in (spec and spec.submodule_search_locations) or ():
        for name in names:
            *folders, _ = name.split(".")
            _register(PathFinder.find_spec(f"{package}.{name}", ["/".join([root, *folders])]), {})


def defer_package(package: str, parts: Mapping[str, str]) -> None:
    """Defer the code of a package that is not imported yet; its submodules can be imported without running it.

    Args:
        package: Name of an installed top-level package.
        parts: Submodule by name, for names that are read from the submodule without running the package.
    """
    if package not in sys.modules:
        _register(importlib.util.find_spec(package), parts)


def _register(spec: ModuleSpec | None, parts: Mapping[str, str]) -> None:
    if spec and spec.name not in sys.modules:
        sys.modules[spec.name] = _DeferredModule(spec, parts)
