"""Registry of components that files refer to by name: skills, randomizers, planners, renderers, writers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from nimbus.datagen.errors import InputError, suggest
from nimbus.datagen.version import component_version

T = TypeVar("T")

KINDS = ("skill", "predicate", "randomizer", "composite", "planner", "simulator") + (
    "load",
    "randomize",
    "plan",
    "render",
    "store",
    "scene",
    "goal",
)
"""Kinds of entries: those named in files, and the stages of a pipeline."""

_components: dict[tuple[str, str], Any] = {}


class TakenError(ValueError):
    """Raised if a name is already registered."""

    def __init__(self, kind: str, name: str, known: Any, component: Any) -> None:
        self.kind, self.name, self.known = kind, name, known
        super().__init__(f"{kind} '{name}' is registered twice: {known!r} and {component!r}")


def register(kind: str, name: str) -> Callable[[T], T]:
    """Return a decorator that registers a class or function under ``kind`` and ``name``.

    Raises:
        InputError: The component's ``version`` is not a positive whole number.
        TakenError: The name is already registered.
    """

    def add(component: T) -> T:
        try:
            component_version(component)
        except ValueError as error:
            where = f"{kind} '{name}' in {getattr(component, '__module__', '')}"
            instead = "write version: ClassVar[int] = 1, and raise it when its output changes"
            raise InputError(str(error), where=where, instead=instead) from None
        known = _components.setdefault((kind, name), component)
        if known is not component:
            raise TakenError(kind, name, known, component)
        return component

    return add


def names(kind: str) -> list[str]:
    """Return the sorted registered names of a kind."""
    return sorted(name for known_kind, name in _components if known_kind == kind)


def registered() -> frozenset[tuple[str, str]]:
    """Return the kind and name of every component."""
    return frozenset(_components)


def forget(components: Iterable[tuple[str, str]]) -> None:
    """Unregister components, given by kind and name."""
    for key in components:
        _components.pop(key, None)


def lookup(kind: str, name: str, *, where: str = "") -> Any:
    """Return the component with a name.

    Raises:
        InputError: The name is unknown; the message lists the known names.
    """
    try:
        return _components[kind, name]
    except KeyError:
        raise InputError(f"unknown {kind} '{name}'", where=where, instead=suggest(name, names(kind))) from None
