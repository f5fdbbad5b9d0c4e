"""Form sections of a navigation task: scenes, body, goals, cameras on the body, and maps of its scenes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from nimbus.datagen import registry
from nimbus.datagen.errors import Diagnostic
from nimbus.datagen.tasks.task import NavigationTask
from nimbus.datagen.ui.document import fields
from nimbus.datagen.ui.document.draft import TaskDraft
from nimbus.datagen.ui.form import Control, FormSection, buttons
from nimbus.datagen.ui.task_sections import choice_of, file_controls, text_of

_BODY = (
    ("radius", "Radius: 25 cm."),
    ("height", "Height: 1.4 m."),
    ("step", "Height of the highest step that the body can climb: 3 cm."),
    ("speed", "Largest speed: 60 cm/s."),
    ("turn", "Largest turn rate: 70 deg/s."),
)
_GOALS = (
    ("kinds", "Classes of things, or kinds of rooms: all, or a list."),
    ("length", "Range of the shortest path: [2 m, 25 m]."),
    ("detour", "Smallest ratio of shortest path to straight distance: 1.05."),
    ("per_scene", "Number of episodes of each scene: 150."),
)
_KEEP = (
    ("clearance", "Smallest distance from the body's axis to any triangle; empty: the body's radius."),
    ("duplicates", "Smallest distance between two paths to one target: 50 cm."),
    ("landmarks", "Smallest number of things that an instruction names."),
)
_CAMERA = (
    ("position", "x forward, y left, z up on the body [m]: [0.1, 0, 1.2]."),
    ("tilt", "Downward: 10 deg."),
    ("pan", "To the left: 0 deg."),
    ("hfov", "Horizontal field of view: 79 deg."),
    ("size", "Width and height [px]: [320, 240]."),
    ("modalities", "Images and labels to store: [rgb, depth]; empty: all but flow."),
)
_PATHS = 20
"""Initial number of goals on a map."""
_MOST_PATHS, _MAX_SEED, _MAX_NUMBER = 150, 2**31 - 1, 10_000_000


class NavigationViews(Protocol):
    """Interface to a host's views of a navigation task; a returned text is one line about the result."""

    def begin(self, task: NavigationTask) -> None:
        """Update the view after a change of the task."""
        ...

    def draw_map(self, task: NavigationTask, *, seed: int, number: int, count: int) -> str:
        """Show the map of a scene with the first paths of a run."""
        ...

    def plan(self, task: NavigationTask, *, seed: int, index: int) -> str:
        """Plan the path of an episode, and show its motion."""
        ...

    def examine(self, task: NavigationTask) -> list[Diagnostic]:
        """Return the doctor's findings."""
        ...


def is_navigation(draft: TaskDraft) -> bool:
    """Test if the open file is a navigation task."""
    return draft.value("navigate") is not None


def build_sections(draft: TaskDraft) -> list[FormSection]:
    """Build the sections of a navigation task, without the maps."""
    goals = choice_of(draft, ("navigate", "to"), registry.names("goal"), label="to")
    scene = text_of(draft, ("scene",), label="scene", hint="{homes: 40, rooms: [4, 9]}, or meshes: or splats:")
    pipeline = text_of(draft, ("pipeline",), label="pipeline", hint="nav_mesh, nav_splat or nav_mesh_blender")
    cameras = [
        text_of(draft, ("cameras", name, key), label=f"{name} {key}", hint=hint)
        for name in fields.entries(draft, "cameras")
        for key, hint in _CAMERA
    ]
    randomize = text_of(draft, ("randomize",), label="randomize", hint="{rig: {height: [0.6, 1.4]}, lamps: {}}")
    rate = text_of(draft, ("rate",), label="rate", hint="Recorded steps per second; empty: 10.")
    return [
        FormSection(title="Scenes", controls=(scene, pipeline, rate)),
        FormSection(title="Body", controls=_group(draft, "body", _BODY)),
        FormSection(title="Goals", controls=(goals, *_group(draft, "navigate", _GOALS))),
        FormSection(title="Filters", controls=_group(draft, "keep", _KEEP)),
        FormSection(title="Cameras", controls=tuple(cameras)),
        FormSection(title="Randomization", controls=(randomize,)),
        FormSection(title="File", controls=file_controls(draft)),
    ]


def _group(draft: TaskDraft, key: str, hints: tuple[tuple[str, str], ...]) -> tuple[Control, ...]:
    return tuple(text_of(draft, (key, name), label=name, hint=hint) for name, hint in hints)


class MapSection:
    """Seed, scene and episode, and buttons that start work of the views.

    Args:
        views: Views that do the work; None if the host has none.
        start: Called with the name of the work and a function of the task that returns one line.
    """

    def __init__(
        self, views: NavigationViews | None, start: Callable[[str, Callable[[NavigationTask], str]], None]
    ) -> None:
        self._views, self._start = views, start
        self._seed = self._scene = self._index = 0
        self._count = _PATHS

    def build(self) -> FormSection:
        """Build the section."""
        if self._views is None:
            note = Control(id="no maps", kind="note", label="Maps of scenes: nimbus studio TASK")
            return FormSection(title="Layouts", controls=(note,))
        return FormSection(
            title="Layouts",
            controls=(
                self._number("seed", "_seed", _MAX_SEED),
                self._number("map of scene", "_scene", _MAX_NUMBER),
                self._number("paths", "_count", _MOST_PATHS),
                buttons("map", "map", {"Draw": self._draw, "Next scene": self._draw_next}),
                self._number("episode", "_index", _MAX_NUMBER),
                buttons("path", "path", {"Plan one": self._plan}),
            ),
        )

    def _number(self, name: str, field: str, largest: int) -> Control:
        def take(value: Any) -> None:
            setattr(self, field, min(max(int(value), 0), largest))

        return Control(id=name, kind="number", label=name, value=getattr(self, field), limits=(0, largest, 1), act=take)

    def _draw(self) -> None:
        views, seed, number, count = self._views, self._seed, self._scene, self._count
        assert views is not None
        self._start("drawing a map", lambda task: views.draw_map(task, seed=seed, number=number, count=count))

    def _draw_next(self) -> None:
        self._scene += 1
        self._draw()

    def _plan(self) -> None:
        views, seed, index = self._views, self._seed, self._index
        assert views is not None
        self._start("planning", lambda task: views.plan(task, seed=seed, index=index))
