"""Edits of YAML text that replace single values and leave every other character unchanged."""

from __future__ import annotations

import json
from typing import Any

import yaml

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.strict_yaml import Keys, dotted, parse
from nimbus.datagen.files.yaml_write import write_block, write_flow

Nodes = list[tuple[yaml.Node | None, yaml.Node]]
"""Keys and values of a mapping; entries of a sequence have no key."""


def set_value(text: str, keys: Keys, value: Any) -> str:
    """Return the text with another value at ``keys``; only the differing parts are rewritten.

    Args:
        text: A YAML file.
        keys: Location of the value; missing names are added at the end of their mapping.
        value: Plain data; tuples are lists.

    Raises:
        InputError: The location cannot be edited without changing others, for example in the target of an alias.
    """
    wanted = _with(parse(text, "task").data, keys, _plain(value))
    return _checked(_set(text, keys, _plain(value)), keys, wanted)


def remove_value(text: str, keys: Keys) -> str:
    """Return the text without the entry at ``keys``; a comment on its own line stays."""
    wanted = _without(parse(text, "task").data, keys)
    return _checked(_remove(text, keys), keys, wanted)


def insert_entry(text: str, keys: Keys, index: int, value: Any) -> str:
    """Return the text with a new entry in the list at ``keys``, before the one at ``index``."""
    data = parse(text, "task").data
    entries = list(_at(data, keys))
    index = min(max(index, 0), len(entries))
    wanted = _with(data, keys, (*entries[:index], _plain(value), *entries[index:]))
    return _checked(_insert(text, keys, index, _plain(value)), keys, wanted)


def move_entry(text: str, keys: Keys, index: int, to: int) -> str:
    """Return the text with an entry of the list at ``keys`` moved, together with its comments."""
    data = parse(text, "task").data
    entries = list(_at(data, keys))
    entries.insert(to, entries.pop(index))
    return _checked(_move(text, keys, index, to), keys, _with(data, keys, tuple(entries)))


# Positions


def _node(text: str, keys: Keys) -> yaml.Node:
    node = yaml.compose(text, Loader=yaml.SafeLoader)
    for key in keys:
        node = next(value for name, value in _named(node) if name == key)
    return node


def _named(node: yaml.Node | None) -> list[tuple[str | int, yaml.Node]]:
    if isinstance(node, yaml.MappingNode):
        return [(key.value, value) for key, value in node.value]
    return list(enumerate(node.value)) if isinstance(node, yaml.SequenceNode) else []


def _pairs(node: yaml.Node) -> Nodes:
    return list(node.value) if isinstance(node, yaml.MappingNode) else [(None, value) for value in node.value]


def _is_flow(node: yaml.Node) -> bool:
    return bool(getattr(node, "flow_style", False))


def _end(text: str, node: yaml.Node) -> int:
    """Return the end of a value's text; YAML's end mark of a block would be after the comments of the next entry."""
    if isinstance(node, yaml.CollectionNode) and not _is_flow(node) and node.value:
        return _end(text, _pairs(node)[-1][1])
    end = node.end_mark.index
    if isinstance(node, yaml.ScalarNode) and node.style in ("|", ">"):
        return len(text[:end].rstrip())
    return end


def _line_start(text: str, index: int) -> int:
    return text.rfind("\n", 0, index) + 1


def _line_end(text: str, index: int) -> int:
    end = text.find("\n", index)
    return len(text) if end < 0 else end + 1


def _own_lines(text: str, node: yaml.Node, index: int) -> tuple[int, int]:
    """Return the lines of an entry of a block; an entry that shares its first line with other content is refused."""
    key, value = _pairs(node)[index]
    begin = text.rfind("-", 0, value.start_mark.index) if key is None else key.start_mark.index
    start = _line_start(text, begin)
    if text[start:begin].strip():
        raise _refused(value, "an entry begins on the line of another one")
    return start, _line_end(text, _end(text, value))


def _refused(node: yaml.Node, what: str) -> InputError:
    where = f"line {node.start_mark.line + 1}"
    return InputError(f"cannot be edited here: {what}", where=where, instead="edit the text")


# Edits


def _set(text: str, keys: Keys, value: Any) -> str:
    data = parse(text, "task").data
    known = 0
    while known < len(keys) and _has(_at(data, keys[:known]), keys[known]):
        known += 1
    if known < len(keys):
        return _add(text, keys[:known], str(keys[known]), _nested(keys[known + 1 :], value))
    now = _at(data, keys)
    if _plain(now) == value and type(now) is type(value):
        return text
    if isinstance(now, dict) and isinstance(value, dict) and now and value:
        for name in [name for name in now if name not in value]:
            text = _remove(text, (*keys, name))
        for name, entry in value.items():
            text = _set(text, (*keys, name), entry)
        return text
    if isinstance(now, tuple) and isinstance(value, tuple) and len(now) == len(value) and now:
        for index, entry in enumerate(value):
            text = _set(text, (*keys, index), entry)
        return text
    return _replace(text, keys, value)


def _replace(text: str, keys: Keys, value: Any) -> str:
    node = _node(text, keys)
    start, end = node.start_mark.index, _end(text, node)
    if len(keys) == 1 and isinstance(value, dict) and isinstance(node, yaml.ScalarNode) and value:
        return text[:start].rstrip(" ") + write_block(value, "  ") + text[end:]
    written = write_flow(value)
    if start == end and text[start - 1 : start] not in (" ", ""):
        written = " " + written  # an empty value directly follows its colon
    return text[:start] + written + text[end:]


