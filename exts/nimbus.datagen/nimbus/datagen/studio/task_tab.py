"""The first tab: opening, changing, undoing and saving a task."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from nimbus.datagen.errors import InputError
from nimbus.datagen.panel.draft import Problem, TaskDraft
from nimbus.datagen.studio.camera_section import CameraSection
from nimbus.datagen.studio.range_section import RangeSection
from nimbus.datagen.studio.section import Section
from nimbus.datagen.studio.step_section import StepSection, SuccessSection
from nimbus.datagen.studio.task_sections import (
    ObjectSection,
    RegionSection,
    SceneSection,
    TextSection,
    WordingSection,
)
from nimbus.datagen.tasks.task import task_names

_SECTIONS: tuple[type[Section], ...] = (
    *(SceneSection, RegionSection, ObjectSection, StepSection, SuccessSection),
    *(RangeSection, CameraSection, WordingSection, TextSection),
)


class TaskTab:
    """Fields of the task that is open.

    Args:
        server: A ``viser.ViserServer``.
        draft: The task.
        open_task: Opens another one, by name or path.
        examine: Asks the doctor.
        complain: Called with one line when something cannot be done, with "" when it was.
        lock: Held while fields and draft change.
    """

    def __init__(
        self,
        server: Any,
        draft: Callable[[], TaskDraft],
        open_task: Callable[[str], None],
        examine: Callable[[], None],
        complain: Callable[[str], None],
        lock: threading.RLock,
    ) -> None:
        gui = server.gui
        self._draft, self._examine, self._complain, self._lock = draft, examine, complain, lock
        names = ["", *task_names()]
        shipped = gui.add_dropdown("start from", names, initial_value="", hint="A task that comes with Nimbus")
        shipped.on_update(lambda event: event.target.value and self._do(lambda: open_task(event.target.value)))
        hint = "Where it is saved. Another path: Open it (a new one begins with the least that runs), or Save as"
        self._path = gui.add_text("file", str(draft().path), hint=hint)
        self._opened = draft().path
        files = gui.add_button_group("on disk", ("Open", "Save", "Save as", "Reload"))
        files.on_click(lambda event: self._do(lambda: self._file(event.target.value, open_task)))
        steps = gui.add_button_group("changes", ("Undo", "Redo", "Save over", "Examine"))
        steps.on_click(lambda event: self._do(lambda: self._step(event.target.value)))
        self._state = gui.add_markdown("")
        self._sections = [kind(server, draft, complain, lock) for kind in _SECTIONS]

    def section(self, title: str) -> Section:
        """The folder of that title."""
        return next(section for section in self._sections if section.title == title)

    def refresh(self, problems: list[Problem]) -> None:
        """Show what the task says now, and what is wrong with it."""
        draft = self._draft()
        with self._lock:
            lines = [f"**{_escaped(str(problem))}**" for problem in problems] or ["No mistake found."]
            lines.append("Not saved." if draft.is_changed else "Nothing to save.")
            if draft.is_changed_on_disk and draft.path.exists():
                lines.append("The file was written by somebody else: Reload takes it over, Undo brings yours back.")
            self._state.content = "  \n".join(lines)
            if self._opened != draft.path:  # else somebody may be typing another
                self._opened, self._path.value = draft.path, str(draft.path)
            for section in self._sections:
                section.refresh()

    def _file(self, how: str, open_task: Callable[[str], None]) -> None:
        draft, path = self._draft(), Path(self._path.value.strip())
        if how == "Open":
            open_task(self._path.value.strip())
        elif how == "Reload":
            draft.reload()
        elif how == "Save as" and path == draft.path and path.exists():
            raise InputError("this is the file that is open", where=str(path), instead="write another path above")
        elif path != draft.path:
            draft.save_as(path)
        else:
            draft.save()

    def _step(self, how: str) -> None:
        draft = self._draft()
        over = partial(draft.save, over_others=True)
        {"Undo": draft.undo, "Redo": draft.redo, "Save over": over, "Examine": self._examine}[how]()

    def _do(self, act: Callable[[], Any]) -> None:
        with self._lock:
            try:
                act()
            except InputError as error:
                self._complain(str(error))
            else:
                self._complain("")


def _escaped(text: str) -> str:
    """Text that Markdown shows as it is."""
    return "".join(f"\\{letter}" if letter in "\\`*_{}[]<>#|" else letter for letter in text)
