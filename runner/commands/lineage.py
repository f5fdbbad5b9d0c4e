"""``nimbus lineage DIR ID``: prints the ancestors of an episode."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nimbus.runner.commands.parser import path
from nimbus.runner.system.output import write_out


def command(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", parser=path, help="folder of an improvement, or of a dataset")
    ],
    episode: Annotated[str, typer.Argument(metavar="ID", parser=str, help="id of the episode: its file's name")],
) -> int:
    """Print the ancestors of an episode."""
    from nimbus.runner.improvement.lineage import lineage

    write_out("".join(f"{line}\n" for line in lineage(folder, episode)))
    return 0
