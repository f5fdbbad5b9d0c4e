"""``nimbus hash DIR``: prints hashes over a dataset's episode ids and data, without times, hosts and versions."""

from __future__ import annotations

from typing import Annotated

import typer

from nimbus.runner.commands.options import AsJson, DatasetFolder, whole
from nimbus.runner.system.output import write_json, write_out


def command(
    folder: DatasetFolder,
    *,
    as_json: AsJson = False,
    fields: Annotated[
        int | None,
        typer.Option(
            "--fields",
            metavar="N",
            parser=whole(1, 10**6),
            help="hash the fields of schema N only",
        ),
    ] = None,
) -> int:
    """Print one line per level: hash, level, compared content."""
    from nimbus.datagen.store.episode_file.content_check import LEVELS
    from nimbus.datagen.store.verify import dataset_hashes

    hashes = dataset_hashes(folder, fields=fields)
    if as_json:
        write_json(hashes)
    else:
        for level, digest in hashes.items():
            write_out(f"{digest}  {level}: {LEVELS[level]}\n")
    return 0
