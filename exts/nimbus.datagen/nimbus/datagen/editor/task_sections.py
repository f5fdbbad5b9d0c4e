"""Controls of a task's fields, from what the file says and what skills and randomizers declare."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from nimbus.datagen.editor.screen import Control, Section
from nimbus.datagen.errors import InputError
from nimbus.datagen.panel.draft import TaskDraft
from nimbus.datagen.panel.forms import RangeField, addable, range_fields, read_value, written_out
from nimbus.datagen.panel.yaml_write import write_flow
from nimbus.datagen.presets import expand_cameras, presets
from nimbus.datagen.scene_files import scene_names
from nimbus.datagen.strict_yaml import Keys

_OWN = "own ranges"
_REGION_FIELDS = (
    ("on", "surface of the scene that it lies on"),
    ("center", "x, y of the middle [m]; or move it in the viewport"),
    ("size", "extent along x and y [m]"),
)
_OBJECT_FIELDS = (
    ("count", "how many: a number, or [low, high]"),
    ("kinds", "kinds to draw from: all, or a list"),
    ("yaw", "heading: any, or a range such as [-30 deg, 30 deg]"),
    ("lying", "share that lie: 33 %"),
    ("scale", "times their size: [90 %, 110 %]"),
)
_CAMERA_FIELDS = (
    ("mount", "link of the robot that it is fixed to; empty: the world"),
    ("position", "x, y, z [m], in the frame of the mount; or move it in the viewport"),
    ("look_at", "point that it looks at [m]"),
    ("wxyz", "its turn, in place of a point to look at"),
    ("vertical_fov", "field of view: 45 deg"),
    ("size", "width and height [px]"),
)


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


def as_text(value: Any) -> str:
    """A value as it is typed into a field."""
    return "" if value is None else value if isinstance(value, str) else write_flow(value)


def text_of(draft: TaskDraft, keys: Keys, *, label: str, hint: str) -> Control:
    """A field of the file; nothing typed takes it out."""

    def take(typed: str) -> None:
        if str(typed).strip():
            draft.set(keys, read_value(str(typed)))
        elif draft.value(*keys) is not None:
            draft.remove(keys)

    name = ".".join(map(str, keys))
    return Control(id=name, kind="text", label=label, value=as_text(draft.value(*keys)), hint=hint, act=take)


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


def _free_name(stem: str, taken: Any) -> str:
    names = (stem, *(f"{stem}_{number}" for number in range(2, 1000)))
    return next(name for name in names if name not in (taken or {}))


def _scene(draft: TaskDraft) -> tuple[Control, ...]:
    return (
        choice_of(draft, ("robot",), scene_names("robots"), label="robot"),
        choice_of(draft, ("scene",), scene_names("stages", suffix=".usda"), label="scene"),
        text_of(draft, ("rate",), label="rate", hint="recorded steps per second; empty: 15"),
    )


def _regions(draft: TaskDraft) -> tuple[Control, ...]:
    found: list[Control] = []
    for name in _entries(draft, "regions"):
        at = "regions", name
        found += [text_of(draft, (*at, key), label=f"{name} {key}", hint=hint) for key, hint in _REGION_FIELDS]
        found.append(button(f"remove {'.'.join(at)}", f"remove {name}", partial(draft.remove, at)))

    def add() -> None:
        name = _free_name("region", draft.value("regions"))
        draft.set(("regions", name), {"on": "table", "center": [0.5, 0.0], "size": [0.15, 0.15]})

    return (*found, button("add a region", "add a region", add))


def _objects(draft: TaskDraft) -> tuple[Control, ...]:
    found: list[Control] = []
    groups = _entries(draft, "objects")
    for name in groups:
        at = "objects", name
        places = [*_entries(draft, "regions"), *(other for other in groups if other != name)]
        found += [
            choice_of(draft, (*at, "library"), scene_names("objects"), label=f"{name} library"),
            choice_of(draft, (*at, "region"), places, label=f"{name} region"),
        ]
        found += [text_of(draft, (*at, key), label=f"{name} {key}", hint=hint) for key, hint in _OBJECT_FIELDS]
        found.append(button(f"remove {'.'.join(at)}", f"remove {name}", partial(draft.remove, at)))

    def add() -> None:
        places = _entries(draft, "regions") or ["start"]
        name = _free_name("things", draft.value("objects"))
        draft.set(("objects", name), {"library": "blocks", "region": places[0]})

    return (*found, button("add objects", "add objects", add))


def _ranges(draft: TaskDraft) -> tuple[Control, ...]:
    said = draft.value("randomize")
    preset = said if isinstance(said, str) else _OWN

    def choose(chosen: str) -> None:
        draft.set(("randomize",), chosen if chosen != _OWN else written_out(draft.data))

    options = (*sorted(presets("randomizations")), _OWN)
    found = [Control(id="randomize", kind="choice", label="how much", value=preset, options=options, act=choose)]
    for one in range_fields(draft.data):
        name = ".".join(map(str, one.keys[1:]))
        found.append(
            Control(
                id=f"randomize.{name}",
                kind="range" if one.is_pair else "number",
                label=name + (f" [{one.unit}]" if one.unit else ""),
                value=[one.low, one.high] if one.is_pair else one.high,
                limits=_limits(one),
                act=partial(_set_range, draft, one),
            )
        )
    used, more = written_out(draft.data), addable(draft.data)
    kept = {name: {other: used[other] for other in used if other != name} for name in used}
    added = {name: {**used, name: more[name]} for name in more}
    return (*found, _kinds(draft, "vary also", added), _kinds(draft, "no longer", kept))


def _kinds(draft: TaskDraft, name: str, settings: dict[str, Any]) -> Control:
    """Adds or takes away one kind of randomization; all the settings are then as chosen."""

    def choose(kind: str) -> None:
        if kind in settings:
            draft.set(("randomize",), settings[kind])

    return Control(id=name, kind="choice", label=name, value="", options=("", *settings), act=choose)


def _set_range(draft: TaskDraft, one: RangeField, value: Any) -> None:
    low, high = value if one.is_pair else (value, value)
    draft.set_range(one, min(float(low), float(high)), max(float(low), float(high)))


def _limits(one: RangeField) -> tuple[float, float, float]:
    """Round figures around what is written."""
    reach = max(abs(one.low), abs(one.high), 1e-6)
    unit = 10.0 ** len(str(int(reach))) / 10.0 if reach >= 1 else 0.1
    while unit > reach:
        unit /= 10.0
    most = unit * (2 * int(reach / unit) + 2)
    return (-most if one.low < 0 else 0.0), most, unit / 100.0


def _cameras(draft: TaskDraft) -> tuple[Control, ...]:
    said = draft.value("cameras")
    found = [text_of(draft, ("cameras",), label="cameras", hint="presets, as front+wrist, or cameras by name")]
    for name, camera in (said if isinstance(said, dict) else {}).items():
        if not isinstance(camera, dict):
            continue
        at = "cameras", name
        found += [text_of(draft, (*at, key), label=f"{name} {key}", hint=hint) for key, hint in _CAMERA_FIELDS]
        if len(said) > 1:
            found.append(button(f"remove {'.'.join(at)}", f"remove {name}", partial(draft.remove, at)))

    def add() -> None:
        cameras = draft.value("cameras")
        if not isinstance(cameras, dict):
            cameras = {name: name for name in expand_cameras(cameras or "front+wrist")}
        pose = {"position": [1.0, 0.6, 0.7], "look_at": [0.45, 0.0, 0.05], "vertical_fov": "45 deg"}
        draft.set(("cameras",), {**cameras, _free_name("camera", cameras): pose})

    return (*found, button("add a camera", "add a camera", add))


def _language(draft: TaskDraft) -> tuple[Control, ...]:
    def take(typed: str) -> None:
        lines = [line.strip() for line in typed.splitlines() if line.strip()]
        if not lines:
            raise InputError("a task has at least one wording", instead="type one in a line")
        draft.set(("instructions",), lines)

    wordings = "\n".join(map(str, draft.value("instructions") or ()))
    hint = "one in a line; {items} names objects"
    return (Control(id="instructions", kind="lines", label="instructions", value=wordings, hint=hint, act=take),)


def _text(draft: TaskDraft) -> tuple[Control, ...]:
    def take(typed: str) -> None:
        if not typed.strip():
            raise InputError("an empty text is no task", instead="undo, or type one")
        draft.set_text(typed if typed.endswith("\n") else typed + "\n")

    return (Control(id="text", kind="lines", label="task file", value=draft.text, hint="the file itself", act=take),)


def _entries(draft: TaskDraft, key: str) -> list[str]:
    """Names of the entries that are written out."""
    said = draft.value(key)
    return [name for name, entry in said.items() if isinstance(entry, dict)] if isinstance(said, dict) else []
