"""Strict YAML for files that users write; every error is one line with its location.

The data follow YAML 1.2: only ``true`` and ``false`` are booleans (``on``, ``yes`` and ``12:30`` are text), ``1e-3`` is
a number. Lists become tuples, so that models can be strict and frozen.
"""

from __future__ import annotations

import errno
import os
import re
import unicodedata
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.bounded import read_bytes
from nimbus.datagen.files.validation_errors import FieldError, field_errors

Model = TypeVar("Model", bound=BaseModel)
Keys = tuple[str | int, ...]
"""Location of a value: keys and list indices from the top of the file."""

Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
"""An identifier in a file."""
FileName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$", max_length=64)]
"""Name in a file that becomes part of the names of files and folders."""

_NODE_LIMIT, _DEPTH_LIMIT, _BYTE_LIMIT = 50_000, 40, 2**20
_KEY_LIMIT, _DIGIT_LIMIT = 100, 40
_TOO_LARGE = "the file is too large or nested too deeply (aliases count each time)"
_SPLIT = "split it, or use fewer aliases"
_SHORT = 10_000
"""Longest text whose parsed nodes are kept [characters]."""


class StrictModel(BaseModel):
    """Base of file models: frozen, no unknown keys, no silent conversion; lists are tuples."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


@dataclass(frozen=True)
class Position:
    """Line and column in a text, counted from 1."""

    line: int
    column: int


def _position(mark: yaml.Mark | None) -> Position:
    return Position(mark.line + 1, mark.column + 1) if mark else Position(1, 1)


def dotted(keys: Keys) -> str:
    """Format keys for messages: ``objects.items.count[0]``; keys with spaces are in quotes."""
    quoted = (key if isinstance(key, int) or " " not in key else f"'{key}'" for key in keys)
    text = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in quoted)
    return text.removeprefix(".")


@dataclass(frozen=True)
class Document:
    """Parsed file: plain data, and the position of each key and value."""

    name: str
    text: str = field(repr=False)
    data: Any = field(repr=False)
    values: dict[Keys, Position] = field(repr=False)
    keys: dict[Keys, Position] = field(repr=False)

    def position(self, keys: Keys) -> Position:
        """Return the position of a value; for a missing value, the position of the nearest enclosing one."""
        while keys and keys not in self.values:
            keys = keys[:-1]
        return self.values.get(keys, Position(1, 1))

    def where(self, keys: Keys, *, at_key: bool = False) -> str:
        """Return the location of the value (or of the key) at ``keys``: ``file:line:column: field``."""
        place = (self.keys.get(keys) if at_key else None) or self.position(keys)
        return f"{self.name}:{place.line}:{place.column}" + (f": {dotted(keys)}" if keys else "")

    def error(self, keys: Keys, what: str, *, instead: str = "", at_key: bool = False) -> InputError:
        """Return an error about the value (or the key) at ``keys``, ready to raise."""
        return InputError(what, where=self.where(keys, at_key=at_key), instead=instead)

    def validate(self, model: type[Model], *, data: Any = None, at: Keys = (), context: Any = None) -> Model:
        """Validate the document, or a part of it, against a model.

        Args:
            model: The pydantic model.
            data: Data to validate instead of the document's own, for example an expanded short form.
            at: Location of ``data`` in the document.
            context: Passed to the model's validators.

        Raises:
            InputError: The document has an error; the first one is reported in one line.
        """
        data = self.data if data is None else data
        try:
            return model.model_validate(data, context=context)
        except ValidationError as error:
            first = min(field_errors(error, model, data), key=lambda complaint: self._order(complaint, at))
            keys = at + first.keys
            raise self.error(keys, first.what, instead=first.instead, at_key=first.at_key) from None

    def _order(self, complaint: FieldError, at: Keys) -> tuple[int, int]:
        keys = at + complaint.keys
        if complaint.missing:  # reported after unknown keys, one of which may be its misspelling
            inside = (place for path, place in self.values.items() if path[: len(keys)] == keys)
            return max((place.line, place.column) for place in (*inside, self.position(keys)))
        place = (self.keys.get(keys) if complaint.at_key else None) or self.position(keys)
        return place.line, place.column


class _TooManyNodesError(Exception):
    """Raised while a text is parsed."""

    def __init__(self, place: Position) -> None:
        super().__init__()
        self.place = place


class _Loader(yaml.SafeLoader):
    """Loader whose plain scalars follow YAML 1.2."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._left = 2 * _NODE_LIMIT  # keys are nodes as well

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        """Compose a node, unless there are too many; a composed one takes a hundred times the space of its text."""
        self._left -= 1
        if self._left < 0:
            raise _TooManyNodesError(_position(self.peek_event().start_mark))
        return super().compose_node(parent, index)


