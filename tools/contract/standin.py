"""Stand-in for Kit, built from its contract: names that are not in the contract raise an error.

Modules, classes, methods and their parameters are made from the contract; ``kit_behaviour.py`` defines their behavior.
A method without a behavior raises an error, so no test can pass because a call did nothing.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from tools.contract.names import ROOTS, Contract, Symbol, misfit

_OURS = ("nimbus.datagen.kit", "nimbus.datagen.plan.curobo.adapter")
"""Modules of Nimbus that import parts of these packages when they are loaded."""

_ANY_NUMBER = ("omni.ui:ComboBox",)
"""Classes that accept any number of options after the selected one; the contract contains only as many options as were
observed."""

Behaviour = dict[str, Callable[..., Any]]
"""Behavior of functions and methods, by ``module:function`` and ``module:Class.method``."""


class Thing:
    """Base of every class of the stand-in: unknown attributes raise, on reading and on writing."""

    _contract: Contract
    _behaviour: Behaviour

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        for key in keys_of(type(self)):
            member = self._contract.member(key, "__init__")
            if member is not None:
                extra = self._contract.keywords(key)
                count = min(len(args), 2) if key in _ANY_NUMBER else len(args)
                if wrong := misfit(member, extra, count, set(kwargs), open_ended=False):
                    raise TypeError(f"{key}: {wrong}")
                break
        for key in keys_of(type(self)):
            if start := self._behaviour.get(f"{key}.__init__"):
                start(self, *args, **kwargs)
                return

    def __getattr__(self, name: str) -> Any:
        keys = [] if name.startswith("__") else keys_of(type(self))
        for key in keys:
            if getter := self._behaviour.get(f"{key}.{name}"):
                return getter(self)
        members = [member for key in keys if (member := self._contract.member(key, name)) is not None]
        if members and any("returns" in member for member in members):
            raise MissingBehaviorError(f"{type(self).__name__}.{name}")
        if members:
            return None
        raise AttributeError(f"{type(self).__name__} has no attribute '{name}' in the contract")

    def __setattr__(self, name: str, value: Any) -> None:
        is_ours = type(self).__module__.split(".")[0] not in ROOTS
        known = any(self._contract.member(key, name) is not None for key in keys_of(type(self)))
        if not known and not is_ours and not name.startswith("played_"):
            raise AttributeError(f"{type(self).__name__} has no attribute '{name}' in the contract")
        object.__setattr__(self, name, value)


def keys_of(kind: type) -> list[str]:
    """Return the definitions of a class and its bases, nearest first."""
    return [vars(base)["played_key"] for base in kind.__mro__ if "played_key" in vars(base)]


class StandIn(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Import hook that creates Kit's modules from the contract.

    Args:
        contract: Contract of Kit.
        behaviour: Behavior of functions and methods.
    """

    def __init__(self, contract: Contract, behaviour: Behaviour) -> None:
        self.contract, self.behaviour = contract, behaviour
        self._classes: dict[str, type] = {}

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Make the stand-in importable; afterwards remove its modules and those of Nimbus that were loaded with it."""
        sys.meta_path.insert(0, self)
        try:
            yield
        finally:
            sys.meta_path.remove(self)
            for name in list(sys.modules):
                if name.split(".")[0] in ROOTS or name.startswith(_OURS):
                    del sys.modules[name]

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return the spec of a module of the contract."""
        if fullname.split(".")[0] not in ROOTS or not self.contract.has_module(fullname):
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        """Return an empty module; its names are created on access."""
        module = ModuleType(spec.name)

        def find(name: str) -> Any:
            symbol = None if name.startswith("__") else self.contract.name_in(spec.name, name)
            if symbol is not None and symbol.kind == "module":
                return importlib.import_module(symbol.key)  # packages of Kit import their submodules
            if symbol is None:
                raise AttributeError(f"module '{spec.name}' has no '{name}' in the contract")
            return self._make(symbol)

        module.__dict__["__getattr__"] = find
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing; the module has no code."""

    def make(self, key: str) -> Any:
        """Return an object of a class, by its definition's key."""
        return self.kind(key)()

    def kind(self, key: str) -> type:
        """Return a class, by its definition's key."""
        return self._class(key)

    def _make(self, symbol: Symbol) -> Any:
        if symbol.kind == "class":
            return self._class(symbol.key)
        if symbol.kind == "function":
            return self._callable(symbol.key, self.contract.defs[symbol.key], set())
        return symbol.key

    def _class(self, key: str) -> type:
        if key in self._classes:
            return self._classes[key]
        entry = self.contract.defs[key]
        bases = tuple(self._class(base) for base in entry.get("bases", ()) if base in self.contract.defs) or (Thing,)
        module, name = key.split(":")
        body: dict[str, Any] = {"__module__": module, "played_key": key}
        body |= {"_contract": self.contract, "_behaviour": self.behaviour}
        values = entry.get("enum") or (entry.get("attrs", ()) if not entry.get("members") else ())
        body |= {value: f"{name}.{value}" for value in values}
        for member, signature in entry.get("members", {}).items():
            if signature["kind"] == "method" and member != "__init__":
                body[member] = self._callable(f"{key}.{member}", signature, set(), bound=True)
            elif signature["kind"] in ("static", "class") and "params" in signature:
                body[member] = staticmethod(self._callable(f"{key}.{member}", signature, set()))
        for special in ("__enter__", "__exit__"):
            if play := self.behaviour.get(f"{key}.{special}"):
                body[special] = play
        self._classes[key] = made = type(name, bases, body)
        return made

    def _callable(self, key: str, signature: dict[str, Any], extra: set[str], *, bound: bool = False) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            if wrong := misfit(signature, extra, len(args) - bound, set(kwargs), open_ended=False):
                raise TypeError(f"{key}: {wrong}")
            play = self.behaviour.get(key)
            if play is None:
                raise MissingBehaviorError(key)
            return play(*args, **kwargs)

        return call


class MissingBehaviorError(RuntimeError):
    """Raised on use of a name without behavior in the stand-in; otherwise a test could pass without any effect."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{name} has no behavior in the stand-in, so it cannot be called")
