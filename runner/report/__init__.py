"""Report of a run: figures in the terminal, and a self-contained page."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rich.columns import Columns
from rich.console import Console
from rich.table import Table
from rich.text import Text

from nimbus.datagen.store.ledger.ledger import Ledger
from nimbus.datagen.store.publish import replace_text
from nimbus.runner.monitor.dashboard_view import duration
from nimbus.runner.report.failures import build_failure_tree
from nimbus.runner.report.page import render_page
from nimbus.runner.report.row_sums import MOST_SAMPLED, one_of_each_plan
from nimbus.runner.report.summary import Summary, summarize
from nimbus.runner.report.timeline import lay_out_timelines
from nimbus.runner.report.yields import flag_words, shown_meanings
from nimbus.runner.system.console import TerminalConsole, trim_lines

FILE_NAME = "report.html"
_MOST_ROWS = 8
"""Largest number of rows in the table of one category, such as relations."""


def write_report(folder: Path, *, price_per_hour: float | None = None) -> Path:
    """Write ``report.html`` into the dataset's folder.

    Args:
        folder: Folder of the dataset.
        price_per_hour: Price per hour of the machine.

    Raises:
        InputError: There is no dataset in the folder.
        StorageError: The disk is full.
    """
    path = folder / FILE_NAME
    summary = summarize(folder, price_per_hour=price_per_hour)
    ledger = Ledger(folder, read_only=True)
    try:
        with ledger.snapshot():
            sample = list(one_of_each_plan(ledger.sample_attempts(MOST_SAMPLED)))
            failed = (plan for plan in one_of_each_plan(ledger.walk_attempts()) if not plan.success)
            failures = build_failure_tree(folder, failed, total_seconds=summary.plan_seconds)
            timelines = lay_out_timelines(summary.runs, ledger.walk_spans, summary.fault_rows)
    finally:
        ledger.close()
    replace_text(path, render_page(folder, summary, plans=sample, failures=failures, timelines=timelines))
    return path


def print_summary(summary: Summary, *, console: Console | None = None) -> None:
    """Print the figures as tables."""
    console = console or TerminalConsole()
    asked = f" of {summary.target} asked" if summary.target else ""
    with trim_lines(console):
        rest = f" seed {summary.seed}: {summary.stored} episodes stored{asked}"
        console.print(Text.assemble((summary.task, "bold"), rest))
        tables = [_figures(summary), _stages(summary), _reasons(summary), _kinds(summary), *_meanings(summary)]
        console.print(Columns(tables, padding=(1, 4)))
    for flag in summary.yields.flags:
        console.print(flag_words(flag), style="red", soft_wrap=True)
    for path in summary.outdated[:1]:
        more = f" and {summary.outdated_count - 1} more" if summary.outdated_count > 1 else ""
        what = f"{path}{more}: missing or changed; the next run makes missing episodes again"
        console.print(what, style="red", soft_wrap=True)


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold cyan", box=None, padding=(0, 2, 0, 0))
    for row, column in enumerate(columns):
        table.add_column(column, justify="right" if row else "left", header_style="dim")
    return table


def _figures(summary: Summary) -> Table:
    table = _table("figures", "", "")
    table.add_row("attempts that succeed", f"{summary.success_rate:.1%} ({summary.successes} of {summary.attempts})")
    table.add_row("given up", str(summary.given_up))
    if summary.quarantined:
        table.add_row("quarantined", str(summary.quarantined))
    for kind, count in summary.faults.items():
        table.add_row(f"fault: {kind.replace('_', ' ')}", str(count))
    table.add_row(f"CPU {summary.each}", f"{summary.cpu_per_episode:.1f} s")
    if summary.wall_seconds and (distance := summary.distance_after_startup):
        bound = summary.working_bound
        table.add_row("once: start-up", duration(summary.startup_seconds))
        table.add_row("wall time after start-up", duration(summary.working_seconds))
        table.add_row("bound", f"{duration(bound.seconds)} ({bound.name}), {distance:.2f} x")
        table.add_row("stored per hour", f"{summary.stored_per_working_hour or 0.0:.0f}")
    if summary.cost_per_episode is not None:
        table.add_row("cost an episode", f"{summary.cost_per_episode:.4g}")
    for name, seconds in summary.durations.items():
        table.add_row(f"motion, {name}", f"{seconds:.1f} s")
    table.add_row("written", f"{summary.byte_count / 1e6:,.1f} MB")
    if told := summary.traffic:
        table.add_row("sent to the store", f"{told['bytes_sent'] / 1e6:,.1f} MB")
        cost = f", about {told['egress_cost']:.2f} USD" if told["egress_cost"] >= 0.005 else ""
        table.add_row("read from the store", f"{told['bytes_fetched'] / 1e6:,.1f} MB{cost}")
        if told["peer_hits"]:
            table.add_row("read from other nodes", f"{told['bytes_from_peers'] / 1e6:,.1f} MB")
        table.add_row("read from this machine", f"{told['bytes_here'] / 1e6:,.1f} MB, {told['hit_rate']:.0%} of reads")
    if summary.failure_bytes:
        table.add_row("written, failures", f"{summary.failure_bytes / 1e6:,.1f} MB")
    return table


def _stages(summary: Summary) -> Table:
    table = _table("CPU time", "stage", summary.each, "share")
    total = summary.cpu_per_episode or 1.0
    for stage in summary.stages:
        table.add_row(stage.stage, f"{stage.per_episode:.2f} s", f"{stage.per_episode / total:.0%}")
    for stage, seconds in summary.once.items():
        table.add_row(f"once: {stage}", f"{seconds:.2f} s", "")
    for name, seconds in summary.waits.items():
        table.add_row(name.replace("_", " "), f"{seconds / max(1, summary.stored):.2f} s", "wall")
    return table


def _meanings(summary: Summary) -> Iterator[Table]:
    """Yield tables of first attempts by category, scene, relation and length; objects have a separate table."""
    for meaning, rows, _ in shown_meanings(summary.semantic_yields):
        if meaning != "object" and len(rows) > 1:
            table = _table(f"first attempts, {meaning}", "", "succeed", "")
            for row in rows[:_MOST_ROWS]:
                table.add_row(row.value.replace("_", " "), f"{row.first} of {row.episodes}", f"{row.share:.0%}")
            yield table


def _reasons(summary: Summary) -> Table:
    table = _table("failed attempts", "reason", "count")
    for reason, count in summary.reasons.items():
        table.add_row(reason.replace("_", " "), str(count))
    if not summary.reasons:
        table.add_row("none", "0")
    return table


def _kinds(summary: Summary) -> Table:
    table = _table("yield by kind", "kind", "attempts", "succeed")
    for row in summary.kinds:
        table.add_row(row.kind.replace("_", " "), str(row.attempts), f"{row.successes / row.attempts:.0%}")
    return table
