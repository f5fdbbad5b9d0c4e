"""``nimbus view DATASET``: shows episodes of Nimbus or LeRobot datasets in Rerun, or on a contact sheet."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.start_folder import start_folder
from nimbus.runner.commands.options import DatasetFolder, whole
from nimbus.runner.commands.parser import path
from nimbus.runner.system.output import shown_path, write_out

if TYPE_CHECKING:
    from nimbus.datagen.datasets.quality.view import View


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
    failures: Annotated[
        bool, typer.Option("--failures", help="show failed attempts that a run with --keep-failures kept")
    ] = False,
) -> int:
    """Show episodes or kept failures, or write a recording or a contact sheet of them; show a recording again."""
    if folder.suffix == ".rrd" and folder.is_file():
        if save or sheet is not None or failures or episodes:
            raise InputError(
                "a recording is only shown", where=str(folder), instead="give the dataset for other output"
            )
        from nimbus.runner.media.rerun_window import start_window

        start_window(folder)
        write_out("shown in Rerun\n")
        return 0
    view = _open(folder, failures=failures)
    if sheet is not None:
        sheet = sheet if sheet.name else start_folder() / f"{folder.resolve().name}.png"
        from nimbus.datagen.store.publish import disk
        from nimbus.runner.media.preview import write_view_sheet

        with disk(sheet):
            if not write_view_sheet(view, sheet):
                instead = "a run without cameras or with --images none stores no images; otherwise, run 'nimbus qa'"
                raise InputError("the dataset has no images", where=str(folder), instead=instead)
        write_out(f"contact sheet: {shown_path(sheet)}\n")
        return 0
    from nimbus.runner.media.rerun import show

    shown = show(folder, view, episodes or [0], save=save)
    where = f"recording: {shown_path(save)}" if save else "shown in Rerun"
    write_out(f"{where}: {'failures' if failures else 'episodes'} {', '.join(map(str, shown))}\n")
    return 0


def _open(folder: Path, *, failures: bool) -> View:
    """Open a dataset in which there is something to show.

    Raises:
        InputError: There is no dataset, or it has no episode, or no kept failure.
    """
    from nimbus.datagen.datasets.quality.native import NativeView
    from nimbus.datagen.datasets.quality.view import open_view

    view = open_view(folder)
    if not isinstance(view, NativeView):
        if failures:
            instead = "omit --failures: the failures of an export follow its episodes"
            raise InputError("--failures is for datasets of Nimbus", where=str(folder), instead=instead)
        return view
    keep = "run the task again with 'nimbus run --keep-failures' in a new folder; report.html lists the reasons"
    if failures:
        if not view.failure_count:
            raise InputError("the dataset has no kept failures", where=str(folder), instead=keep)
        return NativeView(folder, failures=True)
    if not view.episode_count:
        count, what = view.failure_count, "the dataset has no successful episode"
        if count:
            what += f", but {count} kept failure{'s' if count > 1 else ''}"
        raise InputError(what, where=str(folder), instead="add --failures to show them" if count else keep)
    return view
