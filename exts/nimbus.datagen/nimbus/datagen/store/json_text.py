"""Layout, provenance and outcome as JSON text, and back without loss."""

from __future__ import annotations

import json
from functools import cache
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")


def to_json(value: Any, *, indent: int | None = None) -> str:
    """JSON with sorted keys; NumPy scalars and arrays become plain numbers and lists."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, indent=indent, default=_plain)


def from_json(kind: type[T], text: str) -> T:
    """A dataclass of that kind, its nested dataclasses and tuples restored."""
    return _adapter(kind).validate_python(json.loads(text))


@cache
def _adapter(kind: type[Any]) -> Any:
    from pydantic import TypeAdapter

    return TypeAdapter(kind)


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} is not a plain JSON value: {value!r}")
