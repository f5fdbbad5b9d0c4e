"""``nimbus card DATASET``: writes a README.md with figures and images; for LeRobot, with YAML front matter."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nimbus.datagen.errors import InputError
from nimbus.runner.commands.options import DatasetFolder
from nimbus.runner.commands.parser import new_path
from nimbus.runner.system.output import shown_path, write_out

_PICTURES = 2_000
"""Largest number of images that the QA of a card examines; ``nimbus qa`` itself examines more."""


def command(
    folder: DatasetFolder,
    *,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", parser=new_path, help="file of the card (README.md of the dataset)"),
    ] = None,
    license: Annotated[
        str, typer.Option("--license", metavar="ID", parser=str, help="license of the dataset")
    ] = "apache-2.0",
) -> int:
    """Write the card and its picture."""
    from nimbus.datagen.datasets.export.publication import CARD, CARD_PICTURE, is_own_card
    from nimbus.datagen.datasets.quality.checks import examine
    from nimbus.datagen.datasets.quality.thresholds import Thresholds
    from nimbus.datagen.datasets.quality.view import open_view
    from nimbus.datagen.store.publish import disk, replace_text
    from nimbus.runner.media.preview import write_view_sheet
    from nimbus.runner.report.card import render_card

    view = open_view(folder)
    path = out or folder / CARD
    if path.exists() and not is_own_card(path):
        raise InputError(
            "refusing to overwrite a card not written by Nimbus", where=str(path), instead="give --out FILE"
        )
    picture = path.with_name(CARD_PICTURE)
    if picture.exists() and not is_own_card(path):
        raise InputError(
            "refusing to overwrite an image not written by Nimbus",
            where=str(picture),
            instead="give --out in another folder",
        )
    found = examine(view, Thresholds(pictures=_PICTURES))
    with disk(path):
        has_picture = write_view_sheet(view, picture)
    replace_text(path, render_card(folder, view, found, license=license, has_picture=has_picture))
    write_out(f"card: {shown_path(path)}\n")
    return 0
