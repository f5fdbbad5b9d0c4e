"""Lossless conversion of dataclasses to JSON text, or to plain values with separate arrays, and back.

msgspec reads, strictly by the type hints of the dataclass. :mod:`json` and pydantic-core write, because content hashes
depend on the digits that Python writes for numbers; msgspec writes other digits, and null for NaN.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from functools import cache, partial, reduce
from operator import or_
from pathlib import PurePath
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec
import numpy as np
from pydantic_core import to_json as to_json_bytes

T = TypeVar("T")

_ARRAY = "__array__"
"""Only key of the dictionary that stands for a raw array; its value is the array's number."""


def to_json(value: object, *, indent: int | None = None) -> str:
    """Encode plain values, NumPy values and dataclasses as JSON with sorted keys, the form for hashes."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, indent=indent, default=to_plain)


def to_compact_json(value: object) -> str:
    """Encode plain values and dataclasses as JSON without spaces, as in the ledger; ten times faster than to_json."""
    return to_json_bytes(value).decode()


def parse_json(text: str) -> Any:
    """Decode JSON text into plain values; raises ``ValueError`` for invalid text."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except TypeError as error:
        raise ValueError(str(error)) from None


def from_json(kind: type[T], text: str) -> T:
    """Decode JSON text into a dataclass, its nested dataclasses and tuples.

    Fields that the dataclass does not have are ignored, because a later version of Nimbus may have written them.

    Raises:
        ValueError: The text is not JSON, or not of that kind.
    """
    return from_plain(kind, parse_json(text))


def from_json_bytes(kind: type[T], data: bytes) -> T:
    """Decode JSON into a dataclass as :func:`from_json` does, without plain values in between.

    It takes half the memory, and ends at the first value of another type. NaN and infinity are refused.

    Raises:
        ValueError: The data are not JSON, or not of that kind.
    """
    try:
        item = msgspec.json.decode(data, type=kind)
    except msgspec.ValidationError as error:
        raise ValueError(_line(error)) from None
    except msgspec.DecodeError as error:
        raise ValueError(str(error)) from None
    except RecursionError:
        raise ValueError("nested too deeply") from None
    _set_defaults(item)
    return item


def from_plain(kind: type[T], value: object, *, strict: bool = True) -> T:
    """Convert plain values into a dataclass.

    Args:
        kind: The dataclass.
        value: Dictionaries, lists, texts and numbers, which come from files and servers of others.
        strict: Refuse values of another type, except an integer for a float; if False, 1 and ``"1"`` convert to True.

    Raises:
        ValueError: The values are not of that kind.
    """
    try:
        item = msgspec.convert(value, kind, strict=strict)
    except msgspec.ValidationError as error:
        raise ValueError(_line(error)) from None
    except AttributeError:  # msgspec takes an array for a dictionary, because it has items
        raise ValueError("found an array instead of a dictionary") from None
    except RecursionError:
        raise ValueError("nested too deeply") from None
    _set_defaults(item)
    return item


def to_plain(value: object) -> Any:
    """Convert a value that JSON and MessagePack cannot represent; hook of the encoders.

    Raises:
        TypeError: The value is not of NumPy, a dataclass, a text or a path.
    """
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    if is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, str | PurePath):
        return str(value)
    raise TypeError(f"{type(value).__name__} is not a plain JSON value: {value!r}")


def flatten(item: object, *, skip: frozenset[str] = frozenset()) -> tuple[dict[str, Any], list[np.ndarray]]:
    """Split a dataclass into plain JSON values and arrays.

    Args:
        item: The dataclass.
        skip: Fields that are left out.

    Returns:
        The plain values, and the arrays of the fields in order, of any shape and unit.

    Raises:
        TypeError: A value is not of its field's type.
    """
    arrays: list[np.ndarray] = []

    def encode(value: object) -> Any:
        if isinstance(value, np.ndarray):
            arrays.append(value)
            return {_ARRAY: len(arrays) - 1}
        return value.item() if isinstance(value, np.generic) else to_plain(value)

    shown = fields(item)  # pyright: ignore[reportArgumentType]
    values = {field.name: getattr(item, field.name) for field in shown if field.name not in skip}
    plain = msgspec.to_builtins(values, enc_hook=encode)
    try:
        _convert(type(item), plain, dict(enumerate(arrays)), skip)
    except ValueError as error:
        raise TypeError(str(error)) from None
    return plain, arrays


def restore(kind: type[T], plain: object, arrays: Sequence[np.ndarray], *, given: Mapping[str, object]) -> T:
    """Restore a value from the output of :func:`flatten`; fields must match exactly.

    An integer in a float field stays an integer, because stored text distinguishes them.

    Args:
        kind: The dataclass.
        plain: Plain values from :func:`flatten`.
        arrays: Arrays of the fields in order, of any shape and unit.
        given: Values of the fields that were skipped.

    Raises:
        ValueError: The values do not fit the dataclass, or an array belongs to no field.
    """
    unused = dict(enumerate(arrays))
    exact = _convert(kind, plain, unused, frozenset(given))
    item = kind(**_fields(exact, kind, unused), **given)
    if unused:
        raise ValueError(f"arrays without a field: {', '.join(map(str, unused))}"[:500])
    return item


