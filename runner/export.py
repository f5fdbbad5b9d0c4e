"""``nimbus export DIR --to FORMAT --out OUT``: the stored episodes in a format that training code reads."""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import asdict
from pathlib import Path

from nimbus.datagen.datasets.export.export import Exported, check_format, export
from nimbus.datagen.datasets.export.options import Options
from nimbus.datagen.files.codec import to_json
from nimbus.datagen.store.info import read_info
from nimbus.runner.monitor.output_summary import print_output, report_pending
from nimbus.runner.system import threads as threads  # one thread each, also in the processes that this one starts

__all__ = ["check_format", "command", "publish"]


def command(args: argparse.Namespace) -> int:
    """Write the export and print what it holds."""
    begin = time.monotonic()
    options = Options(episode_size=args.episode_size, shard_bytes=args.shard_size)
    made = export(
        args.folder, args.out, to=args.to, options=options, keep_failures=args.keep_failures, tell=report_pending
    )
    if args.json:
        sys.stdout.write(to_json(asdict(made) | {"out": str(made.out)}, indent=2) + "\n")
    else:
        _print(made, time.monotonic() - begin)
    return 0


def publish(folder: Path, to: str) -> None:
    """Export a dataset that a run has just made to the folder in it with the name of the format; nothing when empty."""
    if read_info(folder).episode_count:
        begin = time.monotonic()
        made = export(folder, folder / to, to=to, tell=report_pending)
        _print(made, time.monotonic() - begin)


def _print(made: Exported, wall_seconds: float) -> None:
    """Show what an export holds."""
    failures = {"failures": f"{made.failure_count}, labelled, behind the episodes"} if made.failure_count else {}
    print_output(made, wall_seconds, further=failures, word="export")
