"""A dataclass as plain JSON values and a list of arrays, and back, by its own type hints and without any conversion."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import ItemsView, Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

import numpy as np

Arrays = dict[str, np.ndarray]
"""Arrays by the path of their field."""
Numbered = dict[int, tuple[str, np.ndarray]]
"""Arrays that are still to be used, by their number: name and content."""


class FieldError(ValueError):
    """A value that is not what the field says."""


def flatten(item: Any, arrays: Arrays, *, skip: frozenset[str] = frozenset()) -> Any:
    """Plain JSON values of a dataclass; each array goes into ``arrays``, and its number there stands in its place.

    Args:
        item: What is taken apart.
        arrays: Filled.
        skip: Fields that are left out.

    Raises:
        TypeError: A value is not of its field's type, or a type is one that cannot be taken apart.
    """
    return _Record(type(item), skip).flatten(item, "item", arrays)


def restore(kind: Any, plain: Any, arrays: Sequence[tuple[str, np.ndarray]], *, given: Mapping[str, Any]) -> Any:
    """What :func:`flatten` took apart.

    Args:
        kind: The dataclass.
        plain: Its plain values.
        arrays: Name and content, in order.
        given: Fields that were left out.

    Raises:
        FieldError: The values are not those of such a dataclass, or not all arrays belong to it.
    """
    unused = dict(enumerate(arrays))
    values = _Record(kind, frozenset(given)).values(plain, "item", unused)
    if unused:
        raise FieldError(f"arrays that no field has: {', '.join(map(str, unused.values()))[:500]}")
    return kind(**values, **given)


class _Codec(ABC):
    """Takes values of one type apart and puts them together."""

    @abstractmethod
    def flatten(self, value: Any, path: str, arrays: Arrays) -> Any: ...

    @abstractmethod
    def restore(self, plain: Any, path: str, arrays: Numbered) -> Any: ...


class _Array(_Codec):
    def __init__(self, dtype: np.dtype) -> None:
        self.dtype = dtype

    def flatten(self, value: Any, path: str, arrays: Arrays) -> int:
        if not isinstance(value, np.ndarray) or value.dtype != self.dtype:
            found = getattr(value, "dtype", type(value).__name__)
            raise TypeError(f"{path}: expected an array of {self.dtype}, found {found}")
        arrays[path] = value
        return len(arrays) - 1

    def restore(self, plain: Any, path: str, arrays: Numbered) -> np.ndarray:
        name, array = arrays.pop(_expect(int, plain, path), ("", None))
        if array is None or name != path or array.dtype != self.dtype:
            raise FieldError(f"{path}: its array of {self.dtype} is missing")
        return array


class _Record(_Codec):
    """A dataclass."""

    def __init__(self, kind: type, skip: frozenset[str] = frozenset()) -> None:
        hints = _hints(kind)
        self.kind = kind
        self.handles = {name: _codec(hint) for name, hint in hints.items() if name not in skip}

    def flatten(self, value: Any, path: str, arrays: Arrays) -> dict[str, Any]:
        if type(value) is not self.kind:
            raise TypeError(f"{path}: expected {self.kind.__name__}, found {type(value).__name__}")
        return {name: handle.flatten(getattr(value, name), f"{path}/{name}", arrays) for name, handle in self._pairs}

    def restore(self, plain: Any, path: str, arrays: Numbered) -> Any:
        return self.kind(**self.values(plain, path, arrays))

    def values(self, plain: Any, path: str, arrays: Numbered) -> dict[str, Any]:
        if _expect(dict, plain, path).keys() != self.handles.keys():
            raise FieldError(f"{path}: fields {sorted(plain)}, expected {sorted(self.handles)}")
        return {name: handle.restore(plain[name], f"{path}/{name}", arrays) for name, handle in self._pairs}

    @property
    def _pairs(self) -> ItemsView[str, _Codec]:
        return self.handles.items()


class _Tuple(_Codec):
    """A tuple of equal members, or of as many as it says."""

    def __init__(self, kinds: tuple[Any, ...]) -> None:
        self.equal = _codec(kinds[0]) if kinds[-1] is Ellipsis else None
        self.handles = [] if self.equal else [_codec(kind) for kind in kinds]

    def flatten(self, value: Any, path: str, arrays: Arrays) -> list[Any]:
        handles = self._members(len(value), path, TypeError)
        return [handles[row].flatten(entry, f"{path}/{row}", arrays) for row, entry in enumerate(value)]

    def restore(self, plain: Any, path: str, arrays: Numbered) -> tuple[Any, ...]:
        handles = self._members(len(_expect(list, plain, path)), path, FieldError)
        return tuple([handles[row].restore(entry, f"{path}/{row}", arrays) for row, entry in enumerate(plain)])

    def _members(self, count: int, path: str, error: type[Exception]) -> list[_Codec]:
        handles = [self.equal] * count if self.equal else self.handles
        if len(handles) != count:
            raise error(f"{path}: expected {len(handles)} values, found {count}")
        return handles


class _Maybe(_Codec):
    """A value, or None."""

    def __init__(self, kind: Any) -> None:
        self.inner = _codec(kind)

    def flatten(self, value: Any, path: str, arrays: Arrays) -> Any:
        return None if value is None else self.inner.flatten(value, path, arrays)

    def restore(self, plain: Any, path: str, arrays: Numbered) -> Any:
        return None if plain is None else self.inner.restore(plain, path, arrays)


class _Named(_Codec):
    """A dictionary from names to equal members."""

    def __init__(self, handle: _Codec) -> None:
        self.handle = handle

    def flatten(self, value: Any, path: str, arrays: Arrays) -> dict[str, Any]:
        entries = value.items()
        return {_name(key, path): self.handle.flatten(entry, f"{path}/{key}", arrays) for key, entry in entries}

    def restore(self, plain: Any, path: str, arrays: Numbered) -> dict[str, Any]:
        entries = _expect(dict, plain, path).items()
        return {key: self.handle.restore(entry, f"{path}/{key}", arrays) for key, entry in entries}


class _Choice(_Codec):
    """An enum."""

    def __init__(self, kind: type[Enum]) -> None:
        self.kind = kind

    def flatten(self, value: Any, path: str, arrays: Arrays) -> Any:
        return self.kind(value).value

    def restore(self, plain: Any, path: str, arrays: Numbered) -> Enum:
        try:
            return self.kind(plain)
        except ValueError as error:
            raise FieldError(f"{path}: {error}") from None


class _Scalar(_Codec):
    """A number, a text, a truth: an integer where a float may be stays one, as the stored text tells them apart."""

    def __init__(self, kind: type) -> None:
        self.kinds = {kind, int} if kind is float else {kind}

    def flatten(self, value: Any, path: str, arrays: Arrays) -> Any:
        value = value.item() if isinstance(value, np.generic) else value
        known = type(value) in self.kinds or isinstance(value, str) and str in self.kinds
        return value if known else self._refuse(value, path, TypeError)

    def restore(self, plain: Any, path: str, arrays: Numbered) -> Any:
        return plain if type(plain) in self.kinds else self._refuse(plain, path, FieldError)

    def _refuse(self, value: Any, path: str, error: type[Exception]) -> Any:
        wanted = " or ".join(sorted(kind.__name__ for kind in self.kinds))
        raise error(f"{path}: expected {wanted}, found {value!r}"[:500])


class _Anything(_Codec):
    """Plain JSON values; tuples become lists, as where they are stored."""

    def flatten(self, value: Any, path: str, arrays: Arrays) -> Any:
        if isinstance(value, np.generic | np.ndarray):
            value = value.tolist()
        if isinstance(value, dict):
            return {_name(key, path): self.flatten(entry, f"{path}/{key}", arrays) for key, entry in value.items()}
        if isinstance(value, list | tuple):
            return [self.flatten(entry, f"{path}/{row}", arrays) for row, entry in enumerate(value)]
        if value is None or isinstance(value, str | int | float):
            return value
        raise TypeError(f"{path}: {type(value).__name__} is not a plain JSON value: {value!r}")

    def restore(self, plain: Any, path: str, arrays: Numbered) -> Any:
        return plain


@cache
def _codec(kind: Any) -> _Codec:
    if kind is Any:
        return _Anything()
    if kind in (str, int, float, bool):
        return _Scalar(kind)
    if get_origin(kind) is np.ndarray:
        return _Array(np.dtype(get_args(get_args(kind)[1])[0]))
    if get_origin(kind) is tuple:
        return _Tuple(get_args(kind))
    if get_origin(kind) is dict and get_args(kind)[0] is str:
        return _Named(_codec(get_args(kind)[1]))
    if get_origin(kind) is UnionType and len(get_args(kind)) == 2 and get_args(kind)[1] is type(None):
        return _Maybe(get_args(kind)[0])
    if is_dataclass(kind):
        return _Record(kind)  # pyright: ignore[reportArgumentType]
    if isinstance(kind, type) and issubclass(kind, Enum):
        return _Choice(kind)
    raise TypeError(f"a {kind} cannot travel")


@cache
def _hints(kind: type) -> dict[str, Any]:
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in fields(kind)}


def _name(key: Any, path: str) -> str:
    if not isinstance(key, str):
        raise TypeError(f"{path}: a name must be a text, found {key!r}")
    return key


def _expect(kind: type, plain: Any, path: str) -> Any:
    if type(plain) is not kind:
        raise FieldError(f"{path}: expected a {kind.__name__}, found {type(plain).__name__}")
    return plain
