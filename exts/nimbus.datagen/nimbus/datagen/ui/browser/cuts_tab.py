"""Cuts tab of the studio: subtasks of demonstrations on a timeline, which are edited and saved for multiplication."""

from __future__ import annotations

import html
import threading
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nimbus.datagen.datasets.multiply.contact_rows import WORLD
from nimbus.datagen.datasets.multiply.cuts_file import CUTS_NAME, KINDS, row_at
from nimbus.datagen.errors import InputError, quote_words
from nimbus.datagen.files.own_files import own_path
from nimbus.datagen.robots.robot import load_robot
from nimbus.datagen.store.episode_file.read import EpisodeFile
from nimbus.datagen.tasks.stored_pictures import shown_layout
from nimbus.datagen.ui.browser.data_tab import recorded
from nimbus.datagen.ui.browser.markdown import escape
from nimbus.datagen.ui.browser.timeline import draw_list, draw_timeline
from nimbus.datagen.ui.browser.tool_paths import ToolPaths
from nimbus.datagen.ui.cuts_source import OpenCuts, open_cuts
from nimbus.datagen.ui.scene_look import SceneLook, look_parts, motion_of
from nimbus.datagen.usd.stage import read_stage

if TYPE_CHECKING:
    from nimbus.datagen.tasks.task import Task
    from nimbus.datagen.ui.background_tasks import BackgroundTasks
    from nimbus.datagen.ui.browser.player import Player
    from nimbus.datagen.ui.cuts_draft import CutsDraft
    from nimbus.datagen.ui.document.allowed_folders import AllowedFolders

_NONE = "none"
_STEP = 0.01
"""Resolution of times [s]."""
_COMMAND = "white-space: pre-wrap; overflow-wrap: anywhere; font-size: 11px; margin: 4px 8px; user-select: text"
"""Style of the command line."""
_HELP = """Strips under the bars: the hand touches something (gray), or holds it (dark). *Start here* and *End here*
move a boundary of the subtask to the time above."""


