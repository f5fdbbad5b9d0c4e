"""The fields of a task file: their names and hints, what typing into them does, and what is added beside them."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.strict_yaml import Keys
from nimbus.datagen.files.yaml_write import write_flow
from nimbus.datagen.tasks.task_file import presets
from nimbus.datagen.ui.document.declarations import addable, named_cameras, read_value, written_out
from nimbus.datagen.ui.document.draft import TaskDraft

REGION_FIELDS = (
    ("on", "Surface of the scene that it lies on."),
    ("center", "x, y of the middle [m]; or move it in the scene."),
    ("size", "Extent along x and y [m]."),
)
"""Of each region: names, and what to type."""
OBJECT_FIELDS = (
    ("count", "How many: a number, or [low, high]."),
    ("kinds", "Kinds to draw from: all, or a list."),
    ("yaw", "Heading: any, or a range such as [-30 deg, 30 deg]."),
    ("lying", "Share that lie: 33 %."),
    ("scale", "Times their size: [90 %, 110 %]."),
    ("classes", "Other names for classes of the library: {fruit: organic, any: residual}."),
    ("distinct", "No kind twice in one episode: true or false."),
    ("anchored", "Fixed where they stand: true or false; empty: as the library says."),
    ("joints", "Where parts start, as shares of their range: {door: [0 %, 30 %]}."),
)
"""Of each group of objects, beside its library and where it starts."""
CAMERA_FIELDS = (
    ("mount", "Link of the robot that it is fixed to; empty: the world."),
    ("position", "x, y, z [m], in the frame of the mount; or move it in the scene."),
    ("look_at", "Point that it looks at [m]."),
    ("up", "Direction that is up in the picture, beside a point to look at: [0, 0, 1]."),
    ("wxyz", "Its turn, in place of a point to look at."),
    ("vertical_fov", "Field of view: 45 deg."),
    ("size", "Width and height [px]."),
    ("modalities", "Stored of each step: [rgb, depth]; empty: all."),
)
"""Of each camera that is written out."""
RATE_HINT = "Recorded steps per second; empty: 15."
WORDINGS_HINT = "One in a line; {items} names objects."
OWN_RANGES = "own ranges"
"""Offered beside the presets of randomization."""


def cameras_hint() -> str:
    """What to type into the field of all cameras."""
    return f"Presets joined by +, of {', '.join(presets('cameras'))}; or cameras by name."


def as_text(value: Any) -> str:
    """A value as it is typed into a field."""
    return "" if value is None else value if isinstance(value, str) else write_flow(value)


def put(draft: TaskDraft, keys: Keys, typed: str) -> None:
    """Take what was typed into a field; nothing typed takes the entry out.

    Args:
        draft: The task.
        keys: Where the field stands.
        typed: As a person writes it.

    Raises:
        InputError: It is no YAML, or cannot be changed without changing something else.
    """
    if typed.strip():
        draft.set(keys, read_value(typed), typing=draft.joins_typing)
    elif draft.value(*keys) is not None:
        draft.remove(keys)


# Entries with names


def named(draft: TaskDraft, key: str) -> dict[str, Any]:
    """Regions, groups of objects or cameras by name; empty where the file gives no names."""
    said = draft.value(key)
    return said if isinstance(said, dict) else {}


def entries(draft: TaskDraft, key: str) -> list[str]:
    """Names of those that have fields: not of a camera that is the word for a preset."""
    return [name for name, entry in named(draft, key).items() if isinstance(entry, dict | None)]


def places(draft: TaskDraft, group: str) -> list[str]:
    """Where the objects of a group may start: in a region, or in another group."""
    return [*named(draft, "regions"), *(name for name in entries(draft, "objects") if name != group)]


def free_name(stem: str, taken: Container[str]) -> str:
    """A name that is not taken yet."""
    names = (stem, *(f"{stem}_{number}" for number in range(2, 1000)))
    return next(name for name in names if name not in taken)


def add_region(draft: TaskDraft, name: str) -> None:
    """Add a region in the middle of the table."""
    draft.set(("regions", name), {"on": "table", "center": [0.5, 0.0], "size": [0.15, 0.15]})


def add_objects(draft: TaskDraft, name: str) -> None:
    """Add a group of objects that start in the first region."""
    draft.set(("objects", name), {"library": "blocks", "region": next(iter(named(draft, "regions")), "start")})


def add_camera(draft: TaskDraft, name: str) -> None:
    """Add a camera that looks at the table from the side; presets get names of their own then."""
    pose = {"position": [1.0, 0.6, 0.7], "look_at": [0.45, 0.0, 0.05], "vertical_fov": "45 deg"}
    draft.set(("cameras",), {**named_cameras(draft.data), name: pose})


# What is randomized


def randomization(draft: TaskDraft) -> str:
    """The preset that the file names, or :data:`OWN_RANGES`."""
    said = draft.value("randomize")
    return said if isinstance(said, str) else OWN_RANGES


def randomizations() -> list[str]:
    """What can be chosen instead."""
    return [*sorted(presets("randomizations")), OWN_RANGES]


def choose_randomization(draft: TaskDraft, chosen: str) -> None:
    """Take a preset by its name, or write out the one that there is."""
    draft.set(("randomize",), chosen if chosen != OWN_RANGES else written_out(draft.data))


def add_randomizer(draft: TaskDraft, kind: str) -> None:
    """Randomize one more thing; a preset is written out first."""
    draft.set(("randomize",), {**written_out(draft.data), kind: addable(draft.data)[kind]})


def remove_randomizer(draft: TaskDraft, kind: str) -> None:
    """Leave one thing as it is; a preset is written out first."""
    draft.set(("randomize",), {name: said for name, said in written_out(draft.data).items() if name != kind})


# Wording and text


def wordings(draft: TaskDraft) -> str:
    """The instructions, one in a line."""
    said = draft.value("instructions")
    return "\n".join(map(as_text, said if isinstance(said, tuple) else (said,)))


def take_wordings(draft: TaskDraft, typed: str) -> None:
    """Take instructions, one in a line.

    Args:
        draft: The task.
        typed: The lines; empty ones do not count.

    Raises:
        InputError: There is none.
    """
    lines = [line.strip() for line in typed.splitlines() if line.strip()]
    if not lines:
        raise InputError("a task has at least one wording", instead="type one in a line")
    draft.set(("instructions",), lines, typing=draft.joins_typing)


def take_text(draft: TaskDraft, typed: str) -> None:
    """Take the text of the whole file.

    Raises:
        InputError: It is empty, or no YAML; the task stays as it was.
    """
    if not typed.strip():
        raise InputError("an empty text is no task", instead="undo, or type one")
    draft.set_text(typed if typed.endswith("\n") else typed + "\n")
