"""The little language of ``steps:`` and ``success:``: statements, and loops over groups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from nimbus.datagen import registry
from nimbus.datagen.errors import nearest
from nimbus.datagen.references import Group, parse_loop, resolve
from nimbus.datagen.skill import Statement
from nimbus.datagen.strict_yaml import Document, Keys


@dataclass(frozen=True)
class Step:
    """One statement, and where it stands in the file."""

    name: str
    statement: Any
    """A ``Skill`` or a ``Predicate``."""
    keys: Keys

    def canonical(self) -> Any:
        """Plain data, the same for every way of writing it; a parameter that may be left out, and is, does not show."""
        return {self.name: self.statement.model_dump(mode="json", exclude_none=True)}


@dataclass(frozen=True)
class Loop:
    """Steps done once for each member of a group."""

    variable: str
    group: str
    body: tuple[Step | Loop, ...]
    keys: Keys

    def canonical(self) -> Any:
        """Plain data, the same for every way of writing it."""
        return {f"for {self.variable} in {self.group}": [step.canonical() for step in self.body]}


Steps = tuple[Step | Loop, ...]


def parse_steps(document: Document, keys: Keys, data: Any, *, kind: str) -> Steps:
    """Read a list of statements.

    Args:
        document: The task file.
        keys: Where the list stands in it.
        data: The list.
        kind: What the names are registered as: ``skill`` or ``predicate``.

    Raises:
        InputError: An unknown name, a wrong parameter, a list that is none.
    """
    if not isinstance(data, tuple) or not data:
        raise document.error(keys, "expected a list of steps", instead=f"begin each with '- ' and the name of a {kind}")
    return tuple(_parse_step(document, (*keys, index), entry, kind) for index, entry in enumerate(data))


def _parse_step(document: Document, keys: Keys, entry: Any, kind: str) -> Step | Loop:
    if isinstance(entry, str):
        return Step(entry, _statement(document, keys, entry, kind, {}), keys)
    if not isinstance(entry, dict) or len(entry) != 1:
        what = "expected one name, or one 'name: parameters'"
        raise document.error(keys, what, instead="begin every step with its own '- '")
    (key, value), *_ = entry.items()
    inside = (*keys, key)
    if loop := parse_loop(key):
        variable, group = loop
        return Loop(variable, group, parse_steps(document, inside, value, kind=kind), inside)
    if key.split()[0:1] == ["for"]:
        raise document.error(inside, f"'{key}' is not a loop", instead="write 'for item in items:'", at_key=True)
    return Step(key, _statement(document, inside, key, kind, value), inside)


def _statement(document: Document, keys: Keys, name: str, kind: str, value: Any) -> Statement:
    if name not in registry.names(kind):
        hint = nearest(name, registry.names(kind))
        raise document.error(keys, f"unknown {kind} '{name}'", instead=hint, at_key=True)
    model: type[Statement] = registry.lookup(kind, name)
    if not isinstance(value, dict):
        if not model.main:
            what = f"'{name}' takes no value" if not model.model_fields else f"'{name}' needs named parameters"
            raise document.error(keys, what, instead=f"known: {', '.join(model.model_fields) or 'none'}")
        # A wrong value of the short form stands where the statement's own value stands.
        value = {model.main: value}
    return document.validate(model, data=value, at=keys)


def walk(steps: Steps, *, loops: tuple[Loop, ...] = ()) -> Iterator[tuple[Step, tuple[Loop, ...]]]:
    """Every step with the loops around it, outermost first."""
    for step in steps:
        if isinstance(step, Loop):
            yield from walk(step.body, loops=(*loops, step))
        else:
            yield step, loops


def unroll(steps: Steps, names: Mapping[str, Any]) -> Iterator[Step]:
    """The steps in the order they are done, every reference replaced by the name of what it leads to.

    Args:
        steps: Steps of a task.
        names: What names stand for, from ``references.environment``.

    Raises:
        InputError: A reference leads to nothing.
    """
    for step in steps:
        if isinstance(step, Step):
            yield Step(step.name, resolved(step.statement, names), step.keys)
            continue
        group = names.get(step.group, Group(step.group, ()))
        for member in group.members:
            yield from unroll(step.body, {**names, step.variable: member})


def resolved(statement: Statement, names: Mapping[str, Any]) -> Statement:
    """The statement with names of things in place of references."""
    found = {
        field: resolve(getattr(statement, field), names).name
        for field in statement.references()
        if getattr(statement, field) is not None
    }
    return statement.model_copy(update=found)
