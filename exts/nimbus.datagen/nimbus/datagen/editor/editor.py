"""A task that is edited: its controls, what touching one of them does, and long work beside."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from nimbus.datagen.editor.screen import Control, Section
from nimbus.datagen.editor.sketch import SAMPLE_COUNT, Sketch
from nimbus.datagen.editor.step_list import StepList
from nimbus.datagen.editor.task_sections import button, task_sections
from nimbus.datagen.errors import InputError
from nimbus.datagen.panel.draft import Problem, TaskDraft
from nimbus.datagen.tasks.task import Task, task_names

_MOST = 10_000_000


class Errands(Protocol):
    """Where long work is done; ``studio.errands.Errands`` is one."""

    def send(self, what: str, work: Callable[[], object]) -> None:
        """Do it when its turn comes."""
        ...


class Editor:
    """One task at a time; its methods may be called from several threads.

    Args:
        sketch: Shows what the task looks like.
        folder: Where tasks that were opened by name are saved.
        changed: Called when there is something new to show.
    """

    def __init__(self, sketch: Sketch, *, folder: Path, changed: Callable[[], None]) -> None:
        self._sketch, self._folder, self._changed = sketch, folder, changed
        self._lock = threading.RLock()
        self._draft: TaskDraft | None = None
        self._steps = StepList(kind="skill", key="steps", title="Steps")
        self._conditions = StepList(kind="predicate", key="success", title="Success")
        self._found: Sequence[Problem] = ()
        self._outlined: Any = None
        self._seed = self._index = 0
        self._source = ""
        self._parsed: tuple[tuple[Path, str], Task] | None = None
        self._activity = self._said = ""
        self.errands: Errands | None = None
        """Set before anything is done."""

    # What a host shows

    def screen(self) -> dict[str, Any]:
        """All there is to show, as plain data."""
        with self._lock:
            draft = self._draft
            problems = [*self._problems(draft), *self._found] if draft else []
            return {
                "path": str(draft.path) if draft else "",
                "source": self._source,
                "text": draft.text if draft else "",
                "unsaved": draft.is_changed if draft else False,
                "activity": self._activity,
                "said": self._said,
                "problems": [str(problem) for problem in problems],
                "sections": [section.told() for section in _with_problems(self.sections(), problems)],
                "marks": self._sketch.marks.told(),
                "stage": asdict(self._sketch.shown) if self._sketch.shown else None,
                "pictures": self._sketch.pictures,
            }

    def sections(self) -> list[Section]:
        """The controls there are now."""
        draft = self._draft
        if draft is None:
            return [self._files(None)]
        fields = task_sections(draft)
        steps = [self._steps.section(draft), self._conditions.section(draft)]
        return [self._files(draft), fields[0], fields[1], fields[2], *steps, *fields[3:], self._looks()]

    def act(self, name: str, value: Any = None) -> None:
        """Take what was done to a control.

        Args:
            name: The control's id.
            value: What was typed, chosen or moved; None where a button was pressed.
        """
        with self._lock:
            self._said = ""
            try:
                self._act(name, value)
            except InputError as error:
                self._said = str(error)
        self._outline()
        self._changed()

    def tell(self, activity: str) -> None:
        """What is being done now; empty where nothing is."""
        self._activity = activity
        self._changed()

    def say(self, line: str) -> None:
        """What became of something, in one line."""
        self._said = line
        self._changed()

    # What controls do

    def _act(self, name: str, value: Any) -> None:
        if name == "open":
            self._open(str(value))
            return
        if name.startswith("cameras.") and name.endswith(".pose"):
            self._the_draft().place_camera(name.split(".")[1], value["position"], value["wxyz"])
            return
        known = {control.id: control for section in self.sections() for control in section.controls}
        if name not in known:
            raise InputError(f"'{name}' is gone", instead="look at the task as it is now")
        known[name].act(value)

    def _files(self, draft: TaskDraft | None) -> Section:
        names = ("", *task_names())
        controls = [
            Control(
                id="start from",
                kind="choice",
                label="start from",
                value="",
                options=names,
                hint="a task that comes with Nimbus",
                act=lambda name: self._open(name) if name else None,
            ),
        ]
        if draft is not None:
            hint = "another path, ending with .yaml"
            controls += [
                Control(id="save as", kind="text", label="save as", hint=hint, act=partial(self._save_as, draft)),
                button("save", "Save", draft.save),
                button("reload", "Reload", draft.reload, hint="takes over what is on disk"),
                button("save over", "Save over", partial(draft.save, over_others=True), hint="over what others wrote"),
                button("undo", "Undo", draft.undo),
                button("redo", "Redo", draft.redo),
                button("examine", "Examine", self._examine, hint="asks the doctor"),
            ]
        return Section(title="Task", controls=tuple(controls))

    def _open(self, name: str) -> None:
        draft = self._draft
        if draft is not None and draft.is_changed:
            what, instead = "this task is not saved", "save it, or undo its changes"
            raise InputError(what, where=str(draft.path), instead=instead)
        self._draft, self._source = TaskDraft(name.strip(), folder=self._folder), name.strip()
        self._outlined, self._found = None, ()

    def _save_as(self, draft: TaskDraft, path: str) -> None:
        if path.strip():
            draft.save_as(Path(path.strip()))

    def _looks(self) -> Section:
        sketch = self._sketch

        def number(name: str, value: int, take: Callable[[Any], None]) -> Control:
            return Control(id=name, kind="number", label=name, value=value, limits=(0, _MOST, 1), act=take)

        return Section(
            title="Layouts",
            controls=(
                number("seed", self._seed, lambda value: self._choose(seed=int(value))),
                number("episode", self._index, lambda value: self._choose(index=int(value))),
                button("this one", "This one", self._show),
                button("next", "Next", lambda: (self._choose(index=self._index + 1), self._show())),
                button("sample", f"Sample {SAMPLE_COUNT}", self._later("sampling", sketch.sample, seed=True)),
                button("reach", "Reach", self._later("reach", sketch.reach)),
                button("clear", "Clear", self._later("clearing", sketch.clear)),
                button("plan", "Plan one", self._later("planning", sketch.plan, seed=True, index=True)),
                button("pictures", "Pictures", self._later("pictures", sketch.photograph)),
            ),
        )

    def _choose(self, *, seed: int | None = None, index: int | None = None) -> None:
        self._seed = self._seed if seed is None else min(max(seed, 0), _MOST)
        self._index = self._index if index is None else min(max(index, 0), _MOST)

    def _show(self) -> None:
        self._later("drawing a layout", self._sketch.show_layout, seed=True, index=True)()

    def _examine(self) -> None:
        def work() -> None:
            self._found = self._sketch.examine(self._task())
            self.say("" if self._found else "the doctor finds nothing wrong")

        self._send("examining the task", work)

    def _later(
        self, what: str, work: Callable[..., str], *, seed: bool = False, index: bool = False
    ) -> Callable[[], None]:
        def start() -> None:
            chosen = ({"seed": self._seed} if seed else {}) | ({"index": self._index} if index else {})
            self._send(what, lambda: self.say(work(self._task(), **chosen)))

        return start

    def _outline(self) -> None:
        """Draw regions and cameras anew where they have changed."""
        try:
            task = self._task()
        except InputError:
            return
        seen = (task.scene, task.robot, task.regions, task.cameras)
        if seen != self._outlined:
            self._outlined, self._found = seen, ()
            self._send("drawing regions and cameras", lambda: self._sketch.outline(self._task()))

    def _send(self, what: str, work: Callable[[], object]) -> None:
        assert self.errands is not None
        self.errands.send(what, work)

    def _task(self) -> Task:
        with self._lock:
            draft = self._the_draft()
            if self._parsed is None or self._parsed[0] != (draft.path, draft.text):
                self._parsed = None
                self._parsed = (draft.path, draft.text), draft.task()
            return self._parsed[1]

    def _problems(self, draft: TaskDraft) -> list[Problem]:
        try:
            self._task()
        except InputError:
            return draft.problems()
        return []

    def _the_draft(self) -> TaskDraft:
        if self._draft is None:
            raise InputError("no task is open", instead="open one first")
        return self._draft


def _with_problems(sections: list[Section], problems: Sequence[Problem]) -> list[Section]:
    """The same, each problem at the control of the field it is about."""
    names = [control.id for section in sections for control in section.controls]
    at: dict[str, str] = {}
    for problem in problems:
        field = problem.field.replace("[", ".").replace("]", "").replace("'", "")
        fitting = [name for name in names if name and (field == name or field.startswith(f"{name}."))]
        if fitting:
            at.setdefault(max(fitting, key=len), str(problem))
    return [
        replace(section, controls=tuple(replace(one, problem=at.get(one.id, "")) for one in section.controls))
        for section in sections
    ]
