"""Layout, provenance and outcome as JSON text, and back without loss."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import is_dataclass
from functools import cache
from typing import Any, TypeVar

import numpy as np
from pydantic import ValidationError

T = TypeVar("T")


def to_json(value: Any, *, indent: int | None = None) -> str:
    """JSON with sorted keys; NumPy becomes plain numbers and lists, a dataclass its fields."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, indent=indent, default=_plain)


def from_json(kind: type[T], text: str) -> T:
    """A dataclass of that kind, its nested dataclasses and tuples restored.

    Raises:
        ValueError: The text is not JSON, or not of that kind.
    """
    return from_plain(kind, parse_json(text))


def from_plain(kind: type[T], value: Any) -> T:
    """A dataclass of that kind from plain values; ``ValueError`` when they are not of that kind."""
    return _validated(_validator(kind).validate_python, value)


def from_json_bytes(kind: type[T], content: bytes) -> T:
    """As :func:`from_json`, without plain values in between."""
    return _validated(_validator(kind).validate_json, content)


def _validated(validate: Callable[[Any], T], value: Any) -> T:
    """What a validator makes of a value; its first complaint in one line."""
    try:
        return validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = "".join(f"{part}." for part in first["loc"])[:-1]
        what = first["msg"].removeprefix("Value error, ")
        raise ValueError(f"{place}: {what}" if place else what) from None


def parse_json(text: str) -> Any:
    """Plain values of a JSON text; ``ValueError`` when it is none."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except TypeError as error:
        raise ValueError(str(error)) from None


@cache
def _validator(kind: type[Any]) -> Any:
    from pydantic import TypeAdapter

    return TypeAdapter(kind).validator


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    if is_dataclass(value):
        return vars(value)
    raise TypeError(f"{type(value).__name__} is not a plain JSON value: {value!r}")
