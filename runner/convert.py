"""``nimbus convert SRC --to lerobot --out OUT``: a LeRobot dataset in another version, without encoding again."""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import asdict

from nimbus.datagen.datasets.convert.convert import Converted, convert
from nimbus.datagen.datasets.export.options import Options
from nimbus.datagen.files.codec import to_json
from nimbus.runner.monitor.output_summary import print_output, report_pending
from nimbus.runner.system import threads as threads  # one thread each, also in the processes that this one starts


def command(args: argparse.Namespace) -> int:
    """Convert and print what came of it."""
    begin = time.monotonic()
    options = Options(episode_size=args.episode_size, shard_bytes=args.shard_size)
    folder = args.folder.absolute()
    out = args.out or folder.with_name(f"{folder.name}_{args.to}")
    made = convert(folder, out, to=args.to, options=options, tell=report_pending)
    if args.json:
        sys.stdout.write(to_json(asdict(made) | {"out": str(made.out)}, indent=2) + "\n")
    else:
        print_converted(made, time.monotonic() - begin)
    return 0


def print_converted(made: Converted, wall_seconds: float) -> None:
    """Show what a LeRobot dataset holds that was made from another one."""
    further = {"taken along": _few(made.extra)} if made.extra else {}
    warning = f"left out, for no episode names them: {_few(made.left_out)}" if made.left_out else ""
    print_output(made, wall_seconds, further=further, warning=warning)


def _few(names: tuple[str, ...]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
