"""Fields of a task file: names, hints, parsing of typed values, and creation of entries."""

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
    ("on", "Surface of the scene that the region lies on."),
    ("center", "x, y of the center [m]; or drag the region in the scene."),
    ("size", "Extent along x and y [m]."),
)
"""Fields of each region, with hints."""
OBJECT_FIELDS = (
    ("count", "Number of objects, or a range [low, high]."),
    ("kinds", "Kinds to draw from: all, or a list."),
    ("yaw", "Heading: any, or a range such as [-30 deg, 30 deg]."),
    ("lying", "Fraction of objects that start lying down: 33 %."),
    ("scale", "Factor on the size: [90 %, 110 %]."),
    ("classes", "Other names for classes of the library: {fruit: organic, any: residual}."),
    ("distinct", "true if no kind may occur twice in an episode; else false."),
    ("anchored", "true if objects are fixed in place, else false; empty: as in the library."),
    ("joints", "Start positions of moving parts, as fractions of their range: {door: [0 %, 30 %]}."),
)
"""Fields of each group of objects, apart from its library and start."""
CAMERA_FIELDS = (
    ("mount", "Link of the robot that carries the camera; empty: the world."),
    ("position", "x, y, z [m], in the frame of the mount; or drag the camera in the scene."),
    ("look_at", "Point that the camera looks at [m]."),
    ("up", "Direction that is up in the image, used with look_at: [0, 0, 1]."),
    ("wxyz", "Orientation quaternion, instead of look_at."),
    ("vertical_fov", "Field of view: 45 deg."),
    ("size", "Width and height [px]."),
    ("modalities", "Images and labels to store: [rgb, depth]; empty: all."),
    ("antialiasing", "Number of color samples along each side of a pixel, 1 to 4: 2 smooths edges; empty: 1."),
    ("tone", "Curve from light to colors: plain or filmic; empty: plain."),
)
"""Fields of each camera with its own settings."""
RATE_HINT = "Recorded steps per second; empty: 15."
WORDINGS_HINT = "One instruction per line; {items} stands for the objects of a group."
OWN_RANGES = "own ranges"
"""Option of the choice of randomization in addition to the presets."""


def cameras_hint() -> str:
    """Return the hint of the field of all cameras."""
    return f"One or more presets, joined by +: {', '.join(presets('cameras'))}; or cameras by name."


def as_text(value: Any) -> str:
    """Return the text of a value in a field."""
    return "" if value is None else value if isinstance(value, str) else write_flow(value)


def put(draft: TaskDraft, keys: Keys, typed: str) -> None:
    """Set a field from typed text; empty text removes the entry.

    Args:
        draft: The task.
        keys: Location of the field.
        typed: Typed text.

    Raises:
        InputError: The text is not YAML, or the value cannot be changed without changing another one.
    """
    if typed.strip():
        draft.set(keys, read_value(typed), typing=draft.joins_typing)
    elif draft.value(*keys) is not None:
        draft.remove(keys)


# Entries with names


def named(draft: TaskDraft, key: str) -> dict[str, Any]:
    """Return regions, groups of objects or cameras by name; empty if the file gives no names."""
    said = draft.value(key)
    return said if isinstance(said, dict) else {}


def entries(draft: TaskDraft, key: str) -> list[str]:
    """Return the names of the entries that have fields; cameras given by the name of a preset have none."""
    return [name for name, entry in named(draft, key).items() if isinstance(entry, dict | None)]


def places(draft: TaskDraft, group: str) -> list[str]:
    """Return the possible starts of a group's objects: regions and other groups."""
    return [*named(draft, "regions"), *(name for name in entries(draft, "objects") if name != group)]


def free_name(stem: str, taken: Container[str]) -> str:
    """Return an unused name."""
    names = (stem, *(f"{stem}_{number}" for number in range(2, 1000)))
    return next(name for name in names if name not in taken)


def add_region(draft: TaskDraft, name: str) -> None:
    """Add a region in the middle of the table."""
    draft.set(("regions", name), {"on": "table", "center": [0.5, 0.0], "size": [0.15, 0.15]})


def add_objects(draft: TaskDraft, name: str) -> None:
    """Add a group of objects that start in the first region."""
    draft.set(("objects", name), {"library": "blocks", "region": next(iter(named(draft, "regions")), "start")})


def add_camera(draft: TaskDraft, name: str) -> None:
    """Add a camera that looks at the table from the side; presets are first expanded to cameras by name."""
    pose = {"position": [1.0, 0.6, 0.7], "look_at": [0.45, 0.0, 0.05], "vertical_fov": "45 deg"}
    draft.set(("cameras",), {**named_cameras(draft.data), name: pose})


# Randomization


def randomization(draft: TaskDraft) -> str:
    """Return the preset named in the file, or :data:`OWN_RANGES`."""
    said = draft.value("randomize")
    return said if isinstance(said, str) else OWN_RANGES


def randomizations() -> list[str]:
    """Return the options of the choice of randomization."""
    return [*sorted(presets("randomizations")), OWN_RANGES]


def choose_randomization(draft: TaskDraft, chosen: str) -> None:
    """Use a preset by its name, or expand the current one."""
    draft.set(("randomize",), chosen if chosen != OWN_RANGES else written_out(draft.data))


def add_randomizer(draft: TaskDraft, kind: str) -> None:
    """Add a randomizer; a preset is expanded first."""
    draft.set(("randomize",), {**written_out(draft.data), kind: addable(draft.data)[kind]})


def remove_randomizer(draft: TaskDraft, kind: str) -> None:
    """Remove one randomizer; a preset is expanded first."""
    draft.set(("randomize",), {name: said for name, said in written_out(draft.data).items() if name != kind})


# Instructions and text


def wordings(draft: TaskDraft) -> str:
    """Return the instructions, one per line."""
    said = draft.value("instructions")
    return "\n".join(map(as_text, said if isinstance(said, tuple) else (said,)))


def take_wordings(draft: TaskDraft, typed: str) -> None:
    """Set the instructions, one per line.

    Args:
        draft: The task.
        typed: The lines; empty ones are ignored.

    Raises:
        InputError: There is no instruction.
    """
    lines = [line.strip() for line in typed.splitlines() if line.strip()]
    if not lines:
        raise InputError("a task needs at least one instruction", instead="type one instruction per line")
    draft.set(("instructions",), lines, typing=draft.joins_typing)


def take_text(draft: TaskDraft, typed: str) -> None:
    """Replace the text of the whole file.

    Raises:
        InputError: The text is empty, or not YAML; the task stays as it was.
    """
    if not typed.strip():
        raise InputError("an empty text is not a task", instead="undo, or type one")
    draft.set_text(typed if typed.endswith("\n") else typed + "\n")
