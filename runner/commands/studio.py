"""``nimbus studio``: a task in a browser: its fields, its scene, sample layouts, runs and their data."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
from typing import Annotated

import typer

from nimbus.runner.commands.options import Skills, whole

LOOPBACK = "127.0.0.1"


def command(
    task: Annotated[
        str, typer.Argument(metavar="TASK", parser=str, help="a task's name, or the path of its file")
    ] = "sort_trash",
    *,
    port: Annotated[
        int, typer.Option("--port", metavar="N", parser=whole(1, 65535), help="or the next free one")
    ] = 8080,
    host: Annotated[
        str,
        typer.Option("--host", metavar="ADDRESS", parser=str, help="where to listen; others can then change files"),
    ] = LOOPBACK,
    sharpness: Annotated[
        int | None,
        typer.Option(
            "--sharpness",
            metavar="PERCENT",
            parser=whole(10, 200),
            help="of the screen's pixels along each side that the scene is drawn with (100; 40 where there is no GPU)",
        ),
    ] = None,
    skills: Skills = None,
) -> int:
    """Serve the page until interrupted."""
    from nimbus.runner.system.threads import prepare_libraries

    prepare_libraries(skill_folders=skills or [])
    from nimbus.datagen.ui.browser.pixel_ratio import QUICK, SHARP, has_gpu, page_url
    from nimbus.datagen.ui.browser.studio import Studio

    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    sharpness = sharpness or (SHARP if has_gpu() or host != LOOPBACK else QUICK)
    studio = Studio(task, host=host, port=port, interpreter=sys.executable, simple=sharpness < SHARP)
    with contextlib.closing(studio):
        sys.stdout.write(f"{page_url(studio.address, sharpness)}\n")
        if host != LOOPBACK:
            sys.stderr.write(f"anybody who reaches {host} can change files and start runs as you\n")
        sys.stdout.flush()
        ended.wait()
    return 0
