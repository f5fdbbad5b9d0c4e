"""Named settings that a task file can use instead of its own: cameras, and how much varies."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from pydantic_core import PydanticCustomError

from nimbus.datagen.errors import suggest
from nimbus.datagen.files.scene_files import scene_folder
from nimbus.datagen.files.strict_yaml import read


@lru_cache
def presets(room: str) -> dict[str, Any]:
    """What ``scenes/<room>.yaml`` names, as plain data."""
    return read(scene_folder("tasks").parent / f"{room}.yaml").data


def expand_cameras(value: Any) -> Any:
    """Cameras by name: ``front+wrist``, ``[front, wrist]`` or ``{mine: front}`` become their settings."""
    if isinstance(value, str):
        value = _named(value)
    if isinstance(value, tuple):
        value = {name: name for name in value}
    if not isinstance(value, dict):
        return value
    return {name: _preset("cameras", entry) if isinstance(entry, str) else entry for name, entry in value.items()}


def _named(names: str) -> tuple[str, ...]:
    found = tuple(part.strip() for part in names.split("+"))
    if "" in found and names.strip():
        context = {"names": names, "instead": f"write {'+'.join(filter(None, found)) or 'front+wrist'}"}
        raise PydanticCustomError("preset", "a name is missing beside a + in '{names}'", context)
    return found


def expand_randomization(value: Any) -> Any:
    """How much varies, by name: ``medium`` becomes the settings of each randomizer."""
    if isinstance(value, str):
        return _preset("randomizations", value)
    names = ", ".join(presets("randomizations"))
    if not isinstance(value, dict):
        context = {"instead": f"write a name ({names}), or settings by randomizer, such as {{mass: {{}}}}"}
        raise PydanticCustomError("preset", "neither a name nor a mapping (key: value)", context)
    if "preset" in value:
        context = {"instead": f"write a name alone ({names}), or every randomizer with its settings"}
        raise PydanticCustomError("preset", "a preset cannot be mixed with settings of one's own", context)
    return value


def _preset(room: str, name: Any) -> Any:
    known = presets(room)
    if name not in known:
        what = room.removesuffix("s")
        context = {"what": f"unknown {what} '{name}'", "instead": suggest(str(name), known)}
        raise PydanticCustomError("preset", "{what}", context)
    return known[name]
