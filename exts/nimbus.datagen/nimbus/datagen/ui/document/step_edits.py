"""Changes to the list of steps, or of conditions: their order, loops around them, new ones."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.strict_yaml import Keys
from nimbus.datagen.ui.document.declarations import read_value, step_entry
from nimbus.datagen.ui.document.draft import TaskDraft

ADD_HINT = "A new entry behind the one that is selected."
CHANGE_HINT = "The selected entry becomes what the fields say."
LOOP_HINT = "Does the selected one for every object of a group, one after the other."


def reorder(draft: TaskDraft, keys: Keys, how: str) -> Keys | None:
    """Move an entry within its list, or take it out.

    Args:
        draft: The task.
        keys: Where the entry stands, such as ``("steps", 0)``.
        how: ``up``, ``down`` or ``remove``; the first one goes no further up, the last one no further down.

    Returns:
        Where it stands then; None where it was taken out.

    Raises:
        InputError: The entry is the only one of its list.
    """
    around, index = keys[:-1], int(keys[-1])
    count = len(draft.value(*around))
    if how == "remove":
        if count == 1:
            raise InputError("the last one cannot be removed", instead="change it, or add another first")
        draft.remove(keys)
        return None
    to = min(max(index + (1 if how == "down" else -1), 0), count - 1)
    draft.move(around, index, to)
    return *around, to


def wrap(draft: TaskDraft, keys: Keys, group: str) -> None:
    """Put an entry into a loop over a group, in which each object has a name of its own.

    Args:
        draft: The task.
        keys: Where the entry stands; the loop stands there then.
        group: Group of objects: ``items``, each of which the loop calls ``item``.
    """
    one = group[:-1] if group.endswith("s") and len(group) > 2 else "one"
    draft.set(keys, {f"for {one} in {group}": [_renamed(draft.value(*keys), group, one)]})


def add_after(draft: TaskDraft, keys: Keys, entry: Any) -> Keys:
    """Add an entry behind another one; where it stands then.

    Args:
        draft: The task.
        keys: Where the other one stands; ``("steps", -1)`` for the first of a list.
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
        typed: Texts by parameter; empty ones are left out.
        kind: ``skill`` or ``predicate``.

    Raises:
        InputError: Something that was typed is no YAML.
    """
    given = {parameter: read_value(text) for parameter, text in typed.items() if text.strip()}
    return step_entry(name, given, kind=kind)


def _renamed(entry: Any, old: str, new: str) -> Any:
    """Return an entry with a group's name replaced by the loop's variable."""
    if isinstance(entry, dict):
        return {name: _renamed(value, old, new) for name, value in entry.items()}
    if isinstance(entry, list | tuple):
        return [_renamed(value, old, new) for value in entry]
    # ``items`` and ``items.class``; ``items[0]`` goes on being that one.
    return re.sub(rf"(?<![\w.]){re.escape(old)}(?![\w\[])", new, entry) if isinstance(entry, str) else entry
