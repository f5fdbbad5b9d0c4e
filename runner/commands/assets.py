"""``nimbus assets import PATH… --out LIB``: a prepared library of meshes that others made."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nimbus.datagen.errors import InputError, single_line
from nimbus.runner.commands.options import one_of, whole
from nimbus.runner.system.output import write_out

if TYPE_CHECKING:
    from nimbus.datagen.objects.prepared.index import AssetEntry

_ACTIONS = ("import",)


def command(
    action: Annotated[str, typer.Argument(metavar="import", parser=one_of(_ACTIONS), help="what to do")],
    paths: Annotated[
        list[Path],
        typer.Argument(metavar="PATH", parser=Path, help="mesh files, folders, zip or tar files, Python wheels"),
    ],
    *,
    out: Annotated[Path, typer.Option("--out", metavar="LIB", parser=Path, help="folder of the library")],
    jobs: Annotated[
        int, typer.Option("--jobs", metavar="N", parser=whole(1, 256), help="assets at once; 0.5 to 2 GB each")
    ] = max(1, (os.cpu_count() or 1) // 2),
    only: Annotated[
        str, typer.Option("--only", metavar="GLOB", parser=str, help="names or paths of assets, as in '*mug*'")
    ] = "",
    license: Annotated[
        str, typer.Option("--license", metavar="ID", parser=str, help="of what is imported, where its files say none")
    ] = "",
) -> int:
    """Import, and print a line for each asset."""
    from nimbus.datagen.assets.import_library import import_assets

    del action
    if not paths:
        raise InputError("no source", where="PATH", instead="give a folder, an archive or a mesh file")
    made = import_assets(paths, out, jobs=jobs, only=only, license=license, report=_report)
    refused = [entry for entry in made.entries if entry.refused]
    restricted = sorted({entry.license for entry in made.entries if entry.is_restricted and not entry.refused})
    accepted = len(made.entries) - len(refused)
    write_out(f"{accepted} accepted, {len(refused)} refused, {made.prepared} prepared now: {made.out}\n")
    if restricted:
        write_out(f"licence {', '.join(restricted)}: exports leave these out unless --restricted-assets is given\n")
    return 0 if accepted else 1


def _report(entry: AssetEntry, seconds: float, number: int, count: int) -> None:
    x, y, z = (f"{100 * side:.3g}" for side in entry.size)
    content = (
        f"refused: {entry.refused}"
        if entry.refused
        else f"{entry.category}, {x} x {y} x {z} cm, {1000 * entry.mass:.3g} g"
    )
    write_out(single_line(f"{number}/{count} {entry.kind}: {content} ({seconds:.1f} s)") + "\n")