for _tag, _pattern, _first in (
    ("null", r"null|Null|NULL|~|", [*"nN~", ""]),
    ("bool", r"true|True|TRUE|false|False|FALSE", [*"tTfF"]),
    ("int", r"[-+]?[0-9]+|0x[0-9a-fA-F]+", [*"-+0123456789"]),
    (
        "float",
        r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)",
        [*"-+.0123456789"],
    ),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(rf"^(?:{_pattern})$"), _first)


def _integer(text: str) -> int:
    return int(text, 16 if text.startswith("0x") else 10)


_SCALARS = {
    "str": str,
    "null": lambda text: None,
    "bool": lambda text: text.lower() == "true",
    "int": _integer,
    "float": lambda text: float(text.lower().replace(".inf", "inf").replace(".nan", "nan")),
}


class _Builder:
    """Converts a node tree to plain data and positions."""

    def __init__(self, name: str) -> None:
        self.name, self.count = name, 0
        self.values: dict[Keys, Position] = {}
        self.keys: dict[Keys, Position] = {}

    def error(self, node: yaml.Node, keys: Keys, what: str, *, instead: str) -> InputError:
        document = Document(self.name, "", None, {(): _position(node.start_mark)}, {})
        return InputError(what, where=document.where(keys), instead=instead)

    def build(self, node: yaml.Node, keys: Keys = ()) -> Any:
        self.count += 1
        if self.count > _NODE_LIMIT or len(keys) > _DEPTH_LIMIT:
            raise self.error(node, (), _TOO_LARGE, instead=_SPLIT)
        self.values[keys] = _position(node.start_mark)
        if isinstance(node, yaml.MappingNode) and node.tag.endswith(":map"):
            return self._mapping(node, keys)
        if isinstance(node, yaml.SequenceNode) and node.tag.endswith(":seq"):
            return tuple(self.build(child, (*keys, index)) for index, child in enumerate(node.value))
        return self._scalar(node, keys)

    def _mapping(self, node: yaml.MappingNode, keys: Keys) -> dict[str, Any]:
        data: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                raise self.error(key_node, keys, "a key must be a name", instead="write a name before the colon")
            key = key_node.value
            if key_node.tag.endswith(":merge") or key == "<<":
                raise self.error(key_node, keys, "'<<' is not supported", instead="write out the keys")
            if len(key) > _KEY_LIMIT:
                raise self.error(
                    key_node, keys, f"a key of {len(key)} letters is too long: '{key[:40]}…'", instead="shorten it"
                )
            if not all(map(_is_text, key)):
                raise self.error(
                    key_node, keys, f"a key contains a control character: {ascii(key[:40])}", instead="remove it"
                )
            if key in data:
                line = self.keys[*keys, key].line
                raise self.error(
                    key_node,
                    (*keys, key),
                    f"key '{key}' is given twice, first in line {line}",
                    instead="remove one of them",
                )
            self.keys[*keys, key] = _position(key_node.start_mark)
            data[key] = self.build(value_node, (*keys, key))
        return data

    def _scalar(self, node: yaml.Node, keys: Keys) -> Any:
        tag = node.tag.removeprefix("tag:yaml.org,2002:")
        if tag not in _SCALARS or not isinstance(node, yaml.ScalarNode):
            raise self.error(node, keys, f"tag '{node.tag}' is not allowed", instead="write plain values")
        if wrong := next((letter for letter in node.value if not _is_text(letter)), ""):
            raise self.error(node, keys, f"holds the control character {ascii(wrong)}", instead="remove it")
        if tag == "int" and len(node.value) > _DIGIT_LIMIT:
            what = f"a whole number of {len(node.value)} digits is too long: '{node.value[:20]}…'"
            raise self.error(node, keys, what, instead="write a smaller number")
        try:
            return _SCALARS[tag](node.value)
        except ValueError:
            raise self.error(
                node,
                keys,
                f"not a valid {tag}: '{node.value[:40]}'",
                instead="correct it, or put it in quotes as a text",
            ) from None