def _set_defaults(item: Any) -> None:
    """Set default values on the item. Msgspec leaves them on the class, where encoder and ``vars`` do not find them."""
    kind = type(item)
    if kind is tuple or kind is list:
        for member in item:
            _set_defaults(member)
    elif kind is dict:
        for member in item.values():
            _set_defaults(member)
    elif is_dataclass(kind):
        held = vars(item)
        count, defaults, nested = _members(kind)
        if len(held) < count:
            for name, default in defaults:
                held.setdefault(name, default)
        for name in nested:
            _set_defaults(held[name])


@cache
def _members(kind: Any) -> tuple[int, tuple[tuple[str, Any], ...], tuple[str, ...]]:
    """Count the fields of a dataclass, and list those that have a default and those that hold further dataclasses."""
    members, hints = fields(kind), get_type_hints(kind)
    defaults = tuple((field.name, field.default) for field in members if field.default is not MISSING)
    return len(members), defaults, tuple(field.name for field in members if _holds_dataclass(hints[field.name]))


def _holds_dataclass(hint: Any) -> bool:
    return is_dataclass(hint) or any(map(_holds_dataclass, get_args(hint)))


def _convert(kind: type, plain: object, unused: dict[int, np.ndarray], skip: frozenset[str]) -> msgspec.Struct:
    try:
        return msgspec.convert(plain, _exact(kind, skip), dec_hook=partial(_take, unused))
    except msgspec.ValidationError as error:
        raise ValueError(_line(error)) from None


def _take(unused: dict[int, np.ndarray], kind: Any, reference: object) -> np.ndarray:
    """Look up the array of a field; msgspec's hook for types that it does not know."""
    dtype = np.dtype(get_args(get_args(kind)[1])[0])
    number = reference.get(_ARRAY) if isinstance(reference, dict) else None
    array = unused.pop(number, None) if type(number) is int else None
    if array is None or array.dtype != dtype:
        found = type(reference).__name__ if array is None else array.dtype
        raise ValueError(f"expected an array of {dtype}, found {found}")
    return array


@cache
def _exact(kind: Any, skip: frozenset[str] = frozenset()) -> Any:
    """Derive a stricter type, without defaults and unknown fields, in which integers in float fields stay integers."""
    if kind is float:
        return int | float
    if is_dataclass(kind):
        hints = get_type_hints(kind)
        members = [(field.name, _exact(hints[field.name])) for field in fields(kind) if field.name not in skip]
        name = getattr(kind, "__name__", "")
        return msgspec.defstruct(name, members, forbid_unknown_fields=True, namespace={"__dataclass__": kind})
    origin, members = get_origin(kind), get_args(kind)
    if origin is np.ndarray or not members:
        return kind
    members = tuple(member if member is Ellipsis else _exact(member) for member in members)
    if origin in (UnionType, Union):
        return reduce(or_, members)
    return origin[members]  # pyright: ignore[reportOptionalSubscript]


def _fields(exact: msgspec.Struct, kind: type, unused: dict[int, np.ndarray]) -> dict[str, Any]:
    """Rebuild the fields of a dataclass; plain fields are searched for arrays only while unused arrays remain."""
    members = {name: getattr(exact, name) for name in exact.__struct_fields__}
    for name in members if unused else _members(kind)[2]:
        if name in members:
            members[name] = _rebuild(members[name], unused)
    return members


def _rebuild(value: Any, unused: dict[int, np.ndarray]) -> Any:
    """Replace exact types by their dataclasses, and references to arrays in plain values by lists."""
    if isinstance(value, msgspec.Struct):
        kind = type(value).__dataclass__  # pyright: ignore[reportAttributeAccessIssue]
        return kind(**_fields(value, kind, unused))
    if type(value) is tuple:
        return tuple([_rebuild(member, unused) for member in value])
    if type(value) is list:
        return [_rebuild(member, unused) for member in value]
    if type(value) is dict:
        if value.keys() == {_ARRAY}:
            return _take_any(value[_ARRAY], unused)
        return {key: _rebuild(member, unused) for key, member in value.items()}
    return value


def _take_any(number: object, unused: dict[int, np.ndarray]) -> Any:
    if type(number) is not int or number not in unused:
        raise ValueError(f"array {number!r} is missing")
    return unused.pop(number).tolist()


def _line(error: msgspec.ValidationError) -> str:
    """Format an error as ``field.name: message``."""
    message, found, path = str(error).rpartition(" - at `$")
    path = path.strip("`.")
    return f"{path}: {message}" if found and path else message if found else str(error)
