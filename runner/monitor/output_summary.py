"""Messages of commands that make a dataset from another one: remaining work, and a summary at the end."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from rich.console import Console
from rich.table import Table

from nimbus.runner.system.console import TerminalConsole, trim_lines
from nimbus.runner.system.output import shown_path, write_error, write_progress

if TYPE_CHECKING:
    from nimbus.datagen.datasets.convert.convert import Converted
    from nimbus.datagen.datasets.export.export import Exported
    from nimbus.datagen.store.dataset import Dataset


def report_foreign_files(dataset: Dataset) -> None:
    """Print the lines of :func:`foreign_file_lines`."""
    for text in foreign_file_lines(dataset):
        write_error(f"{text}\n")


def foreign_file_lines(dataset: Dataset) -> Iterator[str]:
    """Yield one line for unknown files that were moved aside, and one for missing files."""
    from nimbus.datagen.store.commit import ORPHANS

    if count := len(dataset.outdated):
        what = f"{count} episode files are" if count > 1 else f"{dataset.outdated[0].name} is"
        yield f"{dataset.folder}: {what} missing or changed and will be made again"
    if count := len(dataset.orphans):
        what = f"{count} episode files" if count > 1 else "an episode file"
        yield f"{dataset.folder}: moved {what} without a row in the ledger to {ORPHANS}/"


class OutputSummary(Protocol):
    """Summary of an export or a conversion."""

    @property
    def format(self) -> str: ...  # noqa: D102
    @property
    def out(self) -> Path: ...  # noqa: D102
    @property
    def episode_count(self) -> int: ...  # noqa: D102
    @property
    def frame_count(self) -> int: ...  # noqa: D102
    @property
    def file_count(self) -> int: ...  # noqa: D102
    @property
    def byte_count(self) -> int: ...  # noqa: D102
    @property
    def is_new(self) -> bool: ...  # noqa: D102


def report_pending(left: int) -> None:
    """Show the number of remaining episodes in a terminal."""
    if sys.stderr.isatty():
        write_progress(f"{left} left" if left else "")


def print_output(
    made: OutputSummary, wall_seconds: float, *, further: Mapping[str, str], warning: str = "", word: str = "dataset"
) -> None:
    """Print a summary and the folder.

    Args:
        made: The result.
        wall_seconds: Duration.
        further: Additional rows of the table.
        warning: Lines below the table.
        word: Term for the result.
    """
    table = Table(show_header=False, box=None)
    table.add_row("format", made.format)
    table.add_row("episodes", f"{made.episode_count}")
    table.add_row("frames", f"{made.frame_count}")
    table.add_row("files", f"{made.file_count}")
    table.add_row("bytes", f"{made.byte_count:,}")
    for name, text in further.items():
        table.add_row(name, text)
    table.add_row("time", f"{wall_seconds:.1f} s" if made.is_new else "none: the output was already complete")
    console = TerminalConsole()
    with trim_lines(console):
        console.print(table)
    if warning:
        console.print(warning, style="yellow", soft_wrap=True)
    print_place(made.out, console, word=word)


def print_exported(made: Exported, wall_seconds: float) -> None:
    """Print the summary of an export."""
    failures = {"failures": f"{made.failure_count}, labeled, after the episodes"} if made.failure_count else {}
    count, flag = made.left_out, "--restricted-assets"
    warnings = [f"{count} episodes left out because of their objects' licenses; {flag} includes them"] if count else []
    if not made.has_objects:
        warnings.append("neither images nor poses of objects; nimbus export --environment-state includes the poses")
    print_output(made, wall_seconds, further=failures, warning="\n".join(warnings), word="export")


def print_converted(made: Converted, wall_seconds: float) -> None:
    """Print the summary of a converted LeRobot dataset."""
    further = {"also copied": _few(made.extra)} if made.extra else {}
    warning = f"left out, because no episode refers to them: {_few(made.left_out)}" if made.left_out else ""
    print_output(made, wall_seconds, further=further, warning=warning)


def _few(names: tuple[str, ...]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def print_place(out: Path, console: Console, *, word: str = "dataset") -> None:
    """Print the folder of the result."""
    console.print(f"{word}: {shown_path(out)}", soft_wrap=True)