def _is_text(letter: str) -> bool:
    """Return True for any character except control characters other than line breaks and tabs, and half surrogates."""
    return letter in "\n\t" or unicodedata.category(letter) not in ("Cc", "Cs")


def _compose(text: str) -> yaml.Node | None:
    return yaml.compose(text, Loader=_Loader)


_compose_once = lru_cache(maxsize=128)(_compose)
"""Cached version: the form of a task editor parses the same text and values at every key press."""


def parse(text: str, name: str) -> Document:
    """Parse YAML text; ``name`` stands for it in errors.

    Raises:
        InputError: Malformed YAML, a key given twice, a tag, or a file that is empty or too large.
    """
    builder = _Builder(name)
    if len(text) > _BYTE_LIMIT:
        raise InputError(_TOO_LARGE, where=f"{name}:1:1", instead=_SPLIT)
    try:
        node = (_compose_once if len(text) <= _SHORT else _compose)(text)
    except yaml.MarkedYAMLError as error:
        place = _position(error.problem_mark or error.context_mark)
        parts = [part for part in (error.context, error.problem) if part]
        what = "malformed YAML: " + ", ".join(parts)
        instead = "close the bracket, or put text with brackets in quotes" if "while parsing a flow" in what else ""
        raise InputError(what, where=f"{name}:{place.line}:{place.column}", instead=instead) from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        column = error.position - text.rfind("\n", 0, error.position)
        raise InputError(
            "malformed YAML: a character that YAML forbids",
            where=f"{name}:{line}:{column}",
            instead="remove this character",
        ) from None
    except _TooManyNodesError as error:
        where = f"{name}:{error.place.line}:{error.place.column}"
        raise InputError(_TOO_LARGE, where=where, instead=_SPLIT) from None
    except RecursionError:
        raise InputError(
            "malformed YAML: nested too deeply", where=f"{name}:1:1", instead="write fewer nested brackets or lists"
        ) from None
    if node is None:
        raise InputError("the file is empty", where=f"{name}:1:1", instead="add content to the file, or restore it")
    data = builder.build(node)
    return Document(name, text, data, builder.values, builder.keys)


def read(path: Path | str) -> Document:
    """Read and parse a YAML file.

    Raises:
        InputError: The file is missing, not a text, or refused by ``parse``.
    """
    path = Path(path)
    try:
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if path.stat().st_size > _BYTE_LIMIT:
            raise InputError(
                "larger than 1 MiB, which is too long for a hand-written file",
                where=str(path),
                instead="give the right file",
            )
        text = read_bytes(path, limit=_BYTE_LIMIT).decode("utf-8-sig")
    except OSError as error:
        raise InputError(
            (error.strerror or str(error)).lower(), where=str(path), instead="give a file that can be read"
        ) from None
    except UnicodeDecodeError as error:
        what = f"not a UTF-8 text: byte {error.start}"
        raise InputError(what, where=str(path), instead="save it as UTF-8") from None
    return parse(text, str(path))


def load(path: Path | str, model: type[Model], *, context: Any = None) -> Model:
    """Read a YAML file and validate it against a model; errors are one-line ``InputError``s with their location."""
    return read(path).validate(model, context=context)


def load_text(text: str, name: str, model: type[Model], *, context: Any = None) -> Model:
    """Validate YAML text against a model; ``name`` stands for the text in errors."""
    return parse(text, name).validate(model, context=context)
