"""One registry for everything that a file names: skills, randomizers, planners, renderers, writers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from nimbus.datagen.errors import InputError, nearest

T = TypeVar("T")

_components: dict[tuple[str, str], Any] = {}


def register(kind: str, name: str) -> Callable[[T], T]:
    """Register a class or function under ``kind`` and ``name``; a name already taken is refused."""

    def add(component: T) -> T:
        known = _components.setdefault((kind, name), component)
        if known is not component:
            raise ValueError(f"{kind} '{name}' is registered twice: {known!r} and {component!r}")
        return component

    return add


def names(kind: str) -> list[str]:
    """The registered names of a kind, sorted."""
    return sorted(name for known_kind, name in _components if known_kind == kind)


def lookup(kind: str, name: str, *, where: str = "") -> Any:
    """The component of that name.

    Raises:
        InputError: No such name; the message lists the known ones.
    """
    try:
        return _components[kind, name]
    except KeyError:
        raise InputError(f"unknown {kind} '{name}'", where=where, instead=nearest(name, names(kind))) from None