class CutsTab:
    """Editor of cuts.

    Args:
        server: A ``viser.ViserServer``.
        task: The current task.
        name: Returns the name of the task, or the path of its file, for the command line.
        folder: Returns the default folder of the demonstrations of a task.
        player: Shows a demonstration in the scene.
        tasks: Runs long work.
        allowed: Folders in which datasets may be opened and cuts saved.
        report: Called with one line on failure, with "" on success.
    """

    def __init__(
        self,
        server: Any,
        task: Callable[[], Task],
        name: Callable[[], str],
        folder: Callable[[str], Path],
        *,
        player: Player,
        tasks: BackgroundTasks,
        allowed: AllowedFolders,
        report: Callable[[str], None],
    ) -> None:
        self._server, self._task, self._name, self._default = server, task, name, folder
        self._player, self._tasks, self._allowed, self._report = player, tasks, allowed, report
        self._lock = threading.RLock()
        self._open: OpenCuts | None = None
        self._look: SceneLook | None = None
        self._shown = ""
        """Demonstration in the scene."""
        self._of_task = ""
        """Name or file of the task of the open demonstrations, for the command line."""
        self._row = 0
        self._paths = ToolPaths(server)
        gui = server.gui
        self._folder = gui.add_text("dataset", "", hint="Dataset; empty for the demonstrations of this task")
        self._file = gui.add_text("cuts file", "", hint=f"Empty for {CUTS_NAME} in the dataset")
        gui.add_button("Open demonstrations").on_click(lambda _: self.open())
        self._summary = gui.add_markdown("Subtasks of demonstrations, for *nimbus multiply*. Open the demonstrations.")
        self._one = gui.add_folder("Demonstration", expand_by_default=True, visible=False)
        with self._one:
            self._which = gui.add_dropdown("demonstration", (_NONE,), initial_value=_NONE)
            self._used = gui.add_checkbox("use it", True, hint="Otherwise it is not multiplied")
            self._time = gui.add_slider("time [s]", 0.0, 1.0, _STEP, 0.0)
            self._timeline = gui.add_html("")
        self._part = gui.add_folder("Subtask", expand_by_default=True, visible=False)
        with self._part:
            self._subtask = gui.add_dropdown("subtask", (_NONE,), initial_value=_NONE)
            self._kind = gui.add_dropdown("kind", KINDS, initial_value=KINDS[0])
            self._frame = gui.add_dropdown("frame", (WORLD,), initial_value=WORLD, hint="The motion is moved with it")
            self._arms = gui.add_dropdown("arms", (_NONE,), initial_value=_NONE, visible=False)
            self._span = gui.add_multi_slider("from, to [s]", 0.0, 1.0, _STEP, (0.0, 1.0))
            self._first = gui.add_number("first [s]", 0.0, min=0.0, step=_STEP)
            self._last = gui.add_number("last [s]", 0.0, min=0.0, step=_STEP)
            here = gui.add_button_group("boundary", ("Start here", "End here", "Split here"))
            parts = gui.add_button_group("parts", ("Merge with next", "Remove", "Add here"))
            rest = gui.add_button_group("change", ("Same in all", "Find again", "Undo"))
            self._hint = gui.add_markdown(_HELP)
        self._saving = gui.add_folder("Multiply", expand_by_default=True, visible=False)
        with self._saving:
            gui.add_button("Save cuts").on_click(lambda _: self._do(self._save))
            self._command = gui.add_html("")
        self._on(self._which, lambda value: self._choose(value))
        self._on(self._used, lambda value: self._draft.use(bool(value)))
        self._on(self._time, lambda value: self._go_to(float(value)))
        self._on(self._subtask, lambda value: self._draft.select(self._draft.name, self._subtask.options.index(value)))
        self._on(self._kind, lambda value: self._draft.set_kind(value))
        self._on(self._frame, lambda value: self._draft.set_frame("" if value == WORLD else value))
        self._on(self._arms, lambda value: self._draft.set_arms(tuple(value.split(" + "))))
        self._on(self._span, lambda value: self._set_span(*value))
        self._on(self._first, lambda value: self._set_span(first=value))
        self._on(self._last, lambda value: self._set_span(last=value))
        for group in (here, parts, rest):
            group.on_click(lambda event: self._do(lambda: self._press(event.target.value)))
        player.observe(self._follow)

    @property
    def draft(self) -> CutsDraft | None:
        """Cuts of the open demonstrations."""
        return self._open.draft if self._open else None

    def open(self, folder: Path | None = None) -> None:
        """Read demonstrations in the background.

        Args:
            folder: Their dataset; by default the one in the field.
        """
        if folder is not None:
            self._folder.value = str(folder)
        self._tasks.submit("reading the demonstrations", self._load)

    @property
    def _draft(self) -> CutsDraft:
        if self._open is None:
            raise InputError("no demonstrations are open", where="studio", instead="press Open demonstrations")
        return self._open.draft

    def _on(self, handle: Any, act: Callable[[Any], object]) -> None:
        """Call ``act`` when a person changes a control; values that the studio sets itself are ignored."""

        def changed(event: Any) -> None:
            if event.client_id is not None:
                self._do(lambda: act(event.target.value))

        handle.on_update(changed)

    def _do(self, act: Callable[[], object]) -> None:
        with self._lock:
            try:
                act()
                line = ""
            except InputError as error:
                line = str(error)
            # The status at the top of the page is out of sight beside these controls.
            _set(self._hint, "content", f"**{escape(line)}**" if line else _HELP)
            self._show()
        self._report(line)  # without the lock, which the editor's thread takes when it shows a scene

    def _load(self) -> None:
        task = self._task()
        typed = self._folder.value.strip()
        folder = Path(typed).expanduser() if typed else self._default(task.name)
        self._allowed.check(folder)
        path = self._path(folder)
        found, name = open_cuts(folder, path, task), self._name()
        with self._lock:
            self._open, self._shown, self._of_task = found, "", name
            for part in (self._one, self._part, self._saving):
                part.visible = True
            self._show()
        self._draw()

    def _path(self, folder: Path) -> Path:
        """Return the path of the cuts file.

        Raises:
            InputError: It is not a YAML file, or outside of the allowed folders.
        """
        typed = self._file.value.strip()
        path = Path(typed).expanduser() if typed else folder / CUTS_NAME
        if path.suffix not in (".yaml", ".yml"):
            raise InputError("a cuts file is a YAML file", where=str(path), instead="let its name end with .yaml")
        self._allowed.check(path)
        return path

    def _save(self) -> None:
        draft = self._draft
        assert self._open is not None
        draft.move_to(self._path(self._open.folder))
        draft.save()

    def _choose(self, name: str) -> None:
        self._draft.select(name)
        self._tasks.submit("showing the demonstration", self._draw)

    def _set_span(self, first: float | None = None, last: float | None = None) -> None:
        one, rate = self._draft.selected, self._draft.demonstration.rate
        if one is not None:
            start = one.start if first is None else row_at(first, rate)
            stop = one.stop if last is None else row_at(last, rate) + 1
            # A slider has steps of 10 ms: its other handle must not move a boundary by a row.
            start = one.start if first is not None and abs(first - one.start / rate) < _STEP else start
            stop = one.stop if last is not None and abs(last - (one.stop - 1) / rate) < _STEP else stop
            self._draft.set_span(start, stop)

    def _press(self, what: str) -> None:
        draft, row = self._draft, self._row
        one = draft.selected
        acts: dict[str, Callable[[], object]] = {
            "Start here": lambda: draft.set_span(row, one.stop) if one else None,
            "End here": lambda: draft.set_span(one.start, row + 1) if one else None,
            "Split here": lambda: draft.split(row),
            "Merge with next": draft.merge,
            "Remove": draft.remove,
            "Add here": lambda: draft.add(row),
            "Same in all": draft.use_everywhere,
            "Find again": draft.find_again,
            "Undo": draft.undo,
        }
        acts[what]()

    def _go_to(self, seconds: float) -> None:
        if self._look is not None and self._player.look is self._look:
            self._player.go_to(self._look, row_at(seconds, self._draft.demonstration.rate))
        else:  # another layout is in the scene
            self._shown = ""
            self._tasks.submit("showing the demonstration", self._draw)

    def _follow(self, look: SceneLook, row: int) -> None:
        """Follow the scrubber below the tabs; another motion in the scene hides the paths of the tools."""
        with self._lock:
            if look is not self._look:
                self._paths.remove()
                return
            self._row = row
            self._show_moment()

    def _draw(self) -> None:
        """Show the selected demonstration in the scene."""
        with self._lock:
            if self._open is None or (name := self._draft.name) == self._shown:
                return
            path, task = own_path(self._open.folder, f"episodes/{name}.hdf5"), self._open.task
        with EpisodeFile(path) as episode:
            layout = shown_layout(episode.layout(), episode.provenance, where=str(path))
            trajectory, has_pictures = episode.trajectory(), bool(episode.cameras)
        parts = look_parts(read_stage(task.scene), load_robot(task.robot), layout.physical)
        look = SceneLook(parts=parts, layout=layout, motion=motion_of(trajectory))
        with self._lock:
            self._look, self._shown, self._row = look, name, 0
        pictures = (lambda step: recorded(path, step)) if has_pictures else None
        self._player.show(look, f"Demonstration {escape(name)}.", recorded=pictures)
        with self._lock:
            self._show()

    def _show(self) -> None:
        """Show the state of the draft."""
        if self._open is None:
            return
        draft = self._open.draft
        one, rate = draft.demonstration, draft.demonstration.rate
        end = round((one.row_count - 1) / rate, 2)
        with self._server.atomic():
            _set_options(self._which, tuple(draft.entries), draft.name)
            _set(self._used, "value", draft.entries[draft.name].use)
            _set(self._time, "max", end)
            labels = tuple(
                f"{index + 1}. {cut.verb} {cut.frame or 'in the world'}" for index, cut in enumerate(draft.cuts)
            )
            _set_options(self._subtask, labels or (_NONE,), labels[draft.index] if labels else _NONE)
            frame = draft.selected.frame if draft.selected else ""
            _set_options(self._frame, (WORLD, *draft.scope.frames_of(one)), frame or WORLD)
            if draft.selected is not None:
                self._show_subtask(end)
            self._show_moment()
            self._show_paths()
            self._summary.content = self._describe()
            self._command.content = self._command_line()

    def _show_subtask(self, end: float) -> None:
        draft = self._draft
        one, rate = draft.selected, draft.demonstration.rate
        assert one is not None
        _set(self._kind, "value", one.verb)
        arms = draft.scope.arms
        together = [" + ".join(some) for count in range(1, len(arms) + 1) for some in combinations(arms, count)]
        _set(self._arms, "visible", len(arms) > 1)
        _set_options(self._arms, tuple(together), " + ".join(one.arms))
        first, last = one.start / rate, (one.stop - 1) / rate
        for field in (self._span, self._first, self._last):
            _set(field, "max", end)
        shown = self._span.value
        if not (_is_row(shown[0], first, rate) and _is_row(shown[1], last, rate)):
            self._span.value = round(first, 2), round(last, 2)
        _set_time(self._first, first, rate)
        _set_time(self._last, last, rate)

    def _show_moment(self) -> None:
        assert self._open is not None
        draft, rate = self._draft, self._draft.demonstration.rate
        arms, rows = draft.scope.arms, draft.demonstration.row_count
        contacts = self._open.contacts.get(draft.name, {})
        line = draw_timeline(draft.cuts, contacts, arms=arms, rows=rows, rate=rate, chosen=draft.index, row=self._row)
        _set(self._timeline, "content", line + draw_list(draft.cuts, rate=rate, chosen=draft.index, arms=arms))
        _set_time(self._time, self._row / rate, rate)

    def _describe(self) -> str:
        draft = self._draft
        out = draft.left_out()
        count = len(draft.entries) - len(out)
        lines = [f"{count} of {len(draft.entries)} demonstrations are used: {escape(draft.sequence() or 'none')}."]
        lines += [f"Left out: {escape(name)}: {escape(reason)}" for name, reason in out.items()]
        lines += ["*Not saved.*" if draft.is_changed else f"Saved in {escape(draft.path)}."]
        return "  \n".join(lines)

    def _command_line(self) -> str:
        assert self._open is not None
        words = ["nimbus", "multiply", str(self._open.folder), "--task", self._of_task, "--cuts", str(self._draft.path)]
        words += ["--episodes", "100", "--out", f"out/multiplied_{self._draft.scope.task}"]
        hint = "Save, then run:" if self._draft.is_changed else "Run:"
        line = f'<pre style="{_COMMAND}">{html.escape(quote_words(*words))}</pre>'
        return f'<div style="font-size: 12px; margin: 4px 8px">{hint}</div>{line}'

    def _show_paths(self) -> None:
        """Show the paths of the tools if the selected demonstration is in the scene."""
        assert self._open is not None
        draft = self._draft
        if self._look is None or self._shown != draft.name or self._player.look is not self._look:
            self._paths.remove()
        else:
            self._paths.show(self._open.paths.get(draft.name, {}), draft.cuts, chosen=draft.index)


def _set(handle: Any, name: str, value: Any) -> None:
    if getattr(handle, name) != value:
        setattr(handle, name, value)


def _is_row(shown: float, seconds: float, rate: float) -> bool:
    """Return True if a shown time means the same row, so that typing and dragging are not interrupted."""
    return abs(shown - seconds) < max(_STEP, 0.5 / rate)


def _set_time(handle: Any, seconds: float, rate: float) -> None:
    if not _is_row(float(handle.value), seconds, rate):
        handle.value = round(seconds, 2)


def _set_options(handle: Any, options: tuple[str, ...], value: str) -> None:
    if tuple(handle.options) != options:
        handle.options = options
    _set(handle, "value", value)
