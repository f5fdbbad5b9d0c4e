"""A folder of fields that shows a part of the task and is built anew when somebody else has changed it."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Sequence
from typing import Any

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.strict_yaml import Keys
from nimbus.datagen.panel.draft import TaskDraft
from nimbus.datagen.panel.fields import as_text, free_name, put

_NOTHING = object()


class Section(ABC):
    """Base of the folders of the task tab.

    Args:
        server: A ``viser.ViserServer``.
        draft: The task; a function, because another one may be opened.
        complain: Called with one line when a change cannot be made, with "" when one was.
        lock: Held while fields and draft change.
        is_open: Whether the folder shows its fields at first.
    """

    title = ""

    def __init__(
        self,
        server: Any,
        draft: Callable[[], TaskDraft],
        complain: Callable[[str], None],
        lock: threading.RLock,
        *,
        is_open: bool = False,
    ) -> None:
        self.gui, self._draft, self._complain, self._lock = server.gui, draft, complain, lock
        self._folder = self.gui.add_folder(self.title, expand_by_default=is_open)
        self._handles: list[Any] = []
        self._shown: Any = _NOTHING
        self._typing = False

    @property
    def draft(self) -> TaskDraft:
        """The task that is edited."""
        return self._draft()

    @abstractmethod
    def data(self) -> Any:
        """What the fields show; they are built anew when it changes."""

    @abstractmethod
    def build(self) -> None:
        """Make the fields, through :meth:`keep`."""

    def refresh(self) -> None:
        """Show what the task says now, unless it was said in these fields."""
        data = self.data()
        if data == self._shown:
            return
        self._shown = data
        if not self._typing:
            self.rebuild()

    def rebuild(self) -> None:
        """Make the fields anew."""
        for handle in self._handles:
            handle.remove()
        self._handles.clear()
        with self._folder:
            self.build()

    def keep(self, handle: Any) -> Any:
        """Let a field go when the fields are built anew."""
        self._handles.append(handle)
        return handle

    def button(self, text: str, act: Callable[[], None], *, hint: str = "") -> Any:
        """A button; what it does is undone as one."""
        button = self.keep(self.gui.add_button(text, hint=hint or None, color="gray"))
        button.on_click(lambda _: self.change(act))
        return button

    def adder(self, stem: str, text: str, taken: Container[str], add: Callable[[str], None]) -> None:
        """A name to type and a button that adds something of that name.

        Args:
            stem: The name that is offered, with a number where it is taken.
            text: On the button.
            taken: Names that there are.
            add: Called with the name.
        """
        field = self.keep(self.gui.add_text(f"new {stem}", free_name(stem, taken), hint="Its name"))

        def act() -> None:
            if not (name := field.value.strip()):
                raise InputError(f"a {stem} without a name", instead="type one")
            if name in taken:
                raise InputError(f"there is a '{name}' already", instead="type another name")
            add(name)

        self.button(text, act)

    def field(self, handle: Any, take: Callable[[Any], None]) -> Any:
        """A field whose value goes into the task as it changes."""
        self.keep(handle)
        handle.on_update(lambda event: self._typed(handle, lambda: take(event.target.value)))
        return handle

    def entry(self, keys: Keys, label: str, hint: str) -> Any:
        """A field of the file as text; nothing typed takes it out."""
        text = self.gui.add_text(label, as_text(self.draft.value(*keys)), hint=hint)
        return self.field(text, lambda typed: put(self.draft, keys, typed, typing=True))

    def choice(
        self, label: str, value: str, options: Sequence[str], take: Callable[[str], None], hint: str = ""
    ) -> Any:
        """A field that offers what there is; what the file says is among it, whatever it is."""
        known = list(dict.fromkeys([value, *options]))
        return self.field(self.gui.add_dropdown(label, known, initial_value=value, hint=hint or None), take)

    def change(self, act: Callable[[], None]) -> None:
        """Change the task; what keeps that from happening is said in one line."""
        with self._lock:
            try:
                act()
            except InputError as error:
                self._complain(str(error))
            else:
                self._complain("")

    def _typed(self, handle: Any, act: Callable[[], None]) -> None:
        with self._lock:
            self._typing = handle in self._handles  # else the fields were made anew meanwhile, and must show this too
            try:
                self.change(act)
            finally:
                self._typing = False
