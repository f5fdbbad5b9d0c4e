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
    ("on", "Surface of the scene that it lies on."),
    ("center", "x, y of the middle [m]; or move it in the scene."),
    ("size", "Extent along x and y [m]."),
)
"""Fields of each region, with hints."""
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
"""Fields of each group of objects, apart from its library and start."""
CAMERA_FIELDS = (
    ("mount", "Link of the robot that it is fixed to; empty: the world."),
    ("position", "x, y, z [m], in the frame of the mount; or move it in the scene."),
    ("look_at", "Point that it looks at [m]."),
    ("up", "Direction that is up in the picture, beside a point to look at: [0, 0, 1]."),
    ("wxyz", "Its turn, in place of a point to look at."),
    ("vertical_fov", "Field of view: 45 deg."),
    ("size", "Width and height [px]."),
    ("modalities", "Stored of each step: [rgb, depth]; empty: all."),
    ("antialiasing", "Samples of color along each side of a pixel, 1 to 4: 2 smooths edges; empty: 1."),
    ("tone", "Curve from light to colors: plain or filmic; empty: plain."),
)
"""Fields of each camera with its own settings."""
RATE_HINT = "Recorded steps per second; empty: 15."
WORDINGS_HINT = "One in a line; {items} names objects."
OWN_RANGES = "own ranges"
"""Option beside the presets of randomization."""


def cameras_hint() -> str:
    """Return the hint of the field of all cameras."""
    return f"Presets joined by +, of {', '.join(presets('cameras'))}; or cameras by name."


def as_text(value: Any) -> str:
    """Return a value as typed into a field."""
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
    """Return the names of entries with fields; cameras given by a preset's name have none."""
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
    """Add a camera that looks at the table from the side; presets get names of their own."""
    pose = {"position": [1.0, 0.6, 0.7], "look_at": [0.45, 0.0, 0.05], "vertical_fov": "45 deg"}
    draft.set(("cameras",), {**named_cameras(draft.data), name: pose})


# Randomization


def randomization(draft: TaskDraft) -> str:
    """Return the preset named in the file, or :data:`OWN_RANGES`."""
    said = draft.value("randomize")
    return said if isinstance(said, str) else OWN_RANGES


def randomizations() -> list[str]:
    """Return the alternatives."""
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
