"""Data tab: a filtered list of a dataset's attempts, and the replay of one, with its images of every modality."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nimbus.datagen.errors import InputError
from nimbus.datagen.robots.robot import load_robot
from nimbus.datagen.store.episode_file.read import EpisodeFile
from nimbus.datagen.tasks.own_tasks import parse_stored
from nimbus.datagen.tasks.stored_files import check_stored_files
from nimbus.datagen.tasks.stored_pictures import shown_layout
from nimbus.datagen.tasks.task import NavigationTask
from nimbus.datagen.ui.browser.markdown import escape
from nimbus.datagen.ui.browser.player import Player, outcome_line
from nimbus.datagen.ui.navigation_preview import NavigationPreview
from nimbus.datagen.ui.runs.dataset_list import ALL, FAILED, STORED, DatasetList, attempt_label
from nimbus.datagen.ui.scene_look import SceneLook, look_parts, motion_of
from nimbus.datagen.usd.stage import read_stage

if TYPE_CHECKING:
    from nimbus.datagen.episode.observation import CameraFrames
    from nimbus.datagen.store.ledger.attempt import Attempt
    from nimbus.datagen.ui.background_tasks import BackgroundTasks
    from nimbus.datagen.ui.document.allowed_folders import AllowedFolders

_MOST_LISTED = 500
_ANY = "any reason"


class DataTab:
    """Browser of datasets.

    Args:
        server: A ``viser.ViserServer``.
        folder: Returns the default folder, in which a run of the open task is stored.
        player: Shows an episode in the scene.
        tasks: Reads files in the background.
        allowed: Folders in which datasets may be opened.
    """

    def __init__(
        self,
        server: Any,
        folder: Callable[[], Path],
        player: Player,
        tasks: BackgroundTasks,
        *,
        allowed: AllowedFolders,
    ) -> None:
        self._player, self._tasks, self._default, self._allowed = player, tasks, folder, allowed
        self._lock = threading.RLock()
        self._list: DatasetList | None = None
        self._shown: list[Attempt] = []
        gui = server.gui
        self._folder = gui.add_text("dataset", "", hint="Folder of a run; empty for the run of this task")
        gui.add_button("Open dataset").on_click(lambda _: tasks.submit("opening the dataset", self.open))
        self._summary = gui.add_markdown("")
        self._outcome = gui.add_dropdown("outcome", (ALL, STORED, FAILED), initial_value=ALL)
        self._reason = gui.add_dropdown("reason", (_ANY,), initial_value=_ANY)
        for field in (self._outcome, self._reason):
            field.on_update(lambda _: self._filter())
        self._episode = gui.add_dropdown("episode", ("none",), initial_value="none")
        gui.add_button("Replay").on_click(lambda _: tasks.submit("reading the episode", self.replay))

    def open(self) -> None:
        """Read the dataset."""
        if typed := self._folder.value.strip():
            self._allowed.check(Path(typed))
        folder = Path(typed) if typed else self._default()
        self._list = found = DatasetList.open(folder)
        stored = len(found.filtered(outcome=STORED))
        counts = found.reasons()
        reasons = ", ".join(f"{reason} {count}" for reason, count in counts)
        lines = [f"{escape(folder.resolve().name)}: {len(found.attempts)} attempts, {stored} stored."]
        lines += [f"Failed: {escape(reasons)}."] if reasons else []
        with self._lock:
            self._summary.content = "  \n".join(lines)
            self._reason.options = (_ANY, *(reason for reason, _ in counts))
            self._reason.value = _ANY
        self._filter()

    def _filter(self) -> None:
        with self._lock:
            if self._list is None:
                return
            reason = "" if self._reason.value == _ANY else self._reason.value
            self._shown = self._list.filtered(outcome=self._outcome.value, reason=reason)[:_MOST_LISTED]
            labels = tuple(attempt_label(attempt) for attempt in self._shown) or ("none",)
            self._episode.options = labels
            self._episode.value = labels[0]

    def replay(self) -> None:
        """Show the selected episode step by step."""
        attempt = next((one for one in self._shown if attempt_label(one) == self._episode.value), None)
        path = self._list.file(attempt) if self._list and attempt else None
        if path is None:
            what = "this attempt is not stored"
            raise InputError(what, where=self._episode.value, instead="choose a stored one")
        with EpisodeFile(path) as episode:
            layout, trajectory = episode.layout(), episode.trajectory()
            task = parse_stored(episode.provenance, name=layout.key.task, where=str(path))
            check_stored_files(task, episode.provenance.assets, where=str(path))
            layout = shown_layout(layout, episode.provenance, where=str(path))
        if isinstance(task, NavigationTask):
            look = NavigationPreview().look(task, layout, trajectory)
        else:
            stage, robot = read_stage(task.scene), load_robot(task.robot)
            parts = look_parts(stage, robot, layout.physical)
            look = SceneLook(parts=parts, layout=layout, motion=motion_of(trajectory))
        self._player.show(look, outcome_line(look.motion), recorded=lambda step: recorded(path, step))


def recorded(path: Path, step: int) -> dict[str, CameraFrames]:
    """Return the images of every camera of a stored episode in one step."""
    with EpisodeFile(path) as episode:
        return {camera: episode.frames(camera, step, step + 1) for camera in episode.cameras}
