"""An editor in this process, with sketches that are only noted, and processes that end when a test says so."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from nimbus.datagen.editor.editor import Editor
from nimbus.datagen.editor.screen import Marks
from nimbus.datagen.editor.sketch import Sketch
from nimbus.datagen.errors import InputError


class Job:
    """A process that ends when the test says so."""

    def __init__(self, words: Sequence[str]) -> None:
        self.words, self.code, self.text, self.cancelled = list(words), None, "", 0

    def poll(self) -> int | None:
        return self.code

    def output(self) -> str:
        return self.text

    def cancel(self) -> None:
        self.cancelled += 1

    def end(self, code: int, text: str = "") -> None:
        self.code, self.text = code, text


class Jobs(list[Job]):
    """Remembers what was started."""

    def start(self, words: Sequence[str]) -> Job:
        self.append(Job(words))
        return self[-1]


class AtOnce:
    """Errands that are done when they are sent."""

    def __init__(self, editor: Editor) -> None:
        self._editor = editor

    def send(self, what: str, work: Callable[[], object]) -> None:
        try:
            work()
        except InputError as error:
            self._editor.say(str(error))


class Noted(Sketch):
    """Sketches nothing, and remembers what was asked for."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, int]]] = []
        self.shown, self.marks, self.pictures = None, Marks(), {}
        self.findings: list[Any] = []

    def _note(self, name: str) -> Callable[..., str]:
        def note(task: Any, **chosen: int) -> str:
            self.asked.append((name, chosen))
            return f"{name} done"

        return note

    def __getattribute__(self, name: str) -> Any:
        if name in ("show_layout", "plan", "sample", "reach", "clear", "photograph", "outline"):
            return self._note(name)
        return super().__getattribute__(name)

    def examine(self, task: Any) -> list[Any]:
        self.asked.append(("examine", {}))
        return self.findings


def make_editor(folder: Path, *, changed: Callable[[], None] = lambda: None) -> tuple[Editor, Noted]:
    sketch = Noted()
    editor = Editor(sketch, folder=folder, changed=changed)
    editor.errands = AtOnce(editor)
    return editor, sketch


class LocalChannel:
    """Speaks with an editor in this process, in the same lines as with one in another."""

    def __init__(self, folder: Path) -> None:
        self._changed = False
        self.editor, self.sketch = make_editor(folder, changed=self._note)
        self.closed = 0
        self.dead = ""

    def _note(self) -> None:
        self._changed = True

    def send(self, line: str) -> None:
        request = json.loads(line)
        self.editor.act(request["id"], request["value"])

    def receive(self) -> list[str]:
        if self.dead:
            raise InputError(self.dead)
        changed, self._changed = self._changed, False
        return [json.dumps(self.editor.screen())] if changed else []

    def close(self) -> None:
        self.closed += 1
