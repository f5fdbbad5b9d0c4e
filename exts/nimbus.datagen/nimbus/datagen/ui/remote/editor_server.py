"""Server side of the editor process: a task editor whose scene is shown by the host."""

from __future__ import annotations

import contextlib
import json
import threading
from pathlib import Path
from typing import TextIO

from nimbus.datagen.ui.background_tasks import BackgroundTasks
from nimbus.datagen.ui.remote.host_link import HostLink
from nimbus.datagen.ui.remote.messages import ANSWER, EditorState, parse_request
from nimbus.datagen.ui.remote.scene_preview import ScenePreview
from nimbus.datagen.ui.task_editor import TaskEditor, TaskQueue

_MAX_LINE = 1 << 24
_DISK_PERIOD = 0.5
"""Interval of the checks of the file [s]."""


class RemoteEditor(TaskEditor):
    """Task editor that reports its state as plain data.

    Args:
        preview: Makes stages, markers and images.
        tasks: Runs long work.
        folder: Folder where tasks that were opened by name are saved.
    """

    def __init__(self, preview: ScenePreview, tasks: TaskQueue, *, folder: Path) -> None:
        super().__init__(preview, tasks, folder=folder)
        self._preview = preview

    def state(self) -> EditorState:
        """Collect everything that a host shows."""
        with self.lock:
            draft, stage = self.draft, self._preview.stage
            return {
                "path": str(draft.path) if draft else "",
                "source": draft.source if draft else "",
                "text": draft.text if draft else "",
                "unsaved": not draft.is_stored if draft else False,
                "activity": self.activity,
                "message": self.message,
                "problems": [problem.in_file for problem in self.problems],
                "sections": [section.to_dict() for section in self.sections()],
                "markers": self._preview.markers.to_dict(),
                "stage": stage.to_dict() if stage else None,
                "variation": self._preview.variation,
                "pictures": self._preview.pictures,
            }


def serve(requests: TextIO, answers: TextIO, folder: Path) -> None:
    """Answer requests until the input ends.

    Args:
        requests: Lines such as ``{"id": "regions.start.center", "value": "[0.5, 0.1]"}``.
        answers: Receives one state per line.
        folder: Folder for stages and images.
    """
    tasks, writing, ended = BackgroundTasks(), threading.Lock(), threading.Event()

    def send(message: object) -> None:
        with writing, contextlib.suppress(BrokenPipeError):
            answers.write(json.dumps(message) + "\n")
            answers.flush()

    link = HostLink(lambda order: send({"order": order}))
    editor = RemoteEditor(ScenePreview(folder, link=link), tasks, folder=Path.cwd())

    def send_state() -> None:
        send(editor.state())

    def watch_disk() -> None:
        while not ended.wait(_DISK_PERIOD):
            editor.check_disk()

    editor.observe(send_state)
    send_state()
    threading.Thread(target=watch_disk, name="nimbus-editor-disk", daemon=True).start()
    for line in iter(lambda: requests.readline(_MAX_LINE), ""):
        if (request := parse_request(line)) is None:
            editor.report("the host sent an invalid request")
        elif request["id"] == ANSWER:
            link.take(request["value"])
        else:
            editor.act(request["id"], request["value"])
    link.close()
    ended.set()
    tasks.close()
