"""``nimbus view DATASET``: shows episodes of Nimbus or LeRobot datasets in Rerun, or on a contact sheet."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nimbus.datagen.errors import InputError
from nimbus.runner.commands.options import DatasetFolder, whole
from nimbus.runner.commands.parser import path
from nimbus.runner.system.output import write_out


def command(
    folder: DatasetFolder,
    *,
    episodes: Annotated[
        list[int] | None,
        typer.Option("--episode", metavar="N", parser=whole(0, 10**7), help="index of the episode (the first)"),
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option(
            "--save", metavar="FILE", parser=path, help="write a recording (.rrd) instead of opening a window"
        ),
    ] = None,
    sheet: Annotated[
        Path | None,
        typer.Option(
            "--sheet", metavar="[FILE]", parser=Path, help="write a contact sheet instead of opening Rerun (DIR.png)"
        ),
    ] = None,
) -> int:
    """Show episodes, or write a recording or a contact sheet of them."""
    from nimbus.datagen.datasets.quality.view import open_view

    view = open_view(folder)
    if sheet is not None:
        sheet = sheet if sheet.name else Path(f"{folder.resolve().name}.png")
        from nimbus.datagen.store.publish import disk
        from nimbus.runner.media.preview import write_view_sheet

        with disk(sheet):
            if not write_view_sheet(view, sheet):
                instead = "a run without cameras or with --images none stores no images; otherwise, run 'nimbus qa'"
                raise InputError("the dataset has no images", where=str(folder), instead=instead)
        write_out(f"contact sheet: {sheet}\n")
        return 0
    from nimbus.runner.media.rerun import show

    shown = show(folder, view, episodes or [0], save=save)
    where = f"recording: {save}" if save else "shown in Rerun"
    write_out(f"{where}: episodes {', '.join(map(str, shown))}\n")
    return 0
