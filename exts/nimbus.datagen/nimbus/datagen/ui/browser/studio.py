"""Studio: one task, its scene and its runs in a browser."""

from __future__ import annotations

import contextlib
import io
import logging
import os
import socket
import sys
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.installation import add_extra
from nimbus.datagen.local_server import fresh_name
from nimbus.datagen.teleoperate.recording import demonstrations_folder
from nimbus.datagen.ui.background_tasks import BackgroundTasks
from nimbus.datagen.ui.browser.browser_scene import BrowserScene
from nimbus.datagen.ui.browser.cuts_tab import CutsTab
from nimbus.datagen.ui.browser.data_tab import DataTab
from nimbus.datagen.ui.browser.markdown import escape
from nimbus.datagen.ui.browser.message_events import make_thread_safe
from nimbus.datagen.ui.browser.navigation_view import BrowserNavigation
from nimbus.datagen.ui.browser.player import Player
from nimbus.datagen.ui.browser.render_form import BrowserForm
from nimbus.datagen.ui.browser.run_tab import RunTab
from nimbus.datagen.ui.browser.scene_view import SceneView
from nimbus.datagen.ui.browser.teleoperation_tab import TeleoperationTab, script_of
from nimbus.datagen.ui.document.allowed_folders import AllowedFolders
from nimbus.datagen.ui.document.draft import TaskDraft
from nimbus.datagen.ui.gate import Gate, address_of, check_guarded, guarded_websockets
from nimbus.datagen.ui.preview import Preview
from nimbus.datagen.ui.runs.launch import ProcessLauncher
from nimbus.datagen.ui.runs.run_panel import RunPanel
from nimbus.datagen.ui.task_editor import TaskEditor

if TYPE_CHECKING:
    from nimbus.datagen.tasks.task import Task

SHARP, QUICK = 100, 40
"""Resolutions as percentages of the screen's pixels per side: full resolution, and one that is low enough for smooth
scrubbing with software rendering."""
_GPUS = ("dri", "nvidia0", "dxg")
"""Device files of GPUs on Linux: a machine with a GPU has one of them, which is dxg under WSL."""
_POLL_SECONDS = 0.5


def has_gpu(devices: Path = Path("/dev")) -> bool:
    """Guess from the device files whether the browser has a GPU; in an SSH session, assume that it has one."""
    is_elsewhere = "SSH_CONNECTION" in os.environ
    return sys.platform != "linux" or is_elsewhere or any((devices / name).exists() for name in _GPUS)


def page_url(address: str, sharpness: int) -> str:
    """Return the page's address, with a resolution in percent of the screen's pixels."""
    return address if sharpness == SHARP else f"{address}/?fixedDpr={sharpness / 100:g}"


def load_viser() -> Any:
    """Import the module that serves the page.

    Raises:
        InputError: viser is not installed.
    """
    try:
        import viser  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise InputError("viser is not installed", where="nimbus studio", instead=add_extra("studio")) from None
    return viser


