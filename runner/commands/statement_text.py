"""Descriptions of skills and conditions: their form in a task file, and their parameters."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Literal, get_args, get_origin

from nimbus.datagen import registry
from nimbus.datagen.errors import InputError, suggest
from nimbus.datagen.files.quantities import Quantity
from nimbus.datagen.tasks.statements import MOTION_REASONS, PoseMark, Reference, Skill, Statement
from nimbus.runner.commands.table import align

KINDS = {"skill": "skills, for steps:", "predicate": "conditions, for success:"}
"""Heading of the list of each kind of statement."""


def list_statements() -> Iterator[str]:
    """Yield every skill and condition with its parameters, one line each, with its summary below."""
    for kind, heading in KINDS.items():
        yield heading
        usages = {usage(name, registry.lookup(kind, name)): name for name in registry.names(kind)}
        for text, name in usages.items():
            yield f"  {text}"
            yield f"      {registry.lookup(kind, name).summary()}"


def usage(name: str, model: type[Statement]) -> str:
    """Return the form of a statement, such as ``place: {object, into, height?}``; ``?`` marks optional parameters."""
    parameters = [field + ("" if settings.is_required() else "?") for field, settings in model.model_fields.items()]
    return f"{name}: {{{', '.join(parameters)}}}" if parameters else name


def details(name: str) -> Iterator[str]:
    """Yield the full description of a skill or a condition, line by line.

    Raises:
        InputError: There is no statement of that name.
    """
    found = {kind: registry.lookup(kind, name) for kind in KINDS if name in registry.names(kind)}
    if not found:
        known = [known for kind in KINDS for known in registry.names(kind)]
        raise InputError(f"no skill and no condition '{name}'", instead=suggest(name, known))
    for model in found.values():
        yield usage(name, model)
        yield from (f"  {line.strip()}".rstrip() for line in (model.__doc__ or "").strip().splitlines())
        rows = [
            (field, _type(settings), _default(settings), (settings.description or "").strip())
            for field, settings in model.model_fields.items()
        ]
        yield from (f"  {line}" for line in align(rows))
        if reasons := model.reasons():
            yield f"  fails with: {', '.join(reasons)}"
        if issubclass(model, Skill):
            others = ", ".join(reason for reason in MOTION_REASONS if reason not in reasons)
            yield f"  every skill may also fail with: {others}"


def _default(settings: Any) -> str:
    if settings.is_required():
        return "needed"
    value = settings.get_default()
    if value is None:
        return "-"
    return f"{value:.4g}" if isinstance(value, float) else json.dumps(value)


def _type(settings: Any) -> str:
    words = dict.fromkeys(_words((*settings.metadata, settings.annotation)))
    if any(word.startswith("[") for word in words):
        words.pop("number", None)  # a quantity states its units
    return " | ".join(words) or "text"


def _words(parts: tuple[Any, ...]) -> Iterator[str]:
    """Yield the allowed values: units, types of things, words."""
    for part in parts:
        if isinstance(part, Reference):
            yield "|".join(part.kinds) + ("s" if part.many else "")
        elif isinstance(part, PoseMark):
            yield "point"
        elif isinstance(part, Quantity):
            yield "[" + ", ".join(unit for unit, _ in part.units) + "]"
        elif get_origin(part) is Literal:
            yield from map(str, get_args(part))
        elif part in (int, float, bool):
            yield {int: "whole number", float: "number", bool: "true|false"}[part]
        elif inner := (*getattr(part, "__metadata__", ()), *get_args(part)):
            marks = list(_words(inner))
            pointed = "point" in marks
            yield from (["point"] if pointed else marks)
