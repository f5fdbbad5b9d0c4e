"""The studio: one task, its scene and its runs in a browser."""

from __future__ import annotations

import contextlib
import logging
import socket
import tempfile
import threading
from pathlib import Path
from typing import Any

from nimbus.datagen.errors import InputError
from nimbus.datagen.panel.draft import TaskDraft
from nimbus.datagen.panel.launch import ProcessLauncher
from nimbus.datagen.panel.model import Panel
from nimbus.datagen.studio.data_tab import DataTab
from nimbus.datagen.studio.errands import Errands
from nimbus.datagen.studio.layout_tab import LayoutTab
from nimbus.datagen.studio.player import Player
from nimbus.datagen.studio.preview import Preview
from nimbus.datagen.studio.run_tab import RunTab
from nimbus.datagen.studio.scene_view import SceneView
from nimbus.datagen.studio.task_tab import TaskTab
from nimbus.datagen.tasks.task import Task

INSTALL = "type: pip install 'nimbus-datagen[studio]'"
_POLL_SECONDS = 0.5


def load_viser() -> Any:
    """The module that serves the page.

    Raises:
        InputError: It is not installed.
    """
    try:
        import viser  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise InputError("viser is not installed", where="nimbus studio", instead=INSTALL) from None
    return viser


class Studio:
    """A task that is open in a browser. Whoever opens the page sees, and changes, the same task.

    Args:
        name_or_path: The task.
        host: Address that is listened on.
        port: The first one that is tried.
        folder: Where tasks opened by name are saved.
        interpreter: A Python with Nimbus's dependencies, which runs are started in.
        simple: Draw with fewer triangles, for browsers without a GPU.

    Raises:
        InputError: No such task, viser is not installed, or nothing can be listened on.
    """

    def __init__(
        self,
        name_or_path: str,
        *,
        host: str,
        port: int,
        folder: Path = Path(),
        interpreter: str = "",
        simple: bool = False,
    ) -> None:
        viser = load_viser()
        self._folder, self.lock = folder, threading.RLock()
        self.draft = TaskDraft(name_or_path, folder=folder)
        self.draft.observe(self._changed)
        for name in ("viser", "websockets"):
            logging.getLogger(name).setLevel(logging.ERROR)
        try:
            socket.create_server((host, 0)).close()  # viser tries one port after the other, whatever the reason
            self.server = viser.ViserServer(
                host=host, port=port, label=f"nimbus studio: {self.draft.name}", verbose=False
            )
        except OSError as error:
            what, instead = f"cannot listen: {error.strerror or error}", "give another --host or --port"
            raise InputError(what, where=f"{host}:{port}", instead=instead) from None
        self.server.gui.configure_theme(control_width="large", show_logo=False, show_share_button=False)
        self.server.gui.main_panel.dock_right()
        self._logs = contextlib.ExitStack()
        logs = Path(self._logs.enter_context(tempfile.TemporaryDirectory(prefix="nimbus-studio-")))
        self.panel = Panel(ProcessLauncher(logs, interpreter=interpreter), None, folder=logs)
        self.preview, self.view = Preview(), SceneView(self.server, simple=simple)
        self._activity = self.server.gui.add_markdown("")
        self.errands = Errands(self._tell, self.complain)
        tabs = self.server.gui.add_tab_group()
        self.player = Player(self.server, self.task, self.preview, self.view, self.errands)
        with tabs.add_tab("Task"):
            self.task_tab = TaskTab(
                self.server, lambda: self.draft, self.open, self._send_to_doctor, self.complain, self.lock
            )
        with tabs.add_tab("Layouts"):
            self.layouts = LayoutTab(self.server, self.task, self.preview, self.view, self.player, self.errands)
        with tabs.add_tab("Run"):
            self.runs = RunTab(self.server, self.panel, lambda: self.draft, self.complain)
        with tabs.add_tab("Data"):
            self.data = DataTab(self.server, self._dataset, self.player, self.errands)
        self._doing = self._complaint = ""
        self._seen: Task | None = None
        self._closed = threading.Event()
        self._changed()
        self._poll = threading.Thread(target=self._watch, name="nimbus-studio-watch", daemon=True)
        self._poll.start()

    @property
    def address(self) -> str:
        """Of the page."""
        return f"http://{self.server.get_host()}:{self.server.get_port()}"

    def task(self) -> Task:
        """The task as it stands in the fields.

        Raises:
            InputError: Something in it is wrong.
        """
        with self.lock:
            return self.draft.task()

    def open(self, name_or_path: str) -> None:
        """Edit another task; what is not saved of this one is refused to be lost.

        Raises:
            InputError: There is none, or this one is not saved.
        """
        if self.draft.is_changed:
            raise InputError(
                "this task is not saved", where=str(self.draft.path), instead="save it, or undo its changes"
            )
        draft = TaskDraft(name_or_path, folder=self._folder)
        self.draft, self._seen = draft, None
        draft.observe(self._changed)
        self._changed()

    def complain(self, line: str) -> None:
        """Say in one line what could not be done; an empty one takes that back."""
        self._complaint = line
        self._show_activity()

    def close(self) -> None:
        """Stop serving; a run goes on by itself."""
        self._closed.set()
        self.errands.close()
        self.panel.close()
        self.server.stop()
        self._logs.close()

    def wait(self) -> None:
        """Serve until closed or interrupted."""
        self._closed.wait()

    def _dataset(self) -> Path:
        if not self.panel.task:
            self.panel.set_task(str(self.draft.path))
        return self.panel.out_folder

    def _changed(self) -> None:
        """The task says something new: show it in the fields, and in the scene where it is right."""
        if not hasattr(self, "task_tab"):
            return
        problems = self.draft.problems()
        self.task_tab.refresh(problems)
        if not problems:
            self.errands.send("showing the scene", self._show)

    def _send_to_doctor(self) -> None:
        self.errands.send("examining the task", self._examine)

    def _examine(self) -> None:
        found = self.preview.examine(self.task())
        self.task_tab.refresh(found)
        self.complain("" if found else "the doctor finds nothing wrong")

    def _show(self) -> None:
        task = self.task()
        before, self._seen = self._seen, task
        if before is None or (before.scene, before.robot, before.objects) != (task.scene, task.robot, task.objects):
            self.player.show(self.preview.bare(task), "The robot at home; draw a layout to see objects.")
            before = None
        if before is None or before.regions != task.regions:
            self.view.show_regions(task.regions, self.preview.heights(task), self._region_moved)
        if before is None or before.cameras != task.cameras:
            cameras = self.preview.cameras(task)
            self.view.show_cameras(cameras, self._camera_moved)
            self.player.look_through(cameras)

    def _region_moved(self, name: str, x: float, y: float) -> None:
        self._edit(lambda: self.draft.set(("regions", name, "center"), [round(float(x), 3), round(float(y), 3)]))

    def _camera_moved(self, name: str, position: Any, wxyz: Any) -> None:
        self._edit(lambda: self.draft.place_camera(name, position, wxyz))

    def _edit(self, act: Any) -> None:
        with self.lock:
            try:
                act()
            except InputError as error:
                self.complain(str(error))

    def _tell(self, what: str) -> None:
        self._doing = what
        self._show_activity()

    def _show_activity(self) -> None:
        parts = [f"*{self._doing} …*" if self._doing else "*ready*"]
        parts += [f"**{self._complaint}**"] if self._complaint else []
        self._activity.content = "  \n".join(parts)

    def _watch(self) -> None:
        changed_on_disk = False
        while not self._closed.wait(_POLL_SECONDS):
            self.runs.refresh()
            if changed_on_disk != (now := self.draft.is_changed_on_disk):
                changed_on_disk = now
                self.task_tab.refresh(self.draft.problems())
