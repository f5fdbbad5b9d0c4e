"""Runs a spec in the processes of a cell, or in this one, and shows what it stored."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nimbus.datagen.errors import InputError, single_line
from nimbus.runner.cell.transport.spec import CellSpec
from nimbus.runner.system import threads as threads  # one thread each, also in the processes that this one starts

SHORT = 1
BUG = 70


def run_spec(
    spec: CellSpec, *, serial: bool = False, coupled: bool = False, price_per_hour: float | None = None
) -> int:
    """Run a spec and show what became of it; the exit code."""
    serial = serial or coupled or not sys.platform.startswith("linux")
    return _serial(spec, price_per_hour, coupled=coupled) if serial else _cell(spec, price_per_hour)


def _serial(spec: CellSpec, price: float | None, *, coupled: bool) -> int:
    from nimbus.runner.cell.serial_run import Drained, run_serial

    try:
        stored = run_serial(spec, coupled=coupled)
    except Drained:
        show(Path(spec.folder), price=price, quiet=True)
        raise
    show(Path(spec.folder), price=price)
    return 0 if stored == spec.target else _short(stored, spec)


def _cell(spec: CellSpec, price: float | None) -> int:
    from nimbus.runner.cell.launcher import run_cell
    from nimbus.runner.monitor.dashboard import Watcher

    folder = Path(spec.folder)
    with Watcher(folder) as watcher:
        ended = run_cell(spec, watch=watcher.look)
    if ended.state in ("done", "short", "interrupted") and (folder / "dataset.json").exists():
        show(folder, price=price, quiet=ended.state == "interrupted")
    if ended.state == "interrupted":
        raise KeyboardInterrupt
    if ended.line:  # a traceback, or one line
        sys.stderr.write((ended.line.rstrip("\n") if ended.code == BUG else single_line(ended.line)) + "\n")
    return _short(watcher.stored, spec) if ended.state == "short" else ended.code


def _short(stored: int, spec: CellSpec) -> int:
    sys.stderr.write(f"ended short: {stored} of {spec.target} episodes stored; the reasons are in the table\n")
    return SHORT


def show(folder: Path, *, price: float | None = None, quiet: bool = False) -> None:
    """Previews, the report page, and the figures in the terminal."""
    from nimbus.datagen.store.dataset import read_info
    from nimbus.runner.media.preview import write_previews
    from nimbus.runner.report import print_summary, write_report
    from nimbus.runner.report.summary import summarize

    with reporting_input_errors():
        if read_info(folder).episode_count:
            write_previews(folder)
    page = None
    with reporting_input_errors():
        page = write_report(folder, price_per_hour=price)
    if not quiet:
        print_summary(summarize(folder, price_per_hour=price))
        sys.stdout.write(f"\ndataset: {folder}\n" + (f"report:  {page}\n" if page else ""))


@contextmanager
def reporting_input_errors() -> Iterator[None]:
    """Print an ``InputError`` of the block as one line, and go on: the episodes are stored."""
    try:
        yield
    except InputError as error:
        sys.stderr.write(single_line(str(error)) + "\n")
