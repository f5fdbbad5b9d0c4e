"""``nimbus convert SRC --to lerobot --out OUT``: a LeRobot dataset in another version, without encoding again."""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.table import Table

from nimbus.datagen.convert.convert import Converted, convert
from nimbus.datagen.store.export.options import Options
from nimbus.datagen.store.json_text import to_json
from nimbus.runner import libraries as libraries  # one thread each, also in the processes that this one starts
from nimbus.runner.tidy import tidy


def command(args: argparse.Namespace) -> int:
    """Convert and print what came of it."""
    begin = time.monotonic()
    options = Options(episode_size=args.episode_size, shard_bytes=args.shard_size)
    folder = args.folder.absolute()
    out = args.out or folder.with_name(f"{folder.name}_{args.to}")
    made = convert(folder, out, to=args.to, options=options, tell=tell)
    if args.json:
        sys.stdout.write(to_json(asdict(made) | {"out": str(made.out)}, indent=2) + "\n")
    else:
        print_converted(made, time.monotonic() - begin)
    return 0


def print_converted(made: Converted, wall_seconds: float) -> None:
    """Show what a LeRobot dataset holds that was made from another one."""
    table = Table(show_header=False, box=None)
    table.add_row("format", made.format)
    table.add_row("episodes", f"{made.episode_count}")
    table.add_row("frames", f"{made.frame_count}")
    table.add_row("files", f"{made.file_count}")
    table.add_row("bytes", f"{made.byte_count:,}")
    if made.extra:
        table.add_row("taken along", f"{_few(made.extra)}")
    table.add_row("time", f"{wall_seconds:.1f} s" if made.is_new else "none: it stood here already, and is whole")
    console = Console()
    with tidy(console):
        console.print(table)
    if made.left_out:
        what = f"left out, for no episode names them: {_few(made.left_out)}"
        console.print(what, style="yellow", soft_wrap=True, markup=False, highlight=False)
    print_place(made.out, console)


def print_place(out: Path, console: Console) -> None:
    """Say where it is."""
    console.print(f"dataset: {out}", soft_wrap=True, markup=False, highlight=False)


def tell(left: int) -> None:
    """Say on a terminal how much is yet to come."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r{left} left \x1b[K" if left else "\r\x1b[K")


def _few(names: tuple[str, ...]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
