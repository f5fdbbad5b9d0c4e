"""``nimbus view DATASET``: episodes in Rerun, or a contact sheet; of Nimbus, or of LeRobot whoever wrote it."""

from __future__ import annotations

import argparse
import sys

from nimbus.datagen.datasets.quality.view import open_view
from nimbus.datagen.errors import InputError
from nimbus.datagen.store.publish import disk
from nimbus.runner.system import threads as threads  # one thread each


def command(args: argparse.Namespace) -> int:
    """Show it."""
    view = open_view(args.folder)
    if args.sheet:
        from nimbus.runner.media.preview import write_view_sheet

        with disk(args.sheet):
            if not write_view_sheet(view, args.sheet):
                raise InputError("no picture in it", where=str(args.folder), instead="see what 'nimbus qa' says")
        sys.stdout.write(f"contact sheet: {args.sheet}\n")
        return 0
    from nimbus.runner.media.rerun import show

    shown = show(args.folder, view, args.episode or [0], save=args.save)
    where = f"recording: {args.save}" if args.save else "shown in Rerun"
    sys.stdout.write(f"{where}: episodes {', '.join(map(str, shown))}\n")
    return 0
