"""Writing of values in the style of task files: short, in one line, and in quotes only where YAML requires them."""

from __future__ import annotations

import json
from typing import Any

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.strict_yaml import parse


def write_flow(value: Any) -> str:
    """Return a value in one line: ``{on: table, size: [0.4, 0.5]}``."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_text(str(name))}: {write_flow(entry)}" for name, entry in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(write_flow(entry) for entry in value) + "]"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return _text(value) if isinstance(value, str) else repr(value)


def write_block(mapping: dict[str, Any], indent: str) -> str:
    """Return a mapping with one line per entry, after its key."""
    lines = (f"{indent}{_text(str(name))}: {write_flow(entry)}" for name, entry in mapping.items())
    return "\n" + "\n".join(lines)


def _text(text: str) -> str:
    """Return a text without quotes if it reads back unchanged in any context; otherwise in quotes."""
    try:
        plain = parse(f"[{text}]\n", "text").data == (text,) and parse(f"{{{text}: 0}}\n", "text").data == {text: 0}
    except InputError:
        plain = False
    return text if plain else json.dumps(text, ensure_ascii=False)
