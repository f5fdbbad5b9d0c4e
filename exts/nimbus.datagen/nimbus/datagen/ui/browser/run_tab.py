"""Run tab of the studio, which starts a run in a separate process, and shows its progress and report."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.asset_folders import file_in
from nimbus.datagen.files.bounded import Count, Index, Seconds, read_typed
from nimbus.datagen.ui.browser.markdown import escape

if TYPE_CHECKING:
    from nimbus.datagen.ui.document.draft import TaskDraft
    from nimbus.datagen.ui.runs.run_panel import RunPanel


class RunTab:
    """Tab that starts and monitors runs of the open task.

    A run reads the task's file, so a task without a file, such as a task that comes with Nimbus, is saved first.

    Args:
        server: A ``viser.ViserServer``.
        panel: View model that starts processes.
        draft: The open task.
        report: Called with one line on failure, with "" on success.
    """

    def __init__(
        self, server: Any, panel: RunPanel, draft: Callable[[], TaskDraft], report: Callable[[str], None]
    ) -> None:
        self._server, self._panel, self._draft, self._report = server, panel, draft, report
        gui = server.gui
        episodes = gui.add_number("episodes", panel.episodes, min=1, max=10**7, step=1)
        episodes.on_update(lambda event: panel.set_episodes(int(event.target.value)))
        seed = gui.add_number("run seed", panel.seed, min=0, max=2**31 - 1, step=1)
        seed.on_update(lambda event: panel.set_seed(int(event.target.value)))
        out = gui.add_text("folder", panel.out, hint="Of the dataset; empty: out/<task>")
        out.on_update(lambda event: self._set_out(event.target))
        buttons = gui.add_button_group("run", ("Run", "Cancel", "Report"))
        buttons.on_click(lambda event: self._do(event.target.value))
        self._bar = gui.add_progress_bar(0.0)
        self._line = gui.add_markdown("No run yet.")
        self._table = gui.add_markdown("")

    def refresh(self) -> None:
        """Show the progress of the run; this is called a few times per second."""
        panel = self._panel
        panel.poll()
        if panel.activity or panel.status:
            self._set(self._bar, "value", round(100.0 * (panel.status.share if panel.status else 0.0), 1))
            self._set(self._line, "content", escape(panel.problem or panel.progress_line or "Starting …"))
            self._set(self._table, "content", dashboard(panel.run_folder))

    def _set(self, handle: Any, name: str, value: Any) -> None:
        if getattr(handle, name) != value:
            setattr(handle, name, value)

    def _set_out(self, field: Any) -> None:
        try:
            self._panel.set_out(field.value)
        except InputError as error:
            self._set(field, "value", self._panel.out)
            self._report(str(error))

    def _do(self, what: str) -> None:
        try:
            line = {"Run": self._run, "Cancel": self._cancel, "Report": self._show_report}[what]()
        except InputError as error:
            line = str(error)
        self._report(self._panel.problem or line)

    def _run(self) -> str:
        draft, panel = self._draft(), self._panel
        draft.any_task()
        if panel.is_running:
            raise InputError("a run is in progress", instead="cancel it, or wait for its end")
        line = self.save_once()
        panel.set_task(str(draft.path))
        panel.run()
        return line

    def save_once(self) -> str:
        """Save a task that has no file yet; return a line about it.

        Raises:
            InputError: The file differs from the task shown.
        """
        draft = self._draft()
        if not draft.path.exists():
            draft.save()
            return f"saved as {draft.path.absolute()}, the file of the run"
        draft.check_disk()
        if draft.is_changed:
            instead = "save it first; a run reads the file once, when it begins"
            raise InputError("the task is not saved", where=str(draft.path), instead=instead)
        return ""

    def _cancel(self) -> str:
        self._panel.cancel()
        return ""

    def _show_report(self) -> str:
        if not self._panel.task:
            self._panel.set_task(str(self._draft().path))
        frame = self._panel.frame_report(height="70vh")
        with self._server.gui.add_modal(f"Report of {self._panel.report.parent.name}") as modal:
            self._server.gui.add_html(frame)
            self._server.gui.add_button("Close").on_click(lambda _: modal.close())
        return ""


@dataclass(frozen=True, kw_only=True)
class _WorkerNote:
    """Part of a worker's status that is shown."""

    seat: Index = -1
    role: str = ""
    phase: str = ""


@dataclass(frozen=True, kw_only=True)
class _DashboardFile:
    """Part of ``status.json`` that is shown."""

    counts: dict[str, Count] = field(default_factory=dict)
    cpu_times: dict[str, Seconds] = field(default_factory=dict)
    failures: dict[str, Count] = field(default_factory=dict)
    attempts: Count = 0
    stored: Count = 0
    workers: tuple[_WorkerNote, ...] = ()


def dashboard(folder: Path) -> str:
    """Return stages, failures and workers of ``status.json`` as Markdown; empty without a readable file."""
    try:
        status = read_typed(_DashboardFile, file_in(folder, "status.json"))
    except InputError:
        return ""
    lines = ["| stage | items | s CPU |", "|---|---|---|"]
    for stage in ("load", "randomize", "plan", "render", "store"):
        if stage in status.counts or stage in status.cpu_times:
            lines.append(f"| {stage} | {status.counts.get(stage, 0)} | {status.cpu_times.get(stage, 0.0):.1f} |")
    lines.append("")
    share = f" ({min(1.0, status.stored / status.attempts):.0%})" if status.attempts else ""
    lines.append(f"{status.stored} of {status.attempts} attempts stored{share}.")
    if status.failures:
        counted = ", ".join(f"{escape(reason)} {count}" for reason, count in status.failures.items())
        lines.append(f"Failed: {counted}.")
    lines += [f"- worker {each.seat}, {escape(each.role)}, {escape(each.phase)}" for each in status.workers]
    return "\n".join(lines)
