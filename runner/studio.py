"""``nimbus studio``: a task in a browser: its fields, its scene, sample layouts, runs and their data."""

from __future__ import annotations

import argparse
import contextlib
import signal
import sys
import threading

LOOPBACK = "127.0.0.1"


def command(args: argparse.Namespace) -> int:
    """Serve the page until interrupted."""
    from nimbus.runner.system.threads import prepare_libraries

    prepare_libraries(skill_folders=args.skills)
    from nimbus.datagen.ui.browser.pixel_ratio import QUICK, SHARP, has_gpu, page_url
    from nimbus.datagen.ui.browser.studio import Studio

    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    sharpness = args.sharpness or (SHARP if has_gpu() or args.host != LOOPBACK else QUICK)
    simple = sharpness < SHARP
    studio = Studio(args.task, host=args.host, port=args.port, interpreter=sys.executable, simple=simple)
    with contextlib.closing(studio):
        sys.stdout.write(f"{page_url(studio.address, sharpness)}\n")
        if args.host != LOOPBACK:
            sys.stderr.write(f"anybody who reaches {args.host} can change files and start runs as you\n")
        sys.stdout.flush()
        ended.wait()
    return 0
