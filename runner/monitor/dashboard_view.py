"""Rendering of a run's status in 80 columns."""

from __future__ import annotations

import time

from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from nimbus.runner.monitor.status import STAGES, RingStatus, Status, WorkerStatus

COLORS = {"load": "magenta", "randomize": "blue", "plan": "cyan", "render": "green", "store": "yellow"}
"""Colors of stages."""
_MOST_WORKERS = 12
_MOST_EVENTS = 4
_STALE = 2.0
"""Age above which a heartbeat is shown in another color [s]."""
_WIDTH = 78


def view(status: Status, *, now: float | None = None) -> RenderableType:
    """Render the whole dashboard.

    Args:
        status: Status to show.
        now: Current time for a running clock [s since 1970]; by default the last update.
    """
    elapsed = max(status.elapsed, now - status.started) if now else status.elapsed
    parts: list[RenderableType] = [_headline(status, elapsed), _figures(status), ""]
    if status.workers:
        parts += [_workers(status.workers), ""]
    parts.append(_side_by_side(_stages(status), _outcomes(status)))
    events = [event for event in status.events if event.kind not in ("episode", "phase")][-_MOST_EVENTS:]
    if events:
        parts.append("")
        for event in events:
            clock = time.strftime("%H:%M:%S", time.localtime(event.time))
            text = Text(f"{clock}  {event.text}", style="red" if event.kind in ("fault", "quarantine") else "dim")
            text.truncate(_WIDTH, overflow="ellipsis")
            parts.append(text)
    if status.activity:
        parts += ["", Text(status.activity, style="dim italic")]
    return Group(*parts)


