"""Edits of the list of steps or conditions: order, loops and new entries."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.strict_yaml import Keys
from nimbus.datagen.ui.document.declarations import read_value, step_entry
from nimbus.datagen.ui.document.draft import TaskDraft

ADD_HINT = "Adds a new entry after the selected one."
CHANGE_HINT = "Replaces the selected entry by the values of the fields."
LOOP_HINT = "Runs the selected entry for every object of a group in turn."


def reorder(draft: TaskDraft, keys: Keys, how: str) -> Keys | None:
    """Move an entry within its list, or remove it.

    Args:
        draft: The task.
        keys: Location of the entry, such as ``("steps", 0)``.
        how: ``up``, ``down`` or ``remove``; ``up`` does nothing for the first entry, ``down`` for the last one.

    Returns:
        New location; None for a removed entry.

    Raises:
        InputError: The entry is the only one of its list.
    """
    around, index = keys[:-1], int(keys[-1])
    count = len(draft.value(*around))
    if how == "remove":
        if count == 1:
            raise InputError("the only entry cannot be removed", instead="change it, or add another one first")
        draft.remove(keys)
        return None
    to = min(max(index + (1 if how == "down" else -1), 0), count - 1)
    draft.move(around, index, to)
    return *around, to


def wrap(draft: TaskDraft, keys: Keys, group: str) -> None:
    """Put an entry into a loop over a group; in the entry, the loop's variable replaces the group.

    Args:
        draft: The task.
        keys: Location of the entry, which becomes that of the loop.
        group: Group of objects, such as ``items``; the loop's variable is ``item``.
    """
    one = group[:-1] if group.endswith("s") and len(group) > 2 else "one"
    draft.set(keys, {f"for {one} in {group}": [_renamed(draft.value(*keys), group, one)]})


def add_after(draft: TaskDraft, keys: Keys, entry: Any) -> Keys:
    """Add an entry after another one; return its location.

    Args:
        draft: The task.
        keys: Location of the other one; ``("steps", -1)`` for the start of the list.
        entry: Entry, as :func:`typed_entry` returns it.
    """
    around, index = keys[:-1], int(keys[-1]) + 1
    if isinstance(draft.value(*around), tuple):
        draft.insert(around, index, entry)
    else:
        draft.set(around, [entry])
    return *around, index


def typed_entry(name: str, typed: Mapping[str, str], *, kind: str = "skill") -> Any:
    """Return a step as written in a file, from the typed values of its parameters.

    Args:
        name: Name of the skill or the condition.
        typed: Texts by parameter; empty ones are omitted.
        kind: ``skill`` or ``predicate``.

    Raises:
        InputError: A text is not YAML.
    """
    given = {parameter: read_value(text) for parameter, text in typed.items() if text.strip()}
    return step_entry(name, given, kind=kind)


def _renamed(entry: Any, old: str, new: str) -> Any:
    """Return an entry with a group's name replaced by the loop's variable."""
    if isinstance(entry, dict):
        return {name: _renamed(value, old, new) for name, value in entry.items()}
    if isinstance(entry, list | tuple):
        return [_renamed(value, old, new) for value in entry]
    # This renames ``items`` and ``items.class``; ``items[0]`` still refers to the same object.
    return re.sub(rf"(?<![\w.]){re.escape(old)}(?![\w\[])", new, entry) if isinstance(entry, str) else entry
