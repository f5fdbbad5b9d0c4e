"""Extension for Kit: a menu entry and a window; the editor and runs are separate processes."""

from __future__ import annotations

import contextlib
import tempfile
import time
from pathlib import Path
from typing import Any

import carb.eventdispatcher
import carb.settings
import omni.ext
import omni.kit.app
from omni.kit.menu.utils import MenuHelperExtensionFull

from nimbus.datagen.kit.viewport import KitViewport
from nimbus.datagen.kit.window import PanelWindow
from nimbus.datagen.ui.remote.editor_process import EditorConnection, ProcessChannel
from nimbus.datagen.ui.remote.remote_panel import RemotePanel
from nimbus.datagen.ui.runs.launch import ProcessLauncher
from nimbus.datagen.ui.runs.run_panel import RunPanel

_SETTINGS = "/exts/nimbus.datagen"
_FRAME_SHARE = 0.012
"""Time for steps of a live plan in each frame [s]; it is short, so that the window stays responsive."""
_LAST_TASK = "/persistent/exts/nimbus.datagen/task"


class NimbusExtension(omni.ext.IExt, MenuHelperExtensionFull):
    """Adds *Tools > Replicator > Nimbus*."""

    WINDOW_NAME = "Nimbus"
    MENU_GROUP = "Tools/Replicator"

    def on_startup(self, ext_id: str) -> None:
        """Add the menu entry; nothing else is started before its first use.

        Args:
            ext_id: The extension's name and version.
        """
        settings = carb.settings.get_settings()
        self._logs = Path(tempfile.mkdtemp(prefix="nimbus.datagen-"))  # no other user can create this folder first
        interpreter = settings.get_as_string(f"{_SETTINGS}/python")
        self._viewport = KitViewport()
        runs = RunPanel(ProcessLauncher(self._logs, interpreter=interpreter), self._viewport)
        self._panel = RemotePanel(EditorConnection(lambda: ProcessChannel(interpreter)), runs, self._viewport)
        self._panel.set_task(settings.get_as_string(_LAST_TASK) or settings.get_as_string(f"{_SETTINGS}/task"))
        self._poll_period = settings.get_as_float(f"{_SETTINGS}/poll_period")
        self._polled = 0.0
        self._updates = carb.eventdispatcher.get_eventdispatcher().observe_event(
            event_name=omni.kit.app.GLOBAL_EVENT_UPDATE,
            on_event=self._update,
            observer_name="nimbus.datagen.kit",
        )
        self.menu_startup(self._make_window, self.WINDOW_NAME, self.WINDOW_NAME, self.MENU_GROUP)

    def on_shutdown(self) -> None:
        """Remove the menu entry and the window; a run continues in its own process."""
        self.menu_shutdown()
        self._updates = None
        carb.settings.get_settings().set_string(_LAST_TASK, self._panel.task)
        self._panel.close()
        self._viewport.close()
        with contextlib.suppress(OSError):  # logs of runs stay; an empty folder does not
            self._logs.rmdir()

    def _make_window(self) -> PanelWindow:
        return PanelWindow(self._panel, title=self.WINDOW_NAME)

    def _update(self, event: Any) -> None:
        """Poll the processes once per poll period, and advance a live plan in every frame."""
        now = time.monotonic()
        if self._panel.is_live:
            self._panel.drive(_FRAME_SHARE)
        if now - self._polled >= self._poll_period:
            self._polled = now
            self._panel.poll()
