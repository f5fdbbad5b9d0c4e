"""Types of fields that a strict model can read from a YAML file, and those that it cannot."""

from __future__ import annotations

from pathlib import PurePath
from types import NoneType
from typing import Any, Literal, get_args, get_origin

from nimbus.datagen.files.strict_yaml import StrictModel

_READ = (str, int, float, bool, NoneType, tuple, dict, object)


def find_unwritable(annotation: Any) -> type | None:
    """Return a class in a field's annotation whose values no file holds, such as ``Path`` or ``list``; None if none."""
    origin = get_origin(annotation)
    if origin is Literal:
        return None
    if isinstance(origin, type) and origin in (list, set, frozenset):
        return origin
    if parts := get_args(annotation):
        return next(filter(None, map(find_unwritable, parts)), None)
    if not isinstance(annotation, type) or annotation in _READ or issubclass(annotation, StrictModel):
        return None
    return annotation


def how_to_declare(kind: type) -> str:
    """Return the advice for a field of a class that no file holds."""
    if issubclass(kind, str | PurePath):
        return "declare it as str"
    if issubclass(kind, list | set | frozenset):
        return "declare it as tuple[…, ...]"
    return "declare it as str, int, float, bool, Literal[…], tuple, dict, a StrictModel or a quantity such as Metres"
