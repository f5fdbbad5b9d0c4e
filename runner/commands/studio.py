"""``nimbus studio``: serves a page to edit a task: fields, scene, sample layouts, runs, data, teleoperation."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
from pathlib import Path
from typing import Annotated, Literal

import typer

from nimbus.runner.commands.options import Skills, one_of, whole
from nimbus.runner.commands.parser import path
from nimbus.runner.system.output import write_error, write_out

LOOPBACK = "127.0.0.1"


def command(
    task: Annotated[
        str, typer.Argument(metavar="TASK", parser=str, help="a task's name, or the path of its file")
    ] = "sort_trash",
    *,
    port: Annotated[
        int,
        typer.Option("--port", metavar="N", parser=whole(1, 65535), help="port; if it is in use, the next free one"),
    ] = 8080,
    host: Annotated[
        str,
        typer.Option("--host", metavar="ADDRESS", parser=str, help="address to listen on; the printed URL has a key"),
    ] = LOOPBACK,
    sharpness: Annotated[
        int | None,
        typer.Option(
            "--sharpness",
            metavar="PERCENT",
            parser=whole(10, 200),
            help="resolution of the scene in percent of the screen's pixels per side (100; 40 without a GPU)",
        ),
    ] = None,
    folders: Annotated[
        list[Path] | None,
        typer.Option(
            "--folder",
            metavar="DIR",
            parser=path,
            help="further folder in which files may be opened and saved",
        ),
    ] = None,
    teleoperate: Annotated[
        bool, typer.Option("--teleoperate", help="begin with teleoperation: move the robot, record demonstrations")
    ] = False,
    device: Annotated[
        Path | None,
        typer.Option(
            "--device",
            metavar="FILE",
            parser=path,
            help="teleoperation device that runs in another Python, such as LeRobot's",
        ),
    ] = None,
    cuts: Annotated[
        Path | None,
        typer.Option(
            "--cuts", metavar="DEMOS", parser=path, help="dataset of demonstrations, whose subtasks the tab Cuts edits"
        ),
    ] = None,
    images: Annotated[
        Literal["lossless", "none"],
        typer.Option(
            "--images",
            metavar="HOW",
            parser=one_of(("lossless", "none")),
            help="with --teleoperate, images of kept demonstrations; none: episodes of states only, in another dataset",
        ),
    ] = "lossless",
    skills: Skills = None,
) -> int:
    """Serve the page until interrupted."""
    from nimbus.datagen.errors import InputError
    from nimbus.datagen.files.scene_files import is_path
    from nimbus.datagen.tasks.own_tasks import name_task
    from nimbus.runner.system.threads import prepare_libraries

    if device is not None and not teleoperate:
        raise InputError("a device needs teleoperation", where="--device", instead="add --teleoperate")
    if images != "lossless" and not teleoperate:
        raise InputError("this option needs teleoperation", where="--images", instead="add --teleoperate")
    if cuts is not None and not cuts.is_dir():
        raise InputError("no such dataset", where=f"--cuts {cuts}", instead="give the folder of demonstrations")
    prepare_libraries(skill_folders=skills or [])
    if is_path(task):
        with contextlib.suppress(InputError):  # a draft need not be valid
            name_task(task, skill_folders=skills or [])
    from nimbus.datagen.ui.browser.studio import QUICK, SHARP, Studio, has_gpu, page_url

    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    sharpness = sharpness or (SHARP if has_gpu() or host != LOOPBACK else QUICK)
    named = [*(folders or []), *([] if cuts is None else [cuts])]
    studio = Studio(
        task,
        host=host,
        port=port,
        folders=named,
        interpreter=sys.executable,
        simple=sharpness < SHARP,
        teleoperates=teleoperate,
    )
    with contextlib.closing(studio):
        if cuts is not None:
            studio.cuts.open(cuts)
        if teleoperate:
            if device is not None:
                from nimbus.datagen.robots.robot import load_robot
                from nimbus.datagen.teleoperate.device_file import read_device

                read_device(device, load_robot(studio.task().robot))
            studio.teleoperation.start(device, has_images=images != "none")
        write_out(f"open: {page_url(studio.address, sharpness)}\n")
        if host != LOOPBACK:
            write_error("anyone with this address can change task files and start runs; it is sent unencrypted\n")
        sys.stdout.flush()
        ended.wait()
    return 0
