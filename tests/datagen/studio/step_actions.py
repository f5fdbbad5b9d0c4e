"""What uses the studio's lists of steps and of conditions, and sees what comes of it."""

from __future__ import annotations

from functools import partial
from typing import Any

from controls import Actions, controls, use
from fields import parameter_labels

from nimbus.datagen.panel.forms import skill_forms

ACTIONS = Actions()

LISTS = (("Steps", "steps", "skill", "home"), ("Success", "success", "predicate", "nothing_on_floor"))
"""Folder, key in the file, what one chooses there, and one of it that needs no parameters."""


def select(studio: Any, folder: str) -> None:
    entries = controls(studio)[folder, "select"]
    use(entries, entries.options[-1])


def order(studio: Any, folder: str, key: str) -> None:
    before = studio.draft.value(key)
    select(studio, folder)
    use(controls(studio)[folder, "move"], "up")
    assert studio.draft.value(key) == (*before[:-2], before[-1], before[-2])
    use(controls(studio)[folder, "move"], "down")
    assert studio.draft.value(key) == before
    use(controls(studio)[folder, "move"], "remove")
    assert studio.draft.value(key) == before[:-1]


def for_each(studio: Any, folder: str, key: str) -> None:
    before = studio.draft.value(key)
    select(studio, folder)
    use(controls(studio)[folder, "for each of"], "items")
    assert studio.draft.value(key)[-1] == {"for item in items": (before[-1],)}


def add_entry(studio: Any, folder: str, key: str, kind: str, name: str) -> None:
    select(studio, folder)
    use(controls(studio)[folder, kind], name)
    use(controls(studio)[folder, "add after"])
    assert studio.draft.value(key)[-1] == name
    assert studio.draft.problems() == []
    studio.draft.remove((key,))
    use(controls(studio)[folder, kind], name)
    use(controls(studio)[folder, "add after"])
    assert studio.draft.value(key) == (name,)


def change_entry(studio: Any, folder: str, key: str, kind: str) -> None:
    select(studio, folder)
    name = {"skill": "pick", "predicate": "at_rest"}[kind]
    use(controls(studio)[folder, kind], name)
    (form,) = (form for form in skill_forms(kind=kind) if form.name == name)
    (label,) = (label for label in parameter_labels(form) if label.startswith(form.main))
    use(controls(studio)[folder, label], "items")
    use(controls(studio)[folder, "change this one"])
    assert studio.draft.value(key)[-1] in ({"pick": "items"}, {"at_rest": "items"})


for folder, key, kind, name in LISTS:
    ACTIONS.at(folder, "select", "move")(partial(order, folder=folder, key=key))
    ACTIONS.at(folder, "for each of")(partial(for_each, folder=folder, key=key))
    ACTIONS.at(folder, kind, "add after")(partial(add_entry, folder=folder, key=key, kind=kind, name=name))
    ACTIONS.at(folder, "change this one")(partial(change_entry, folder=folder, key=key, kind=kind))
