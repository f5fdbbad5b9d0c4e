"""``nimbus studio``: a task in a browser: its fields, its scene, sample layouts, runs and their data."""

from __future__ import annotations

import argparse
import contextlib
import sys
import threading

LOOPBACK = "127.0.0.1"


def command(args: argparse.Namespace) -> int:
    """Serve the page until interrupted."""
    from nimbus.runner.libraries import prepare_libraries

    prepare_libraries(skill_folders=args.skills)
    from nimbus.datagen.studio.app import Studio

    studio = Studio(args.task, host=args.host, port=args.port, interpreter=sys.executable)
    sys.stdout.write(f"{studio.address}\n")
    if args.host != LOOPBACK:
        sys.stderr.write(f"anybody who reaches {args.host} can change files and start runs as you\n")
    sys.stdout.flush()
    with contextlib.closing(studio):
        threading.Event().wait()
    return 0
