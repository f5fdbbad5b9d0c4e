"""Editor of one task, which builds its form, applies the user's actions, and runs long work in the background."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from nimbus.datagen.errors import Diagnostic, InputError, quote_words
from nimbus.datagen.tasks.task import BaseTask, NavigationTask, Task, manipulation_of, task_names
from nimbus.datagen.ui.document.allowed_folders import AllowedFolders
from nimbus.datagen.ui.document.draft import TaskDraft
from nimbus.datagen.ui.form import Control, FormSection, buttons
from nimbus.datagen.ui.layout_section import LayoutSection, TaskScene
from nimbus.datagen.ui.navigation_sections import MapSection, NavigationViews, build_sections, is_navigation
from nimbus.datagen.ui.step_list import StepList
from nimbus.datagen.ui.task_sections import TaskSections

_PATH_HINT = "Path of the file. For another path: Open opens or creates a file, Save as writes this task to it"


class TaskQueue(Protocol):
    """Queue of long work; :class:`~nimbus.datagen.ui.background_tasks.BackgroundTasks` is one."""

    def submit(self, task: str, work: Callable[[], object]) -> None:
        """Queue work; a task of the same name that has not begun is replaced."""
        ...

    def report_to(self, activity: Callable[[str], None], error: Callable[[str], None]) -> None:
        """Set the receivers of the current activity and of errors."""
        ...


class TaskEditor:
    """Editor of one task at a time; its methods may be called from several threads.

    Args:
        scene: Shows the task.
        tasks: Runs long work.
        folder: Destination of tasks that were opened by name.
        joins_typing: True if the host reports each keystroke, so that changes of one field are undone together.
        allowed: Folders in which files may be opened and saved; all by default.
        navigation: Shows navigation tasks; None if the host has no maps.
    """

    def __init__(
        self,
        scene: TaskScene,
        tasks: TaskQueue,
        *,
        folder: Path,
        joins_typing: bool = False,
        allowed: AllowedFolders | None = None,
        navigation: NavigationViews | None = None,
    ) -> None:
        self._navigation, self._maps = navigation, MapSection(navigation, self._start_navigation)
        self._scene, self._tasks, self._folder, self._joins_typing = scene, tasks, folder, joins_typing
        self._allowed = allowed
        self.lock = threading.RLock()
        """Held while the task changes."""
        self.draft: TaskDraft | None = None
        self.activity = self.message = ""
        """Work in progress, and one line about the last action; empty if there is none."""
        self._observers: list[Callable[[], None]] = []
        self._fields, self._layouts = TaskSections(), LayoutSection(scene, self._start)
        self._steps = StepList(kind="skill", key="steps", title="Steps")
        self._conditions = StepList(kind="predicate", key="success", title="Success")
        self._findings: Sequence[Diagnostic] = ()
        self._typed_path: str | None = None
        self._shown = ""
        """Text of the task that the scene was last updated to."""
        self._parsed: tuple[tuple[Path, str], BaseTask] | None = None
        self._is_acting = self._is_changed_on_disk = False
        tasks.report_to(self._set_activity, self.report)

    # State

    @property
    def problems(self) -> list[Diagnostic]:
        """Errors in the text, and findings of the doctor."""
        if self.draft is None:
            return []
        try:
            self.any_task()
        except InputError as error:
            return [error.diagnostic, *self._findings]
        return list(self._findings)

    def task(self) -> Task:
        """Parse the current text as a manipulation task.

        Raises:
            InputError: The task has an error, is a navigation task, or no task is open.
        """
        return manipulation_of(self.any_task())

    def any_task(self) -> BaseTask:
        """Parse the current text as a task of either kind.

        Raises:
            InputError: The task has an error, or no task is open.
        """
        with self.lock:
            draft = self._get_draft()
            key = draft.path, draft.text
            if self._parsed is None or self._parsed[0] != key:
                self._parsed = None
                self._parsed = key, draft.any_task()
            return self._parsed[1]

    def sections(self) -> list[FormSection]:
        """Build the form."""
        with self.lock:
            draft = self.draft
            if draft is None:
                return [FormSection(title="Task", controls=(self._start_from(),))]
            problems = self.problems
            if is_navigation(draft):
                own = FormSection(title="Task", controls=self._task_controls(draft, problems))
                return _with_problems([own, *build_sections(draft), self._maps.build()], problems)
            scene, regions, objects, *rest = self._fields.build(draft)
            sections = [
                *(FormSection(title="Task", controls=self._task_controls(draft, problems)), scene, regions, objects),
                *(self._steps.build(draft), self._conditions.build(draft), *rest, self._layouts.build()),
            ]
            return _with_problems(sections, problems)

    def observe(self, changed: Callable[[], None]) -> None:
        """Call a function after every change."""
        self._observers.append(changed)

    # Changes

    def act(self, name: str, value: Any = None) -> None:
        """Apply a user's action on a control; an error becomes the :attr:`message`.

        Args:
            name: Id of the control, or of a marker that was moved in the scene; ``open`` opens a task.
            value: New value; the chosen option for ``buttons``; None for a button.
        """
        with self.lock:
            self.message, self._is_acting = "", True
            try:
                self._act(name, value)
            except InputError as error:
                self.message = str(error)
            finally:
                self._is_acting = False
        self._follow_draft()

    def open(self, name_or_path: str) -> None:
        """Edit another task.

        Raises:
            InputError: The task does not exist, or the open one has unsaved changes.
        """
        if self.draft is not None and self.draft.is_changed:
            instead = "save it, or undo its changes"
            raise InputError("the open task is not saved", where=str(self.draft.path), instead=instead)
        draft = TaskDraft(name_or_path.strip(), folder=self._folder, allowed=self._allowed)
        draft.joins_typing = self._joins_typing
        draft.observe(self._follow_draft)
        with self.lock:
            self.draft, self._typed_path, self._shown = draft, None, ""
            self._steps.reset()
            self._conditions.reset()
        self._follow_draft()

    def report(self, line: str) -> None:
        """Show one line about an action; an empty text clears it."""
        self.message = line
        self._notify()

    def check_disk(self) -> None:
        """Check if another program has written the file since it was opened or saved."""
        draft = self.draft
        if draft is not None and (now := draft.is_changed_on_disk) != self._is_changed_on_disk:
            self._is_changed_on_disk = now
            self._notify()

    def _act(self, name: str, value: Any) -> None:
        if name == "open":
            self.open(str(value))
        elif name.startswith("cameras.") and name.endswith(".pose"):
            camera = name.removeprefix("cameras.").removesuffix(".pose")
            self._get_draft().place_camera(camera, value["position"], value["wxyz"])
        elif name.startswith("regions.") and isinstance(value, list):
            region, field = name.removeprefix("regions.").rsplit(".", 1)
            self._get_draft().set(("regions", region, field), value)
        else:
            controls = {control.id: control for section in self.sections() for control in section.controls}
            if name not in controls:
                raise InputError(f"'{name}' is no longer in the task", instead="reload the task and try again")
            controls[name].act(value)

    def _follow_draft(self) -> None:
        """Show a changed text in the scene, and notify observers."""
        if self._is_acting:
            return  # observers are notified when the action is complete
        text = self.draft.text if self.draft else ""
        if text != self._shown:
            self._findings = ()
            try:
                self.any_task()
            except InputError:
                pass  # the scene keeps showing the last correct text
            else:
                self._shown = text
                self._tasks.submit("showing the scene", self._outline)
        self._notify()

    def _outline(self) -> None:
        task = self.any_task()
        if not isinstance(task, NavigationTask):
            self._scene.outline(manipulation_of(task))
        elif self._navigation is not None:
            self._navigation.begin(task)

    def _notify(self) -> None:
        for observer in list(self._observers):
            observer()

    def _set_activity(self, activity: str) -> None:
        self.activity = activity
        self._notify()

    def _get_draft(self) -> TaskDraft:
        if self.draft is None:
            raise InputError("no task is open", instead="open one first")
        return self.draft

    # Section of the file

    def _start_from(self) -> Control:
        return Control(
            id="start from",
            kind="choice",
            label="start from",
            value="",
            options=("", *task_names()),
            hint="A task that comes with Nimbus",
            act=lambda name: self.open(name) if name else None,
        )

    def _task_controls(self, draft: TaskDraft, problems: Sequence[Diagnostic]) -> tuple[Control, ...]:
        lines = [] if problems else ["No mistake found."]
        lines.append("There are unsaved changes." if draft.is_changed else "All changes are saved.")
        if draft.is_other_file:
            lines.append("A file of this name exists, and is not shown. Open opens it; Overwrite replaces it.")
        elif draft.is_changed_on_disk and draft.path.exists():
            lines.append("The file was changed on disk. Reload loads that version; Undo then restores yours.")
        path = str(draft.path) if self._typed_path is None else self._typed_path
        disk = {
            "Open": lambda: self._open_file(draft, path.strip()),
            "Save": lambda: self._save(draft, Path(path.strip())),
            "Save as": lambda: self._save_as(draft, Path(path.strip())),
            "Reload": draft.reload,
        }
        changes = {
            "Undo": draft.undo,
            "Redo": draft.redo,
            "Overwrite": partial(draft.save, over_others=True),
            "Examine": self._examine,
        }
        return (
            self._start_from(),
            Control(id="file", kind="text", label="file", value=path, hint=_PATH_HINT, act=self._set_path),
            buttons("disk", "on disk", disk, hint="Reload loads the file from disk"),
            buttons("changes", "changes", changes, hint="Overwrite replaces the file on disk; Examine runs the doctor"),
            Control(
                id="status",
                kind="note",
                label="\n".join(lines),
                problem="\n".join(problem.in_file for problem in problems),
            ),
        )

    def _set_path(self, typed: Any) -> None:
        self._typed_path = str(typed)

    def _open_file(self, draft: TaskDraft, path: str) -> None:
        if path == str(draft.path):
            draft.check_place()  # the user has not named this path if the task was opened by name
        self.open(path)

    def _save(self, draft: TaskDraft, path: Path) -> None:
        if path == draft.path:
            draft.save()
        else:
            draft.save_as(path)
        self._typed_path = None

    def _save_as(self, draft: TaskDraft, path: Path) -> None:
        if path == draft.path and path.exists():
            draft.check_disk()
            raise InputError("this file is open already", where=str(path), instead="write another path above")
        self._save(draft, path)

    # Work in the background

    def _start(self, name: str, work: Callable[[Task], str]) -> None:
        self._tasks.submit(name, lambda: self.report(work(self.task())))

    def _start_navigation(self, name: str, work: Callable[[NavigationTask], str]) -> None:
        def start() -> None:
            if isinstance(task := self.any_task(), NavigationTask):
                self.report(work(task))

        self._tasks.submit(name, start)

    def _examine(self) -> None:
        def examine() -> None:
            task = self.any_task()
            if not isinstance(task, NavigationTask):
                self._findings = self._scene.examine(manipulation_of(task))
            elif self._navigation is not None:
                self._findings = self._navigation.examine(task)
            else:
                raise InputError(
                    "navigation tasks are not examined here",
                    instead=f"type {quote_words('nimbus', 'doctor', task.name)}",
                )
            self.report("" if self._findings else "the doctor finds nothing wrong")

        self._tasks.submit("examining the task", examine)


def _with_problems(sections: list[FormSection], problems: Sequence[Diagnostic]) -> list[FormSection]:
    """Add each problem to the control of its field."""
    names = [control.id for section in sections for control in section.controls]
    texts: dict[str, str] = {}
    for problem in problems:
        field = problem.field.replace("[", ".").replace("]", "").replace("'", "")
        fitting = [name for name in names if field == name or field.startswith(f"{name}.")]
        if fitting:
            texts.setdefault(max(fitting, key=len), problem.in_file)
    return [
        replace(
            section, controls=tuple(replace(one, problem=texts.get(one.id, one.problem)) for one in section.controls)
        )
        for section in sections
    ]
