"""Run tab of the studio: starts a run in a separate process, and shows its progress and report."""

from __future__ import annotations

import html
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nimbus.datagen.errors import InputError
from nimbus.datagen.ui.browser.markdown import escape

if TYPE_CHECKING:
    from nimbus.datagen.ui.document.draft import TaskDraft
    from nimbus.datagen.ui.runs.run_panel import RunPanel

_MOST_REPORT = 30 * 2**20
"""Size above which a report is not shown in the page [bytes]."""


class RunTab:
    """Starts and monitors runs of the open task.

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
        """Show the progress of the run; called a few times a second."""
        panel = self._panel
        panel.poll()
        if panel.activity or panel.status:
            self._set(self._bar, "value", round(100.0 * (panel.status.share if panel.status else 0.0), 1))
            self._set(self._line, "content", escape(panel.problem or panel.progress_line or "Starting …"))
            self._set(self._table, "content", dashboard(panel.out_folder))

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
        """Save a task that has no file yet; returns a line about it.

        Raises:
            InputError: The file has another content than the task shown.
        """
        draft, line = self._draft(), ""
        if draft.is_changed and draft.path.exists():
            instead = "save it first; a run reads the file once, when it begins"
            raise InputError("the task is not saved", where=str(draft.path), instead=instead)
        if not draft.path.exists():
            draft.save()
            line = f"saved as {draft.path.absolute()}, the file of the run"
        elif draft.is_changed_on_disk:
            instead = "reload the file, overwrite it, or save this task as another file"
            raise InputError("the file differs from the task shown", where=str(draft.path), instead=instead)
        return line

    def _cancel(self) -> str:
        self._panel.cancel()
        return ""

    def _show_report(self) -> str:
        page = self._panel.report
        if not self._panel.task:
            self._panel.set_task(str(self._draft().path))
            page = self._panel.report
        if not page.is_file():
            raise InputError("there is no report yet", where=str(page), instead="wait for the end of the run")
        if page.stat().st_size > _MOST_REPORT:
            raise InputError("too large to be shown here", where=str(page), instead="open the file in a browser")
        with self._server.gui.add_modal(f"Report of {page.parent.name}") as modal:
            source = html.escape(page.read_text(encoding="utf-8"), quote=True)
            style = "width: 100%; height: 70vh; border: 0; background: white"
            self._server.gui.add_html(f'<iframe class="report" sandbox="" srcdoc="{source}" style="{style}"></iframe>')
            self._server.gui.add_button("Close").on_click(lambda _: modal.close())
        return ""


def dashboard(folder: Path) -> str:
    """Return stages, failures and workers of ``status.json`` as Markdown; empty without a file."""
    try:
        status = json.loads((folder / "status.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return ""
    counts, times, failures = (status.get(name) or {} for name in ("counts", "cpu_times", "failures"))
    lines = ["| stage | items | s CPU |", "|---|---|---|"]
    for stage in ("load", "randomize", "plan", "render", "store"):
        if stage in counts or stage in times:
            lines.append(f"| {stage} | {escape(counts.get(stage, 0))} | {times.get(stage, 0.0):.1f} |")
    lines.append("")
    attempts, stored = status.get("attempts", 0), status.get("stored", 0)
    share = f" ({min(1.0, stored / attempts):.0%})" if attempts else ""
    lines.append(f"{escape(stored)} stored of {escape(attempts)} plans tried{share}.")
    if failures:
        counted = ", ".join(f"{escape(reason)} {escape(count)}" for reason, count in failures.items())
        lines.append(f"Failed: {counted}.")
    for worker in status.get("workers") or []:
        lines.append(f"- worker {', '.join(escape(worker.get(name)) for name in ('seat', 'role', 'phase'))}")
    return "\n".join(lines)