class Studio:
    """Task that is open in a browser. Every browser that opens the page shows and edits the same task.

    Args:
        name_or_path: The task.
        host: Address to listen on.
        port: First port that is tried.
        folder: Folder where tasks opened by name are saved.
        folders: Further folders in which tasks may be opened and saved, besides ``folder``, the working directory and
            the task's folder.
        interpreter: A Python with Nimbus's dependencies, in which runs are started.
        simple: Draw with fewer triangles, for browsers without a GPU.
        teleoperates: Open on the tab of teleoperation.

    Raises:
        InputError: There is no such task, viser is not installed, or the server cannot listen on the address.
    """

    def __init__(
        self,
        name_or_path: str,
        *,
        host: str,
        port: int,
        folder: Path = Path(),
        folders: Sequence[Path] = (),
        interpreter: str = "",
        simple: bool = False,
        teleoperates: bool = False,
    ) -> None:
        viser = load_viser()
        own = TaskDraft(name_or_path, folder=folder)
        allowed = AllowedFolders([folder, Path(), own.path.parent, *folders])
        self._gate = Gate(host, name=fresh_name(host))
        for logger in ("viser", "websockets"):
            logging.getLogger(logger).setLevel(logging.ERROR)
        try:
            socket.create_server((host, 0)).close()  # viser would answer any error by trying one port after another
            script = script_of(self._answer_page)
            with guarded_websockets(self._gate, script):
                label = f"nimbus studio: {own.name}"
                # It prints addresses without the secret, which the gate refuses.
                with contextlib.redirect_stdout(io.StringIO()):
                    self.server = viser.ViserServer(host=host, port=port, label=label, verbose=False)
        except OSError as error:
            what, instead = f"cannot listen: {error.strerror or error}", "give another --host or --port"
            raise InputError(what, where=f"{host}:{port}", instead=instead) from None
        try:
            check_guarded(host, self.server.get_port())
        except BaseException:
            self.server.stop()
            raise
        make_thread_safe(self.server)
        gui = self.server.gui
        gui.configure_theme(control_width="large", show_logo=False, show_share_button=False)
        gui.main_panel.dock_right()
        self._logs = contextlib.ExitStack()
        logs = Path(self._logs.enter_context(tempfile.TemporaryDirectory(prefix="nimbus-studio-")))
        launcher = ProcessLauncher(logs, interpreter=interpreter)
        self.panel, self._allowed = RunPanel(launcher, allowed=allowed), allowed
        self.view, self.tasks, preview = SceneView(self.server, simple=simple), BackgroundTasks(), Preview()
        self._status = gui.add_markdown("")
        full = gui.add_checkbox("full meshes", not simple, hint="Slow in a browser without a GPU")
        full.on_update(lambda event: self._draw_simply(not event.target.value))
        tabs = gui.add_tab_group()
        # The page opens on the first tab.
        steering = tabs.add_tab("Teleoperate") if teleoperates else None
        self.player = Player(self.server, self.task, preview, self.view, self.tasks)
        self.scene = BrowserScene(preview, self.view, self.player, moved=self._move)
        task_tab, layout_tab = tabs.add_tab("Task"), tabs.add_tab("Layouts")
        navigation = BrowserNavigation(gui, layout_tab, self.player)
        self.editor = TaskEditor(
            self.scene, self.tasks, folder=folder, joins_typing=True, allowed=allowed, navigation=navigation
        )
        self._form = BrowserForm(gui, task_tab, places={"Task": task_tab, "Layouts": layout_tab}, use=self.use)
        with tabs.add_tab("Run"):
            self.runs = RunTab(self.server, self.panel, lambda: self.draft, self.editor.report)
        with steering or tabs.add_tab("Teleoperate"):
            self.teleoperation = TeleoperationTab(
                self.server,
                self.task,
                self._task_file,
                self._demonstrations,
                preview=preview,
                view=self.view,
                player=self.player,
                tasks=self.tasks,
                launcher=launcher,
                report=self.editor.report,
            )
        with tabs.add_tab("Cuts"):
            self.cuts = CutsTab(
                self.server,
                self.task,
                lambda: self.draft.word,
                self._demonstrations,
                player=self.player,
                tasks=self.tasks,
                allowed=allowed,
                report=self.editor.report,
            )
        with tabs.add_tab("Data"):
            self.data = DataTab(self.server, self._dataset, self.player, self.tasks, allowed=allowed)
        self._used = ""
        self.editor.observe(self._refresh)
        self.editor.open(name_or_path)
        self._closed = threading.Event()
        self._poll = threading.Thread(target=self._watch, name="nimbus-studio-watch", daemon=True)
        self._poll.start()

    @property
    def address(self) -> str:
        """Address of the page; it contains the secret, so it alone gives access to the studio."""
        return address_of(self.server.get_host(), self.server.get_port(), self._gate)

    @property
    def draft(self) -> TaskDraft:
        """Open task."""
        assert self.editor.draft is not None
        return self.editor.draft

    def task(self) -> Task:
        """Parse the task as it is in the form.

        Raises:
            InputError: The task has an error.
        """
        return self.editor.task()

    def use(self, name: str, value: Any) -> None:
        """Apply an action of the user on a control of the form."""
        with self.editor.lock:
            self._used = name
            try:
                self.editor.act(name, value)
            finally:
                self._used = ""

    def close(self) -> None:
        """Stop serving; a run in progress continues."""
        self._closed.set()
        self.teleoperation.close()
        self.tasks.close()
        self.panel.close()
        self.server.stop()
        self._logs.close()

    def wait(self) -> None:
        """Serve until closed or interrupted."""
        self._closed.wait()

    def _draw_simply(self, simple: bool) -> None:
        self.tasks.submit("drawing the scene", lambda: self.player.draw_simply(simple))

    def _move(self, name: str, pose: Any) -> None:
        """Apply the new pose of a region or camera that was dragged in the scene, and show it in the form."""
        self.editor.act(name, pose)

    def _dataset(self) -> Path:
        if not self.panel.task:
            self.panel.set_task(str(self.draft.path))
        return self.panel.out_folder

    def _answer_page(self, text: str) -> str:
        """Answer a report of the page; the first one may arrive before the tab exists."""
        tab = getattr(self, "teleoperation", None)
        return tab.answer(text) if tab is not None else "{}"

    def _task_file(self) -> Path:
        self.runs.save_once()
        return self.draft.path

    def _demonstrations(self, task: str) -> Path:
        """Return the folder of the demonstrations of a task.

        Raises:
            InputError: The folder is outside the allowed folders.
        """
        self._allowed.check(folder := demonstrations_folder(task))
        return folder

    def _refresh(self) -> None:
        """Show the state of the editor."""
        editor = self.editor
        parts = [f"*{escape(editor.activity)} …*" if editor.activity else "*ready*"]
        parts += [f"**{escape(editor.message)}**"] if editor.message else []
        with editor.lock:
            self._status.content = "  \n".join(parts)
            self._form.show(editor.sections(), used=self._used)

    def _watch(self) -> None:
        while not self._closed.wait(_POLL_SECONDS):
            self.runs.refresh()
            self.teleoperation.refresh()
            self.editor.check_disk()
