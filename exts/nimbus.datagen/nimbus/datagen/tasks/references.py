"""References to things in a task file, such as ``item``, ``items[0]``, ``bins[item.class]``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from nimbus.datagen.errors import InputError, suggest


@dataclass(frozen=True)
class NameRef:
    """Loop variable, object, group of objects, fixture, group of fixtures or region."""

    name: str


@dataclass(frozen=True)
class AttributeRef:
    """``base.name``, for example ``item.class``."""

    base: Expression
    name: str


@dataclass(frozen=True)
class MemberRef:
    """``base[index]``: the member of a group by its number, or the only one of a class."""

    base: Expression
    index: Expression | str | int


Expression = NameRef | AttributeRef | MemberRef

ATTRIBUTES = {"class": "object_class", "kind": "kind", "name": "name"}
"""Attributes that may follow the dot, with the field that each reads."""


class NamedRef(Protocol):
    """Target of a reference."""

    @property
    def name(self) -> str:
        """Name that is unique in the scene."""
        ...


@dataclass(frozen=True)
class GroupRef:
    """Things with a common name in the task file or in the scene, in a fixed order."""

    name: str
    members: tuple[Any, ...]


@dataclass(frozen=True)
class RegionRef:
    """Region of the task file as the target of a reference."""

    name: str


_TOKEN = re.compile(r"\s*(?:([A-Za-z_]\w*)|(\d+)|'([^']*)'|\"([^\"]*)\"|([.\[\]]))")


def parse_reference(text: str) -> Expression:
    """Parse a reference: names, dots and square brackets, nothing else.

    Raises:
        InputError: The text is not a reference.
    """
    return ReferenceParser(text).parse()


class ReferenceParser:
    """Parser of ``name`` followed by any number of ``.attribute`` and ``[index]``."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0

    def parse(self) -> Expression:
        """Parse the whole text."""
        expression = self.expression()
        if self.text[self.at :].strip():
            raise self._error()
        return expression

    def expression(self) -> Expression:
        """Parse the reference at the current position."""
        expression: Expression = NameRef(self._word())
        while (token := self._peek()) in (".", "["):
            self._take()
            if token == ".":
                expression = AttributeRef(expression, self._word())
            else:
                expression = MemberRef(expression, self._index())
                if self._take()[5] != "]":
                    raise self._error()
        return expression

    def _index(self) -> Expression | str | int:
        match = _TOKEN.match(self.text, self.at)
        if match is None or match[1]:
            return self.expression()
        self._take()
        if match[2]:
            return int(match[2])
        if match[5]:
            raise self._error()
        return match[3] if match[3] is not None else match[4]

    def _word(self) -> str:
        if not (word := self._take()[1]):
            raise self._error()
        return word

    def _peek(self) -> str:
        match = _TOKEN.match(self.text, self.at)
        return (match[5] or "") if match else ""

    def _take(self) -> re.Match[str]:
        match = _TOKEN.match(self.text, self.at)
        if match is None:
            raise self._error()
        self.at = match.end()
        return match

    def _error(self) -> InputError:
        return InputError(f"'{self.text}' is not a reference", instead="write one like item or bins[item.class]")


def names_in(expression: Expression) -> set[str]:
    """Return the names of objects, groups, fixtures, regions and variables in a reference, even inside brackets."""
    match expression:
        case NameRef(name):
            return {name}
        case AttributeRef(base, _):
            return names_in(base)
        case MemberRef(base, index):
            return names_in(base) | (set() if isinstance(index, (str, int)) else names_in(index))


def build_environment(
    *, objects: Iterable[Any] = (), fixtures: Iterable[Any] = (), regions: Iterable[str] = ()
) -> dict[str, Any]:
    """Return the meaning of each name of a scene.

    Args:
        objects: Objects with ``name``, ``group``, ``kind`` and ``object_class``, for example ``PlacedObject``.
        fixtures: Fixtures with ``name``, ``group`` and ``object_class``.
        regions: Names of the task file's regions.
    """
    names: dict[str, Any] = {region: RegionRef(region) for region in regions}
    groups: dict[str, list[Any]] = {}
    for thing in (*fixtures, *objects):
        names[thing.name] = thing
        if thing.group:
            groups.setdefault(thing.group, []).append(thing)
    return names | {group: GroupRef(group, tuple(members)) for group, members in groups.items()}


def evaluate(reference: Expression | str, names: Mapping[str, Any]) -> Any:
    """Return the target of a reference: an object, a fixture, a region, a group, or a text such as a class.

    Raises:
        InputError: The reference cannot be resolved; the message lists the known names.
    """
    match parse_reference(reference) if isinstance(reference, str) else reference:
        case NameRef(name):
            if name not in names:
                raise InputError(f"unknown name '{name}'", instead=suggest(name, names))
            return names[name]
        case AttributeRef(base, name):
            value = single(evaluate(base, names))
            if name not in ATTRIBUTES:
                raise InputError(f"unknown attribute '{name}'", instead=suggest(name, ATTRIBUTES))
            if not hasattr(value, ATTRIBUTES[name]):
                raise InputError(f"'{value.name}' has no {name}", instead="name an object that has it")
            return getattr(value, ATTRIBUTES[name])
        case MemberRef(base, index):
            group = evaluate(base, names)
            if not isinstance(group, GroupRef):
                raise InputError(
                    f"'{_describe(group)}' is not a group: it has no members to choose from",
                    instead="remove the brackets",
                )
            return _member(group, index if isinstance(index, (str, int)) else evaluate(index, names))


def resolve(reference: Expression | str, names: Mapping[str, Any]) -> NamedRef:
    """Return the one thing that a reference names.

    Raises:
        InputError: The reference cannot be resolved, or its target is a text or several things.
    """
    value = single(evaluate(reference, names))
    if isinstance(value, str):
        raise InputError(f"'{value}' does not name a thing in the scene", instead=suggest(value, names))
    return value


def single(value: Any) -> Any:
    """Return a thing, or the only member of a group; groups of several members are refused."""
    if not isinstance(value, GroupRef):
        return value
    if len(value.members) != 1:
        what = f"'{value.name}' is a group of {len(value.members)}; one thing is needed here"
        raise InputError(what, instead=f"loop over it with 'for … in {value.name}' or choose one: {value.name}[0]")
    return value.members[0]


def _member(group: GroupRef, index: Any) -> Any:
    if isinstance(index, int):
        if index >= len(group.members):
            raise InputError(
                f"'{group.name}[{index}]' does not exist: the group has {len(group.members)} members",
                instead="write a smaller number",
            )
        return group.members[index]
    if not isinstance(index, str):
        raise InputError(f"'{_describe(index)}' cannot choose from '{group.name}'", instead="write a class or a number")
    found = [member for member in group.members if member.object_class == index]
    if len(found) != 1:
        count = "no member" if not found else f"{len(found)} members"
        known = suggest(index, {member.object_class for member in group.members if member.object_class})
        raise InputError(f"'{group.name}' has {count} of class '{index}'", instead="" if found else known)
    return found[0]


def _describe(value: Any) -> str:
    return value if isinstance(value, str) else value.name
