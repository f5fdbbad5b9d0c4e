"""Points in words: ``cup + [0, 0, 10 cm]``, ``above(cup, 10 cm)``, ``between(a, b)``, ``start.center``."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from pydantic_core import PydanticCustomError

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.errors import InputError
from nimbus.datagen.files.quantities import LENGTH, RATIO, Quantity
from nimbus.datagen.tasks.references import ATTRIBUTES, AttributeRef, Expression, MemberRef, NameRef, ReferenceParser

Vector = tuple[float, float, float]
Locate = Callable[[Expression, str], FloatArray]
"""Function from the reference to a thing and the name of a point to its position (3,) in the world [m]."""

TOOL = "tool"
"""Name of the robot's tool, unless a thing of the task has that name."""


@dataclass(frozen=True)
class Point:
    """Point of a thing: its ``center`` by default, its ``top``, or a keypoint or frame of it."""

    thing: Expression
    feature: str = "center"

    def __str__(self) -> str:
        return written(self.thing) + ("" if self.feature == "center" else f".{self.feature}")

    def at(self, locate: Locate) -> FloatArray:
        """Return its position (3,) [m]."""
        return locate(self.thing, self.feature)


@dataclass(frozen=True)
class Shifted:
    """Point with a displacement along the axes of the world."""

    start: PoseExpression
    way: Vector

    def __str__(self) -> str:
        return f"{self.start} + [{', '.join(f'{value:.9g}' for value in self.way)}]"

    def at(self, locate: Locate) -> FloatArray:
        """Return its position (3,) [m]."""
        return self.start.at(locate) + self.way


@dataclass(frozen=True)
class Above:
    """Point straight above the top of a thing."""

    thing: Expression
    height: float

    def __str__(self) -> str:
        return f"above({written(self.thing)}, {self.height:.9g})"

    def at(self, locate: Locate) -> FloatArray:
        """Return its position (3,) [m]."""
        return locate(self.thing, "top") + (0.0, 0.0, self.height)


@dataclass(frozen=True)
class Between:
    """Point on the line between two points, at a fraction of its length from the first."""

    one: PoseExpression
    other: PoseExpression
    share: float = 0.5

    def __str__(self) -> str:
        share = "" if self.share == 0.5 else f", {self.share:.9g}"
        return f"between({self.one}, {self.other}{share})"

    def at(self, locate: Locate) -> FloatArray:
        """Return its position (3,) [m]."""
        one, other = self.one.at(locate), self.other.at(locate)
        return one + self.share * (other - one)


PoseExpression: TypeAlias = Point | Shifted | Above | Between


def parse_pose(text: str) -> PoseExpression:
    """Parse a point in words.

    Raises:
        InputError: The text is not a point.
    """
    return _PoseParser(text).pose()


def normal_form(text: str) -> str:
    """Return the canonical text of a point, which is equal for all ways of writing it; this validates parameters."""
    try:
        return str(parse_pose(text))
    except InputError as error:
        raise PydanticCustomError("pose", "{what}", {"what": error.what, "instead": error.instead}) from None


def points_in(expression: PoseExpression) -> Iterator[Point]:
    """Yield every point of a thing in an expression."""
    match expression:
        case Point():
            yield expression
        case Shifted(start, _):
            yield from points_in(start)
        case Above(thing, _):
            yield Point(thing, "top")
        case Between(one, other, _):
            yield from points_in(one)
            yield from points_in(other)


def written(expression: Expression | str | int) -> str:
    """Write a reference as text."""
    match expression:
        case NameRef(name):
            return name
        case AttributeRef(base, name):
            return f"{written(base)}.{name}"
        case MemberRef(base, index):
            return f"{written(base)}[{_quoted(index) if isinstance(index, str) else written(index)}]"
    return str(expression)


def _quoted(text: str) -> str:
    return f'"{text}"' if "'" in text else f"'{text}'"


_NUMBER = re.compile(r"\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?\s*(?:%|[A-Za-z]+)?)")
_FUNCTION = re.compile(r"\s*(above|between)\s*\(")


class _PoseParser(ReferenceParser):
    """Parser of a point followed by any number of ``+ [x, y, z]`` and ``- [x, y, z]``."""

    def pose(self) -> PoseExpression:
        """Parse the whole text."""
        expression = self._sum()
        if self.text[self.at :].strip():
            raise self._error()
        return expression

    def _sum(self) -> PoseExpression:
        expression = self._term()
        while (sign := self._next()) in ("+", "-"):
            self._pass(sign)
            way = self._vector()
            x, y, z = way if sign == "+" else tuple(0.0 - value for value in way)
            if isinstance(expression, Shifted):  # consecutive displacements are added up, for one normal form
                expression, (x, y, z) = expression.start, np.round(np.add(expression.way, (x, y, z)), 9).tolist()
            expression = Shifted(expression, (x, y, z))
        return expression

    def _term(self) -> PoseExpression:
        if match := _FUNCTION.match(self.text, self.at):
            self.at = match.end()
            return self._above() if match[1] == "above" else self._between()
        expression = self.expression()
        if isinstance(expression, AttributeRef) and expression.name not in ATTRIBUTES:
            return Point(expression.base, expression.name)
        return Point(expression)

    def _above(self) -> Above:
        thing = self.expression()
        self._pass(",")
        height = self._number(LENGTH)
        self._pass(")")
        return Above(thing, height)

    def _between(self) -> Between:
        one = self._sum()
        self._pass(",")
        other, share = self._sum(), 0.5
        if self._next() == ",":
            self._pass(",")
            share = self._number(RATIO)
        self._pass(")")
        return Between(one, other, share)

    def _vector(self) -> Vector:
        values = []
        for before in "[,,":
            self._pass(before)
            values.append(self._number(LENGTH))
        self._pass("]")
        x, y, z = values
        return x, y, z

    def _number(self, quantity: Quantity) -> float:
        if (match := _NUMBER.match(self.text, self.at)) is None:
            raise self._error()
        self.at = match.end()
        text = match[1].strip()
        try:
            return float(quantity.parse(text if text[-1].isalpha() or text[-1] == "%" else float(text)))
        except PydanticCustomError as error:
            raise InputError(
                f"'{text}' in '{self.text}': {error.message()}", instead="write a length with its unit, such as 10 cm"
            ) from None

    def _next(self) -> str:
        return self.text[self.at :].lstrip()[:1]

    def _pass(self, letter: str) -> None:
        if self._next() != letter:
            raise self._error()
        self.at = self.text.index(letter, self.at) + 1

    def _error(self) -> InputError:
        what, text = f"'{self.text}' is not a point", self.text
        if text.count("(") > text.count(")") or text.count("[") > text.count("]"):
            return InputError(what, instead="between { and }, put the point in quotes: {at: 'above(cup, 10 cm)'}")
        return InputError(what, instead="write one like cup + [0, 0, 10 cm], above(cup, 10 cm) or between(a, b)")


def is_tool(thing: Expression, names: Any) -> bool:
    """Return True if a reference is the robot's tool."""
    return thing == NameRef(TOOL) and TOOL not in names
