"""An editor in this process, with a scene that only records its calls, and processes that a test ends."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from nimbus.datagen.errors import InputError
from nimbus.datagen.ui.remote.editor_server import RemoteEditor
from nimbus.datagen.ui.remote.messages import ViewportMarkers, parse_request
from nimbus.datagen.ui.remote.scene_preview import ScenePreview

TASK = """\
# A task with one of everything.
robot: panda
scene: tabletop
regions:
  start: {on: table, center: [0.5, 0.0], size: [0.3, 0.4]}
  other: {on: table, center: [0.4, 0.3], size: [0.1, 0.1]}
objects:
  items: {library: trash, region: start}
steps:
  - for item in items:
      - pick: item
      - place: {object: item, into: "bins[item.class]"}
  - home
success:
  - for item in items:
      - inside: {object: item, container: "bins[item.class]"}
  - gripper_clear
cameras:
  front: {position: [1.5, 0.0, 0.9], look_at: [0.45, 0.0, 0.05], vertical_fov: 42 deg, size: [320, 240]}
  side: {position: [0.4, 1.2, 0.9], look_at: [0.45, 0.0, 0.05], vertical_fov: 42 deg, size: [320, 240]}
randomize: {light: {intensity: [60 %, 120 %]}, materials: {tint: 25 %}}
instructions: ["Sort the trash."]
"""
"""A task with one of everything."""


class StubProcess:
    """A process that the test ends."""

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


class StubLauncher(list[StubProcess]):
    """Records started processes."""

    def start(self, words: Sequence[str]) -> StubProcess:
        self.append(StubProcess(words))
        return self[-1]


class ImmediateTasks:
    """Runs tasks immediately."""

    def __init__(self) -> None:
        self._report: Callable[[str], None] = lambda _: None

    def report_to(self, activity: Callable[[str], None], error: Callable[[str], None]) -> None:
        self._report = error

    def submit(self, task: str, work: Callable[[], object]) -> None:
        try:
            work()
        except InputError as error:
            self._report(str(error))


NOTED = {"show_layout", "plan", "sample", "reach", "clear", "photograph", "outline"}
NOTED |= {"plan_live", "vary", "restore", "stack"}
"""Calls that a :class:`NotedScene` records."""


class NotedScene(ScenePreview):
    """Scene that computes nothing and records its calls."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, int]]] = []
        self.stage, self.markers, self.pictures, self.variation = None, ViewportMarkers(), {}, ""
        self.findings: list[Any] = []

    def _note(self, name: str) -> Callable[..., str]:
        def note(task: Any, **chosen: int) -> str:
            if name != "outline":
                self.asked.append((name, chosen))
            return f"{name} done"

        return note

    def stop(self) -> None:
        self.asked.append(("stop", {}))

    @property
    def stop_count(self) -> int:
        return self.asked.count(("stop", {}))

    def __getattribute__(self, name: str) -> Any:
        if name in NOTED:
            return self._note(name)
        return super().__getattribute__(name)

    def examine(self, task: Any) -> list[Any]:
        self.asked.append(("examine", {}))
        return self.findings


class LocalChannel:
    """Channel that passes the lines of an editor in this process."""

    def __init__(self, folder: Path, *, preview: ScenePreview | None = None) -> None:
        self._changed = False
        self.scene = NotedScene()
        self.editor = RemoteEditor(preview or self.scene, ImmediateTasks(), folder=folder)
        self.editor.observe(self._note)
        self.closed = 0
        self.dead = ""

    def _note(self) -> None:
        self._changed = True

    def send(self, line: str) -> None:
        request = parse_request(line)
        assert request is not None
        self.editor.act(request["id"], request["value"])

    def receive(self) -> list[str]:
        if self.dead:
            raise InputError(self.dead)
        changed, self._changed = self._changed, False
        return [json.dumps(self.editor.state())] if changed else []

    def wait(self, seconds: float) -> bool:
        return self._changed

    def close(self) -> None:
        self.closed += 1