def _add(text: str, keys: Keys, name: str, value: Any) -> str:
    node = _node(text, keys)
    if not isinstance(node, yaml.MappingNode):
        return _replace(text, keys, {name: value})
    entry = f"{write_flow(name)}: {write_flow(value)}"
    if _is_flow(node) or not node.value:
        return _into_flow(text, node, len(node.value), entry)
    if not keys and isinstance(value, dict) and value:
        entry = f"{name}:{write_block(value, '  ')}"
    indent = " " * node.value[0][0].start_mark.column
    return _line_in(text, _line_end(text, _end(text, node)), indent + entry)


def _insert(text: str, keys: Keys, index: int, value: Any) -> str:
    node = _node(text, keys)
    if _is_flow(node) or not node.value:
        return _into_flow(text, node, index, write_flow(value))
    first, _ = _own_lines(text, node, 0)
    indent = " " * (len(text[first:]) - len(text[first:].lstrip(" ")))
    name, *rest = value if isinstance(value, dict) else ("",)
    entry = f"{write_flow(name)}: {write_flow(value[name])}" if name and not rest else write_flow(value)
    if index < len(node.value):
        place, _ = _own_lines(text, node, index)
    else:
        _, place = _own_lines(text, node, len(node.value) - 1)
    return _line_in(text, place, f"{indent}- {entry}")


def _line_in(text: str, place: int, line: str) -> str:
    newline = "\r\n" if "\r\n" in text else "\n"
    before = text[:place]
    if before and not before.endswith("\n"):
        return before + newline + line.replace("\n", newline) + text[place:]
    return before + line.replace("\n", newline) + newline + text[place:]


def _into_flow(text: str, node: yaml.Node, index: int, entry: str) -> str:
    pairs = _pairs(node)
    if not pairs:
        place = node.end_mark.index - 1
        return text[:place].rstrip(" ") + entry + text[place:]
    if index < len(pairs):
        place = (pairs[index][0] or pairs[index][1]).start_mark.index
        return f"{text[:place]}{entry}, {text[place:]}"
    place = _end(text, pairs[-1][1])
    return f"{text[:place]}, {entry}{text[place:]}"


def _remove(text: str, keys: Keys) -> str:
    around, at = _node(text, keys[:-1]), keys[-1]
    index = [name for name, _ in _named(around)].index(at)
    pairs = _pairs(around)
    if len(pairs) == 1:
        empty = "{}" if isinstance(around, yaml.MappingNode) else "[]"
        return text[: around.start_mark.index] + empty + text[_end(text, around) :]
    if not _is_flow(around):
        start, end = _own_lines(text, around, index)
        return text[:start] + text[end:]
    if index:
        start, end = _end(text, pairs[index - 1][1]), _end(text, pairs[index][1])
    else:
        start, end = ((key or value).start_mark.index for key, value in pairs[:2])
    return text[:start] + text[end:]


def _move(text: str, keys: Keys, index: int, to: int) -> str:
    node = _node(text, keys)
    count = len(node.value)
    if _is_flow(node):
        spans = [(value.start_mark.index, _end(text, value)) for value in node.value]
    else:
        spans = [_own_lines(text, node, place) for place in range(count)]
    pieces = [text[start:end] for start, end in spans]
    pieces = [piece if _is_flow(node) or piece.endswith("\n") else piece + "\n" for piece in pieces]
    pieces.insert(to, pieces.pop(index))
    parts, at = [], 0
    for (start, end), piece in zip(spans, pieces, strict=True):
        parts += [text[at:start], piece]
        at = end
    return "".join([*parts, text[at:]])


# Plain data


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(name): _plain(entry) for name, entry in value.items()}
    return tuple(map(_plain, value)) if isinstance(value, (list, tuple)) else value


def _has(data: Any, key: str | int) -> bool:
    return key in data if isinstance(data, dict) else isinstance(data, tuple) and key in range(len(data))


def _at(data: Any, keys: Keys) -> Any:
    for key in keys:
        data = data[key]
    return data


def _nested(keys: Keys, value: Any) -> Any:
    for key in reversed(keys):
        value = {str(key): value}
    return value


def _with(data: Any, keys: Keys, value: Any) -> Any:
    if not keys:
        return value
    key, *rest = keys
    if isinstance(data, tuple):
        return tuple(_with(entry, tuple(rest), value) if place == key else entry for place, entry in enumerate(data))
    data = data if isinstance(data, dict) else {}
    return data | {str(key): _with(data.get(str(key)), tuple(rest), value)}


def _without(data: Any, keys: Keys) -> Any:
    around = _at(data, keys[:-1])
    if isinstance(around, dict):
        left: Any = {name: entry for name, entry in around.items() if name != keys[-1]}
    else:
        left = tuple(entry for place, entry in enumerate(around) if place != keys[-1])
    return _with(data, keys[:-1], left)


def _checked(text: str, keys: Keys, wanted: Any) -> str:
    """Return the text if it has the intended value and no other change."""
    found = parse(text, "task").data
    if json.dumps(found, sort_keys=True) != json.dumps(wanted, sort_keys=True):
        what = "the change would also change other parts of the file"
        raise InputError(what, where=dotted(keys), instead="edit the text, because an alias has one value everywhere")
    return text