def duration(seconds: float) -> str:
    """Format a duration: ``42 s``, ``3 min 05 s``, ``2 h 10 min``, ``250 h``."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    if whole < 100 * 3600:
        return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
    return f"{whole // 3600} h"


def startup_text(status: Status) -> str:
    """Format the duration of the start-up and its phases: ``42 s (load 9.3 s, compile 31 s, workers 1.2 s)``."""
    phases = ", ".join(f"{name} {short_duration(seconds)}" for name, seconds in status.phases.items())
    return short_duration(status.startup_seconds) + (f" ({phases})" if phases else "")


def short_duration(seconds: float) -> str:
    """Format a duration, with decimals for a short one: ``0.42 s``, ``7.3 s``."""
    if seconds < 10:
        return f"{seconds:.2f} s" if seconds < 1 else f"{seconds:.1f} s"
    return duration(seconds)


def _headline(status: Status, elapsed: float) -> RenderableType:
    grid = Table.grid(padding=(0, 2))
    for _ in range(5):
        grid.add_column(no_wrap=True)
    done = status.already_stored + status.stored
    bar = ProgressBar(total=max(1, status.target), completed=min(status.settled, status.target), width=18)
    left = status.remaining
    if status.state != "running":
        eta = status.state
    elif left is None:
        eta = "estimating"
    else:
        eta = f"{duration(max(0.0, left + status.elapsed - elapsed))} left"
    count = Text(f"{done} of {status.target} {status.unit}s", style="bold")
    grid.add_row(Text(status.task, style="bold cyan"), bar, count, duration(elapsed), Text(eta, style="green"))
    return grid


def _figures(status: Status) -> RenderableType:
    """Render one or two lines of further figures."""
    parts: list[Text] = []
    if distance := status.distance_after_startup:
        bound = status.working_bound
        parts.append(_figure("bound", f"{short_duration(bound.seconds)} ({bound.name}), {distance:.2f} x"))
    if status.startup_seconds:
        parts.append(_figure("start-up", startup_text(status)))
    if status.ring.slots:
        parts.append(_ring(status.ring))
    if status.faults:
        kinds = ", ".join(f"{kind.replace('_', ' ')} {count}" for kind, count in sorted(status.faults.items()))
        parts.append(_figure("faults", kinds, style="red"))
    for name, count in (("quarantined", status.quarantined), ("renewed", status.recycled)):
        if count:
            parts.append(_figure(name, str(count), style="yellow"))
    if status.switches:
        parts.append(_figure("role switches", str(status.switches)))
    lines, width = [Text()], 0
    for part in parts:
        if width and width + 3 + part.cell_len > _WIDTH:
            lines.append(Text())
            width = 0
        if width:
            lines[-1].append("   ")
        lines[-1].append_text(part)
        width = lines[-1].cell_len
    return Group(*lines) if parts else Text("")


def _figure(name: str, value: str, *, style: str = "bold") -> Text:
    return Text.assemble((f"{name} ", "dim"), (value, style))


def _ring(ring: RingStatus) -> Text:
    """Render the slots as small blocks: ready, taken, being filled, free."""
    scale = max(1.0, ring.slots / 16)
    text = Text("ring ", style="dim")
    used = 0
    for count, letter, style in (
        (ring.ready, "█", "green"),
        (ring.taken, "▓", "cyan"),
        (ring.granted, "▒", "blue"),
    ):
        blocks = round(count / scale)
        text.append(letter * blocks, style=style)
        used += blocks
    text.append("·" * max(0, round(ring.slots / scale) - used), style="dim")
    text.append(f" {ring.ready} ready", style="bold")
    if ring.spilled:
        text.append(f", {ring.spilled} in files", style="yellow")
    return text


def _workers(workers: tuple[WorkerStatus, ...]) -> RenderableType:
    table = _table("workers")
    for column in ("worker", "role", "phase"):
        table.add_column(column, header_style="dim", no_wrap=True)
    for column in ("for", "episode", "last stamp", "memory", "results"):
        table.add_column(column, justify="right", header_style="dim", no_wrap=True)
    ordered = sorted(workers, key=lambda worker: worker.seat)
    for worker in ordered[:_MOST_WORKERS]:
        table.add_row(
            str(worker.number),
            Text(
                worker.role + (" (leaves)" if worker.retiring else "") + (f" {worker.gpu[:12]}" if worker.gpu else "")
            ),
            Text("starting" if worker.phase == "none" else worker.phase, style=COLORS.get(worker.phase, "dim")),
            short_duration(worker.in_phase),
            str(worker.index) if worker.index >= 0 else "-",
            Text(short_duration(worker.age), style="yellow" if _is_stale(worker) else ""),
            f"{worker.resident / 1e6:,.0f} MB" if worker.resident else "-",
            str(worker.results),
        )
    more = len(ordered) - _MOST_WORKERS
    return Group(table, Text(f"and {more} more", style="dim")) if more > 0 else table


def _is_stale(worker: WorkerStatus) -> bool:
    return worker.age > _STALE and worker.phase not in ("wait", "none")


def _stages(status: Status) -> Table:
    table = _table("stages")
    table.add_column("", no_wrap=True)
    for column in ("done", "CPU", "each", "per min"):
        table.add_column(column, justify="right", header_style="dim", no_wrap=True)
    for stage in STAGES:
        count, seconds, rate = status.counts.get(stage, 0), status.cpu_times.get(stage, 0.0), status.rate(stage)
        each = f"{seconds / count:.2f} s" if count else "-"
        name = Text(stage, style=COLORS[stage])
        table.add_row(name, str(count), f"{seconds:.1f} s", each, f"{rate * 60:.1f}" if rate else "-")
    for name, seconds in sorted(status.waits.items()):
        row = (name.replace("_", " "), "", f"{seconds:.1f} s", "wall", "")
        table.add_row(*(Text(text, style="dim") for text in row))
    return table


def _outcomes(status: Status) -> Table:
    table = _table("attempts")
    table.add_column("")
    table.add_column("", justify="right")
    table.add_column("", justify="right")
    total = max(1, status.attempts)
    good = status.attempts - sum(status.failures.values())
    table.add_row(Text("succeeded", style="green"), str(good), f"{good / total:.0%}" if status.attempts else "-")
    for reason, count in sorted(status.failures.items(), key=lambda item: (-item[1], item[0])):
        table.add_row(Text(reason.replace("_", " "), style="yellow"), str(count), f"{count / total:.0%}")
    table.add_row(Text("written", style="dim"), Text(f"{status.byte_count / 1e6:.0f} MB", style="dim"), "")
    return table


def _table(title: str) -> Table:
    return Table(title=title, title_justify="left", title_style="dim", box=None, padding=(0, 2, 0, 0))


def _side_by_side(left: Table, right: Table) -> Table:
    grid = Table.grid(padding=(0, 2))
    grid.add_row(left, right)
    return grid
