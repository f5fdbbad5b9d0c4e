"""Condition on the columns of an episode, such as ``success and length > 50``. It is never executed as Python code."""

from __future__ import annotations

import ast
import operator
import warnings
from collections.abc import Callable, Mapping
from typing import Any

from nimbus.datagen.errors import InputError, suggest

Value = Any
Row = Mapping[str, Value]
Test = Callable[[Row], Value]

_LONGEST, _SHOWN = 1000, 100
_COMPARE: dict[type[ast.cmpop], Callable[[Value, Value], Value]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda one, other: one in other,
    ast.NotIn: lambda one, other: one not in other,
}
_COMPUTE: dict[type[ast.operator], Callable[[Value, Value], Value]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Mod: operator.mod,
}
_WHAT = "comparisons, and, or, not, in, + - * / %, numbers, texts in quotes, lists and columns"


class Condition:
    """Condition on the columns of an episode.

    Args:
        text: Text of the condition, for example ``success and length > 50``.

    Raises:
        InputError: The text is not a condition.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.names: set[str] = set()
        """Columns that the condition uses."""
        try:
            if len(text) > _LONGEST:
                raise ValueError(f"it is longer than {_LONGEST} characters")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # syntax warnings do not matter, because the text is never executed
                self._test = self._parse(ast.parse(text.strip(), mode="eval").body)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            shown = text if len(text) < _SHOWN else f"{text[:_SHOWN]}…"
            what = f"'{shown}' is not a condition: {getattr(error, 'msg', None) or error}"
            raise InputError(what, where="--where", instead=f"use only {_WHAT}") from None

    def check(self, columns: Mapping[str, Value]) -> None:
        """Check that all names in the condition are columns.

        Raises:
            InputError: A name is not a column.
        """
        if unknown := sorted(self.names - set(columns)):
            raise InputError(f"no column '{unknown[0]}'", where="--where", instead=suggest(unknown[0], columns))

    def __call__(self, row: Row) -> bool:
        """Return True if an episode meets the condition; False if a value that it needs is missing.

        Raises:
            InputError: The types of the values do not allow the comparison or the calculation.
        """
        try:
            return bool(self._test(row))
        except _Missing:
            return False
        except (TypeError, ZeroDivisionError) as error:
            told = {name: row.get(name) for name in sorted(self.names)}
            what = f"'{self.text}': {error}; the columns are {told}"
            raise InputError(what, where="--where", instead="compare numbers with numbers, texts with texts") from None

    def _parse(self, node: ast.expr) -> Test:
        match node:
            case ast.Constant(value=bool() | int() | float() | str() as value):
                return lambda row: value
            case ast.Name(id=name):
                self.names.add(name)
                return lambda row: _value(row, name)
            case ast.List(elts=items) | ast.Tuple(elts=items):
                tests = [self._parse(item) for item in items]
                return lambda row: [test(row) for test in tests]
            case ast.BoolOp(op=kind, values=items):
                tests, together = [self._parse(item) for item in items], all if isinstance(kind, ast.And) else any
                return lambda row: together(_known(test, row) for test in tests)
            case ast.UnaryOp(op=ast.Not(), operand=item):
                test = self._parse(item)
                return lambda row: not test(row)
            case ast.UnaryOp(op=ast.USub(), operand=item):
                test = self._parse(item)
                return lambda row: -_number(test(row))
            case ast.BinOp(left=left, op=kind, right=right) if type(kind) in _COMPUTE:
                one, other, compute = self._parse(left), self._parse(right), _COMPUTE[type(kind)]
                return lambda row: compute(_number(one(row)), _number(other(row)))
            case ast.Compare(left=left, ops=kinds, comparators=rest) if all(type(kind) in _COMPARE for kind in kinds):
                return self._comparison([left, *rest], [_COMPARE[type(kind)] for kind in kinds])
        raise ValueError(f"'{ast.unparse(node)}' is not supported")

    def _comparison(self, nodes: list[ast.expr], compares: list[Callable[[Value, Value], Value]]) -> Test:
        tests = [self._parse(node) for node in nodes]

        def holds(row: Row) -> bool:
            values = [test(row) for test in tests]
            return all(compare(one, other) for compare, one, other in zip(compares, values, values[1:], strict=False))

        return holds


class _Missing(Exception):
    """Raised when an episode has no value in a column."""


def _value(row: Row, name: str) -> Value:
    if (value := row.get(name)) is None:
        raise _Missing
    return value


def _known(test: Test, row: Row) -> bool:
    try:
        return bool(test(row))
    except _Missing:
        return False


def _number(value: Value) -> int | float:
    if not isinstance(value, int | float):
        raise TypeError(f"{value!r} is not a number")
    return value
