"""Form sections of a task, built from the file and the declarations of skills and randomizers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.scene_files import scene_names
from nimbus.datagen.files.strict_yaml import Keys
from nimbus.datagen.ui.document import fields
from nimbus.datagen.ui.document.declarations import RangeField, addable, named_cameras, range_fields, written_out
from nimbus.datagen.ui.document.draft import TaskDraft
from nimbus.datagen.ui.document.fields import as_text, entries, free_name, named
from nimbus.datagen.ui.form import Control, FormSection, button

_NEW_ENTRIES = {
    "regions": ("region", "add a region", fields.add_region),
    "objects": ("things", "add objects", fields.add_objects),
    "cameras": ("camera", "add a camera", fields.add_camera),
}
"""Suggested name, text of the button and action, by key of the task file."""


class TaskSections:
    """Builder of the sections of all fields except the lists of steps and conditions."""

    def __init__(self) -> None:
        self._new_names: dict[str, str] = {}
        """Names typed for new entries, by key of the task file."""

    def build(self, draft: TaskDraft) -> list[FormSection]:
        """Build the sections of the current text."""
        return [
            FormSection(title="Robot and scene", controls=_scene_controls(draft)),
            FormSection(title="Regions", controls=(*_region_controls(draft), *self._adder(draft, "regions"))),
            FormSection(title="Objects", controls=(*_object_controls(draft), *self._adder(draft, "objects"))),
            FormSection(title="Randomization", controls=_randomization_controls(draft)),
            FormSection(title="Cameras", controls=(*_camera_controls(draft), *self._adder(draft, "cameras"))),
            FormSection(title="Language", controls=_language_controls(draft)),
            FormSection(title="File", controls=file_controls(draft)),
        ]

    def _adder(self, draft: TaskDraft, key: str) -> tuple[Control, Control]:
        """Make a field for a name, and a button that adds an entry with that name."""
        stem, label, add = _NEW_ENTRIES[key]
        taken = named_cameras(draft.data) if key == "cameras" else named(draft, key)
        name = self._new_names.get(key, free_name(stem, taken))

        def add_entry() -> None:
            if not name.strip():
                raise InputError(f"a {stem} without a name", instead="type one")
            if name.strip() in taken:
                raise InputError(f"'{name.strip()}' already exists", instead="type another name")
            self._new_names.pop(key, None)
            add(draft, name.strip())

        def take(typed: Any) -> None:
            self._new_names[key] = str(typed)

        field = Control(id=f"new {stem}", kind="text", label=f"new {stem}", value=name, hint="Its name", act=take)
        return field, button(label, label, add_entry)


def text_of(draft: TaskDraft, keys: Keys, *, label: str, hint: str) -> Control:
    """Make the text field of an entry; an empty text removes the entry."""
    return Control(
        id=".".join(map(str, keys)),
        kind="text",
        label=label,
        value=as_text(draft.value(*keys)),
        hint=hint,
        act=lambda typed: fields.put(draft, keys, str(typed)),
    )


def choice_of(draft: TaskDraft, keys: Keys, options: Sequence[str], *, label: str) -> Control:
    """Make the choice of an entry's value; the current value is always an option."""
    value = as_text(draft.value(*keys))
    return Control(
        id=".".join(map(str, keys)),
        kind="choice",
        label=label,
        value=value,
        options=tuple(dict.fromkeys([value, *options])),
        act=lambda chosen: draft.set(keys, str(chosen)) if chosen else None,
    )


def _texts_of(draft: TaskDraft, at: Keys, hints: Sequence[tuple[str, str]]) -> list[Control]:
    """Make the text fields of a region, a group of objects or a camera."""
    return [text_of(draft, (*at, key), label=f"{at[-1]} {key}", hint=hint) for key, hint in hints]


def _remover(draft: TaskDraft, at: Keys) -> Control:
    return button(f"remove {'.'.join(map(str, at))}", f"remove {at[-1]}", partial(draft.remove, at))


def _scene_controls(draft: TaskDraft) -> tuple[Control, ...]:
    return (
        choice_of(draft, ("robot",), scene_names("robots"), label="robot"),
        choice_of(draft, ("scene",), scene_names("stages", suffix=".usda"), label="scene"),
        text_of(draft, ("rate",), label="rate", hint=fields.RATE_HINT),
    )


def _region_controls(draft: TaskDraft) -> list[Control]:
    controls: list[Control] = []
    for name in entries(draft, "regions"):
        at = "regions", name
        controls += [*_texts_of(draft, at, fields.REGION_FIELDS), _remover(draft, at)]
    return controls


def _object_controls(draft: TaskDraft) -> list[Control]:
    controls: list[Control] = []
    for name in entries(draft, "objects"):
        at = "objects", name
        controls += [
            choice_of(draft, (*at, "library"), scene_names("objects"), label=f"{name} library"),
            choice_of(draft, (*at, "region"), fields.places(draft, name), label=f"{name} region"),
            *_texts_of(draft, at, fields.OBJECT_FIELDS),
            _remover(draft, at),
        ]
    return controls


def _camera_controls(draft: TaskDraft) -> list[Control]:
    controls = [text_of(draft, ("cameras",), label="cameras", hint=fields.cameras_hint())]
    for name in entries(draft, "cameras"):
        at = "cameras", name
        controls += _texts_of(draft, at, fields.CAMERA_FIELDS)
        if len(named(draft, "cameras")) > 1:
            controls.append(_remover(draft, at))
    return controls


def _randomization_controls(draft: TaskDraft) -> tuple[Control, ...]:
    preset = Control(
        id="randomize",
        kind="choice",
        label="how much",
        value=fields.randomization(draft),
        options=tuple(fields.randomizations()),
        act=partial(fields.choose_randomization, draft),
    )
    return (
        preset,
        *(_range_of(draft, one) for one in range_fields(draft.data)),
        _pick_kind("vary also", list(addable(draft.data)), partial(fields.add_randomizer, draft)),
        _pick_kind("no longer", sorted(written_out(draft.data)), partial(fields.remove_randomizer, draft)),
    )


def _range_of(draft: TaskDraft, one: RangeField) -> Control:
    def take(value: Any) -> None:
        low, high = value if one.is_pair else (value, value)
        draft.set_range(one, low, high)

    return Control(
        id=f"randomize.{one.name}",
        kind="range" if one.is_pair else "number",
        label=one.label,
        value=[one.low, one.high] if one.is_pair else one.high,
        limits=one.limits,
        hint="Smallest and largest" if one.is_pair else "",
        act=take,
    )


def _pick_kind(name: str, kinds: Sequence[str], act: Callable[[str], None]) -> Control:
    """Make the choice that adds or removes one kind of randomization."""

    def take(kind: Any) -> None:
        if kind in kinds:
            act(kind)

    return Control(id=name, kind="choice", label=name, value="", options=("", *kinds), act=take)


def _language_controls(draft: TaskDraft) -> tuple[Control, ...]:
    return (
        Control(
            id="instructions",
            kind="lines",
            label="instructions",
            value=fields.wordings(draft),
            hint=fields.WORDINGS_HINT,
            act=partial(fields.take_wordings, draft),
        ),
    )


def file_controls(draft: TaskDraft) -> tuple[Control, ...]:
    """Make the controls of the file's text."""
    return (
        Control(
            id="text",
            kind="lines",
            label="text",
            value=draft.text,
            hint="The task file itself.",
            confirm="take this text",
            act=partial(fields.take_text, draft),
        ),
    )
