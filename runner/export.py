"""``nimbus export DIR --to FORMAT --out OUT``: the stored episodes in a format that training code reads."""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.table import Table

from nimbus.datagen.store.export.export import Exported, check_format, export
from nimbus.datagen.store.export.options import Options
from nimbus.datagen.store.info import read_info
from nimbus.datagen.store.json_text import to_json
from nimbus.runner import libraries as libraries  # one thread each, also in the processes that this one starts
from nimbus.runner.tidy import tidy

__all__ = ["check_format", "command", "publish"]


def command(args: argparse.Namespace) -> int:
    """Write the export and print what it holds."""
    begin = time.monotonic()
    options = Options(episode_size=args.episode_size, shard_bytes=args.shard_size)
    made = export(args.folder, args.out, to=args.to, options=options, keep_failures=args.keep_failures, tell=_tell)
    if args.json:
        sys.stdout.write(to_json(asdict(made) | {"out": str(made.out)}, indent=2) + "\n")
    else:
        _print(made, time.monotonic() - begin)
    return 0


def publish(folder: Path, to: str) -> None:
    """Export a dataset that a run has just made to the folder in it with the name of the format; nothing when empty."""
    if read_info(folder).episode_count:
        begin = time.monotonic()
        made = export(folder, folder / to, to=to, tell=_tell)
        _print(made, time.monotonic() - begin)


def _print(made: Exported, wall_seconds: float) -> None:
    """Show what an export holds."""
    table = Table(show_header=False, box=None)
    table.add_row("format", made.format)
    table.add_row("episodes", f"{made.episode_count}")
    if made.failure_count:
        table.add_row("failures", f"{made.failure_count}, labelled, behind the episodes")
    table.add_row("frames", f"{made.frame_count}")
    table.add_row("files", f"{made.file_count}")
    table.add_row("bytes", f"{made.byte_count:,}")
    table.add_row("time", f"{wall_seconds:.1f} s" if made.is_new else "none: it stood here already, and is whole")
    console = Console()
    with tidy(console):
        console.print(table)
    console.print(f"export: {made.out}", soft_wrap=True, markup=False, highlight=False)


def _tell(left: int) -> None:
    if sys.stderr.isatty():
        sys.stderr.write(f"\r{left} episodes left \x1b[K" if left else "\r\x1b[K")
