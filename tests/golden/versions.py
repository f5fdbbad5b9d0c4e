"""Versions of built-in components, by their names in the source."""

from __future__ import annotations

from nimbus.datagen import registry
from nimbus.datagen.objects.library import GENERATOR_VERSION
from nimbus.datagen.version import component_version, is_built_in

GENERATOR = {"GENERATOR_VERSION of objects": GENERATOR_VERSION}


def built_in(kind: str) -> list[str]:
    """Return the names of the built-in components of a kind."""
    return [name for name in registry.names(kind) if is_built_in(registry.lookup(kind, name))]


def version_of(kind: str, name: str) -> dict[str, int]:
    """Return the version of a component, for example ``{"Pick.version of skill pick": 1}``."""
    component = registry.lookup(kind, name)
    return {f"{component.__name__}.version of {kind} {name}": component_version(component)}
