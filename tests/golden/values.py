"""Golden values: small records of the output of a component's version, stored as JSON beside the tests."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

FOLDER = Path(__file__).parent
UPDATE = "python -m pytest tests/golden --update-golden"
_QUANTUM, _SHIFT = 1e-6, 0.37123
"""Floats are compared in steps of this size; the shift keeps round decimals away from the borders of the steps."""
_PROJECTIONS = 3


@dataclass
class GoldenFile:
    """The golden values of one file, by name of the component, each with its versions.

    Args:
        path: The JSON file.
        update: True to store new values if a version was raised.
    """

    path: Path
    update: bool = False
    entries: dict[str, list[Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.path.is_file():
            self.entries = json.loads(self.path.read_text(encoding="utf-8"))

    def check(self, name: str, value: Any, versions: Mapping[str, int], *, tolerance: float = 0.0) -> None:
        """Compare a value with the golden one, or replace it if a version was raised.

        Args:
            name: Name of the component.
            value: Plain JSON: texts are compared exactly, numbers within the tolerance.
            versions: Version numbers on which the value depends, its own first, by their names in the source.
            tolerance: Absolute tolerance.
        """
        now = ".".join(map(str, versions.values()))
        then, golden = self.entries.get(name, ("", None))
        if then == now and is_close(value, golden, tolerance):
            return
        own, *others = versions
        if then == now:
            further = f" (or, where the change is there, {', '.join(others)})" if others else ""
            raise AssertionError(
                f"the output of {name} changed and no version did: raise {own}{further}, then run '{UPDATE}'; "
                f"golden {json.dumps(golden)}, now {json.dumps(value)}"
            )
        if not self.update:
            why = f"was made with version {then}, now {now}" if then else "is missing"
            raise AssertionError(f"the golden value of {name} {why}: run '{UPDATE}'")
        self.entries[name] = [now, value]
        lines = ",\n".join(f"{json.dumps(key)}: {json.dumps(entry)}" for key, entry in sorted(self.entries.items()))
        self.path.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")


def is_close(value: Any, golden: Any, tolerance: float) -> bool:
    """Return True if two JSON values have equal structure and texts, and numbers within a tolerance."""
    if isinstance(value, list | tuple) and isinstance(golden, list):
        return len(value) == len(golden) and all(
            is_close(one, other, tolerance) for one, other in zip(value, golden, strict=True)
        )
    if isinstance(value, float) and isinstance(golden, int | float):
        return abs(value - golden) <= tolerance
    return value == golden


def digest(*parts: Any) -> str:
    """Return a hash of arrays and plain values: integers and texts exactly, floats in steps of 1e-6."""
    total = hashlib.sha256()
    for part in parts:
        for path, leaf in leaves(part):
            total.update(f"{path}={_exact(leaf)};".encode())
    return total.hexdigest()[:12]


def sketch(values: ArrayLike) -> list[float]:
    """Return the number of values, and some fixed random projections, all of which change with any value."""
    numbers = np.nan_to_num(np.asarray(values, dtype=float), posinf=9.0, neginf=-9.0).ravel()
    weights = np.random.default_rng(7).normal(size=(_PROJECTIONS, len(numbers)))
    return [len(numbers), *(round(float(value), 5) for value in weights @ numbers)]


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the innermost values of nested dicts and lists, each with its path."""
    if isinstance(value, Mapping):
        for key in sorted(value, key=str):
            yield from leaves(value[key], f"{path}/{key}")
    elif isinstance(value, list | tuple):
        for index, one in enumerate(value):
            yield from leaves(one, f"{path}/{index}")
    else:
        yield path, value


def _exact(leaf: Any) -> str:
    if isinstance(leaf, np.ndarray):
        whole: NDArray[Any] = _quantized(leaf) if leaf.dtype.kind == "f" else leaf
        return f"{leaf.shape} {zlib.crc32(np.ascontiguousarray(whole).tobytes())}"
    if isinstance(leaf, float | np.floating):
        return str(int(_quantized(np.array(leaf))))
    return str(leaf)


def _quantized(values: NDArray[Any]) -> NDArray[np.int64]:
    return np.floor(values.astype(np.float64) / _QUANTUM + _SHIFT).astype(np.int64)
