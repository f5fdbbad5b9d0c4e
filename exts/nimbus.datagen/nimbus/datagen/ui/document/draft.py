"""Draft of a task file: its text, undo history, problems, and saving without losing work."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from nimbus.datagen.errors import Diagnostic, InputError
from nimbus.datagen.files import yaml_edit
from nimbus.datagen.files.bounded import read_bytes
from nimbus.datagen.files.own_files import check_own
from nimbus.datagen.files.scene_files import is_path, scene_file
from nimbus.datagen.files.strict_yaml import Document, Keys, parse
from nimbus.datagen.tasks.task import BaseTask, Task, manipulation_of, parse_any_task
from nimbus.datagen.tasks.task_file import expand_cameras
from nimbus.datagen.ui.document.allowed_folders import AllowedFolders
from nimbus.datagen.ui.document.declarations import RangeField, named_cameras, written_out
from nimbus.datagen.ui.document.safe_file import alone_in, decoded, digest, read_content, replace_content
from nimbus.datagen.ui.document.task_template import with_template

_MOST_STEPS_BACK = 500
_BOM = "\ufeff"


class TaskDraft:
    """Task file opened for editing.

    A task that comes with Nimbus is never changed: when it is opened by name, it is saved as a new file in ``folder``.
    That folder may come from another user: a file of the name there is another task, and no link there is followed. A
    missing or empty file starts with a minimal task.

    Args:
        name_or_path: A task's name, or the path of its file.
        folder: Destination of tasks that were opened by name.
        allowed: Folders in which files may be opened and saved; all by default.

    Raises:
        InputError: There is no such task, or its file cannot be read, is not YAML, is outside the allowed folders, or
            is a link that the user has not named.
    """

    def __init__(self, name_or_path: str, *, folder: Path = Path(), allowed: AllowedFolders | None = None) -> None:
        own, self._allowed = is_path(name_or_path), allowed
        self._name = "" if own else name_or_path
        self.path = Path(name_or_path) if own else folder / scene_file("tasks", name_or_path, kind="task").name
        """File that the draft is saved to."""
        self.check_place()
        source, content = _opened(name_or_path)
        self._saved, self._digest = decoded(content or b"", source), digest(content if own else None)
        self._text = with_template(self._saved)
        self._document = parse(self._text.lstrip(_BOM), str(source))
        self._back: list[str] = []
        self._forth: list[str] = []
        self._typed: Keys | None = None
        self.joins_typing = False
        """True to undo consecutive changes of one field together, for a host that reports each keystroke."""
        self._observers: list[Callable[[], None]] = []

    def check_place(self) -> None:
        """Check that the file may be read and written.

        Raises:
            InputError: It is not a task file, is outside the allowed folders, or is a link that the user has not named.
        """
        if self.path.suffix not in (".yaml", ".yml"):
            raise InputError("not the name of a task file", where=str(self.path), instead="end it with .yaml")
        if self._name and self.path.is_symlink():
            what = f"this is a link, and the task '{self._name}', opened by its name, would be saved through it"
            raise InputError(what, where=str(self.path), instead="remove the link, or open your file by its path")
        if self._allowed is not None:
            self._allowed.check(self.path)

    def _read_disk(self) -> bytes | None:
        """Return the bytes of the file; None for a missing one.

        Raises:
            InputError: It may not be read, or cannot be.
        """
        self.check_place()  # checked at each access, because a file or a folder may have become a link
        return read_content(self.path)

    # Content

    @property
    def name(self) -> str:
        """Name of the task."""
        return self.path.stem

    @property
    def text(self) -> str:
        """Text to be saved."""
        return self._text

    @property
    def document(self) -> Document:
        """Parsed text, or the last text that could be parsed."""
        return self._document

    @property
    def data(self) -> Any:
        """Plain data of the text: mappings and tuples."""
        return self._document.data

    @property
    def is_changed(self) -> bool:
        """True if there are unsaved changes."""
        return self._text != self._saved

    @property
    def can_undo(self) -> bool:
        """True if a change can be undone."""
        return bool(self._back)

    @property
    def can_redo(self) -> bool:
        """True if a change can be redone."""
        return bool(self._forth)

    def value(self, *keys: str | int) -> Any:
        """Return the value at a location; None without one."""
        data = self.data
        for key in keys:
            if isinstance(data, dict):
                data = data.get(key)
            else:
                data = data[key] if isinstance(data, tuple) and isinstance(key, int) and key < len(data) else None
        return data

    def observe(self, changed: Callable[[], None]) -> None:
        """Call a function after every change."""
        self._observers.append(changed)

    # Editing

    def set(self, keys: Keys, value: Any, *, typing: bool = False) -> None:
        """Change or add a value.

        Args:
            keys: Location of the value.
            value: Plain data.
            typing: True for a change during typing; the changes of one field during typing are undone together.

        Raises:
            InputError: Changing this value would change another one.
        """
        self._take(yaml_edit.set_value(self._text, keys, value), typed=keys if typing else None)

    def set_range(self, field: RangeField, low: float, high: float) -> None:
        """Change a randomizer's range while it is typed; a preset is expanded first.

        Args:
            field: The range.
            low: One bound, in the field's unit; may be the larger one.
            high: The other bound.
        """
        low, high = sorted((float(low), float(high)))
        if isinstance(self.value("randomize"), str):
            whole: Any = {"randomize": written_out(self.data)}
            self.set(("randomize",), _changed(whole, field.keys, field.written(low, high))["randomize"])
        else:
            self.set(field.keys, field.written(low, high), typing=True)

    def place_camera(self, name: str, position: Sequence[float], wxyz: Sequence[float]) -> None:
        """Move a camera: its pose in the frame of its mount [m]; presets are expanded first."""
        names = named_cameras(self.data)
        kept = {key: value for key, value in expand_cameras(names)[name].items() if key not in ("look_at", "up")}
        pose = {"position": _rounded(position), "wxyz": _rounded(wxyz)}
        self.set(("cameras",), names | {name: kept | pose})

    def remove(self, keys: Keys) -> None:
        """Remove an entry."""
        self._take(yaml_edit.remove_value(self._text, keys))

    def insert(self, keys: Keys, index: int, value: Any) -> None:
        """Add an entry to a list, before the one at ``index``."""
        self._take(yaml_edit.insert_entry(self._text, keys, index, value))

    def move(self, keys: Keys, index: int, to: int) -> None:
        """Move an entry within its list."""
        if 0 <= to < len(self.value(*keys) or ()) and to != index:
            self._take(yaml_edit.move_entry(self._text, keys, index, to))

    def set_text(self, text: str) -> None:
        """Replace the whole text, as from a text editor.

        Raises:
            InputError: The text is not YAML; the draft is not changed.
        """
        self._take(text)

    def undo(self) -> None:
        """Undo one change."""
        self._typed = None
        if self._back:
            self._forth.append(self._text)
            self._show(self._back.pop())

    def redo(self) -> None:
        """Redo a change that :meth:`undo` has undone."""
        if self._forth:
            self._back.append(self._text)
            self._show(self._forth.pop())

    def _take(self, text: str, *, typed: Keys | None = None) -> None:
        if text == self._text:
            return
        parse(text.lstrip(_BOM), str(self.path))
        if typed is None or typed != self._typed or not self._back:
            self._back = [*self._back, self._text][-_MOST_STEPS_BACK:]
        self._typed = typed
        self._forth.clear()
        self._show(text)

    def _show(self, text: str) -> None:
        self._text = text
        self._document = parse(text.lstrip(_BOM), str(self.path))
        for observer in list(self._observers):
            observer()

    # Checking

    def task(self) -> Task:
        """Parse the current text.

        Raises:
            InputError: The text has an error; the first one is reported.
        """
        return manipulation_of(self.any_task())

    def any_task(self) -> BaseTask:
        """Parse the current text as a task of either kind.

        Raises:
            InputError: The text has an error; the first one is reported.
        """
        task = parse_any_task(self._text.lstrip(_BOM), name=self.name, folder=self.path.parent)
        return replace(task, is_own=True)

    def problems(self) -> list[Diagnostic]:
        """Return the problems that can be found without robot, scene and libraries."""
        try:
            self.any_task()
        except InputError as error:
            return [error.diagnostic]
        return []

    # Saving

    @property
    def is_changed_on_disk(self) -> bool:
        """True if the file was changed by another program since it was opened or saved, or cannot be read any more."""
        try:
            return digest(self._read_disk()) != self._digest
        except (InputError, OSError):
            return True  # reading and saving report the reason

    @property
    def is_stored(self) -> bool:
        """True if the file on the disk is the one that was opened or saved, and there are no unsaved changes."""
        return bool(self._digest) and not self.is_changed and not self.is_changed_on_disk

    @property
    def is_other_file(self) -> bool:
        """True if the task was opened by name, and its file is another one, which was there before."""
        return bool(self._name) and not self._digest and self.is_changed_on_disk

    @property
    def source(self) -> str:
        """Word that opens the task again: its file, or its name until it is saved."""
        return str(self.path) if self._digest or not self._name else self._name

    @property
    def word(self) -> str:
        """Task in a command line: its file, or its name if there is no file, or only one that differs from the task."""
        if not self._digest or self.is_changed_on_disk:
            return self.name
        return str(self.path.relative_to(Path.cwd()) if self.path.is_relative_to(Path.cwd()) else self.path)

    def check_disk(self) -> None:
        """Refuse a file that differs from the one that was opened or saved.

        Raises:
            InputError: It was changed by another program, or was there before the task was opened by name.
        """
        if self.is_other_file:
            raise self._other_file()
        if self.is_changed_on_disk:
            what = "has changed on disk since it was opened"
            instead = "reload it (undo restores your version), save as another file, or overwrite it"
            raise InputError(what, where=str(self.path), instead=instead)

    def _other_file(self) -> InputError:
        what = f"not the file of the task '{self._name}', which was opened by its name"
        instead = "press Open to open the file instead, if it is yours, save as another file, or overwrite it"
        return InputError(what, where=str(self.path), instead=instead)

    def save(self, *, over_others: bool = False) -> None:
        """Write the file atomically.

        Args:
            over_others: Overwrite changes by other programs.

        Raises:
            InputError: The file was changed by another program, or cannot be written; the draft is not changed.
        """
        self.check_place()
        content = self._text.encode()
        try:
            with alone_in(self.path.parent):
                if not over_others:
                    self.check_disk()
                replace_content(self.path, content)
        except OSError as error:
            instead = "the draft is not lost: save it as another file"
            raise InputError(f"cannot be saved: {error.strerror}", where=str(self.path), instead=instead) from None
        self._saved, self._digest = self._text, digest(content)
        for observer in list(self._observers):
            observer()

    def save_as(self, path: Path) -> None:
        """Save as another file, and continue editing that one.

        Raises:
            InputError: The file exists, also as a link, or cannot be written.
        """
        before = self.path, self._digest, self._name
        self.path, self._digest, self._name = path, digest(None), ""
        try:
            self.check_place()
            check_own(path)
            if path.exists():
                instead = "write another path, or open this file"
                raise InputError("this file exists, and nothing was saved", where=str(path), instead=instead)
            self.save()
        except InputError:
            self.path, self._digest, self._name = before
            raise

    def reload(self) -> None:
        """Load the file from disk; :meth:`undo` restores the previous text.

        Raises:
            InputError: The file no longer exists, is not YAML, or is another one than that which was opened.
        """
        content = self._read_disk()
        if content is None:
            raise InputError("no such file", where=str(self.path), instead="save the draft to restore it")
        if self._name and not self._digest:
            raise self._other_file()
        text = decoded(content, self.path)
        self._take(text)
        self._saved, self._digest = text, digest(content)


def _opened(name_or_path: str) -> tuple[Path, bytes | None]:
    """Return the file of a task with its bytes; None for a new file."""
    path = Path(name_or_path)
    if not is_path(name_or_path) or path.exists():
        source = scene_file("tasks", name_or_path, kind="task")
        return source, read_bytes(source)
    if not path.absolute().parent.is_dir():
        raise InputError("there is no such folder", where=str(path.parent), instead="make it, or choose another")
    return path, None


def _changed(data: Any, keys: Keys, value: Any) -> Any:
    """Return a copy of plain data with another value at a location."""
    if not keys:
        return value
    return {**data, keys[0]: _changed(data[keys[0]], keys[1:], value)}


def _rounded(values: Sequence[float]) -> list[float]:
    return [round(float(value), 4) + 0.0 for value in values]
