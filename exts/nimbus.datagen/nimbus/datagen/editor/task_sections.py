"""Controls of a task's fields, from what the file says and what skills and randomizers declare."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from nimbus.datagen.editor.screen import Control, Section
from nimbus.datagen.files.scene_files import scene_names
from nimbus.datagen.files.strict_yaml import Keys
from nimbus.datagen.panel import fields
from nimbus.datagen.panel.draft import TaskDraft
from nimbus.datagen.panel.fields import as_text, entries, free_name, named
from nimbus.datagen.panel.forms import RangeField, addable, named_cameras, range_fields, written_out


def task_sections(draft: TaskDraft) -> list[Section]:
    """All but the steps and conditions, which have a list."""
    return [
        Section(title="Robot and scene", controls=_scene(draft)),
        Section(title="Regions", controls=_regions(draft)),
        Section(title="Objects", controls=_objects(draft)),
        Section(title="Randomization", controls=_ranges(draft)),
        Section(title="Cameras", controls=_cameras(draft)),
        Section(title="Language", controls=_language(draft)),
        Section(title="Text", controls=_text(draft)),
    ]


def text_of(draft: TaskDraft, keys: Keys, *, label: str, hint: str) -> Control:
    """A field of the file; nothing typed takes it out."""
    return Control(
        id=".".join(map(str, keys)),
        kind="text",
        label=label,
        value=as_text(draft.value(*keys)),
        hint=hint,
        act=lambda typed: fields.put(draft, keys, str(typed)),
    )


def choice_of(draft: TaskDraft, keys: Keys, options: list[str], *, label: str, hint: str = "") -> Control:
    """A field of the file that is one of few."""
    value = as_text(draft.value(*keys))
    return Control(
        id=".".join(map(str, keys)),
        kind="choice",
        label=label,
        value=value,
        options=tuple(dict.fromkeys([value, *options] if value else options)),
        hint=hint,
        act=lambda chosen: draft.set(keys, str(chosen)),
    )


def button(name: str, label: str, act: Callable[[], object], *, hint: str = "") -> Control:
    """Something to press."""

    def press(_: Any) -> None:
        act()

    return Control(id=name, kind="button", label=label, hint=hint, act=press)


def _entry(draft: TaskDraft, at: Keys, hints: Sequence[tuple[str, str]]) -> list[Control]:
    """The fields of a region, a group of objects or a camera."""
    return [text_of(draft, (*at, key), label=f"{at[-1]} {key}", hint=hint) for key, hint in hints]


def _remover(draft: TaskDraft, at: Keys) -> Control:
    return button(f"remove {'.'.join(map(str, at))}", f"remove {at[-1]}", partial(draft.remove, at))


def _scene(draft: TaskDraft) -> tuple[Control, ...]:
    return (
        choice_of(draft, ("robot",), scene_names("robots"), label="robot"),
        choice_of(draft, ("scene",), scene_names("stages", suffix=".usda"), label="scene"),
        text_of(draft, ("rate",), label="rate", hint=fields.RATE_HINT),
    )


def _regions(draft: TaskDraft) -> tuple[Control, ...]:
    found: list[Control] = []
    for name in entries(draft, "regions"):
        at = "regions", name
        found += [*_entry(draft, at, fields.REGION_FIELDS), _remover(draft, at)]

    def add() -> None:
        fields.add_region(draft, free_name("region", named(draft, "regions")))

    return (*found, button("add a region", "add a region", add))


def _objects(draft: TaskDraft) -> tuple[Control, ...]:
    found: list[Control] = []
    for name in entries(draft, "objects"):
        at = "objects", name
        found += [
            choice_of(draft, (*at, "library"), scene_names("objects"), label=f"{name} library"),
            choice_of(draft, (*at, "region"), fields.places(draft, name), label=f"{name} region"),
            *_entry(draft, at, fields.OBJECT_FIELDS),
            _remover(draft, at),
        ]

    def add() -> None:
        fields.add_objects(draft, free_name("things", named(draft, "objects")))

    return (*found, button("add objects", "add objects", add))


def _ranges(draft: TaskDraft) -> tuple[Control, ...]:
    how_much = Control(
        id="randomize",
        kind="choice",
        label="how much",
        value=fields.randomization(draft),
        options=tuple(fields.randomizations()),
        act=partial(fields.choose_randomization, draft),
    )
    return (
        how_much,
        *(_range(draft, one) for one in range_fields(draft.data)),
        _kinds("vary also", list(addable(draft.data)), partial(fields.add_randomizer, draft)),
        _kinds("no longer", list(written_out(draft.data)), partial(fields.remove_randomizer, draft)),
    )


def _range(draft: TaskDraft, one: RangeField) -> Control:
    def take(value: Any) -> None:
        low, high = value if one.is_pair else (value, value)
        draft.set_range(one, low, high)

    return Control(
        id=f"randomize.{one.name}",
        kind="range" if one.is_pair else "number",
        label=one.label,
        value=[one.low, one.high] if one.is_pair else one.high,
        limits=one.limits,
        act=take,
    )


def _kinds(name: str, kinds: Sequence[str], act: Callable[[str], None]) -> Control:
    """Adds or takes away one kind of randomization."""

    def choose(kind: str) -> None:
        if kind in kinds:
            act(kind)

    return Control(id=name, kind="choice", label=name, value="", options=("", *kinds), act=choose)


def _cameras(draft: TaskDraft) -> tuple[Control, ...]:
    found = [text_of(draft, ("cameras",), label="cameras", hint=fields.cameras_hint())]
    for name in entries(draft, "cameras"):
        at = "cameras", name
        found += _entry(draft, at, fields.CAMERA_FIELDS)
        if len(named(draft, "cameras")) > 1:
            found.append(_remover(draft, at))

    def add() -> None:
        fields.add_camera(draft, free_name("camera", named_cameras(draft.data)))

    return (*found, button("add a camera", "add a camera", add))


def _language(draft: TaskDraft) -> tuple[Control, ...]:
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


def _text(draft: TaskDraft) -> tuple[Control, ...]:
    take = partial(fields.take_text, draft)
    return (Control(id="text", kind="lines", label="task file", value=draft.text, hint="The file itself.", act=take),)
