"""``nimbus assets``: imports third-party meshes into a prepared library, and describes its kinds."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nimbus.datagen.errors import InputError, single_line
from nimbus.runner.commands.options import Budget, ModelName, Replay, one_of, open_model, whole
from nimbus.runner.commands.parser import new_path, path
from nimbus.runner.system.output import shown_path, write_out

if TYPE_CHECKING:
    from nimbus.datagen.assets.annotate import Annotation
    from nimbus.datagen.language_model.client import LanguageModel
    from nimbus.datagen.objects.prepared.index import AssetEntry

_ACTIONS = ("import", "annotate")


def command(
    action: Annotated[
        str, typer.Argument(metavar="import|annotate", parser=one_of(_ACTIONS), help="import or annotate")
    ],
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH", parser=path, help="mesh files, folders, archives, Python wheels; for annotate: the library"
        ),
    ],
    *,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="LIB", parser=new_path, help="import: folder of the library")
    ] = None,
    jobs: Annotated[
        int,
        typer.Option(
            "--jobs",
            metavar="N",
            parser=whole(1, 256),
            help="number of assets prepared at once; each takes 0.5 to 2 GB of memory",
        ),
    ] = max(1, (os.cpu_count() or 1) // 2),
    only: Annotated[
        list[str] | None,
        typer.Option(
            "--only",
            metavar="GLOB",
            parser=str,
            help="pattern of names or paths of assets, such as '*mug*'; may be repeated (all)",
        ),
    ] = None,
    license: Annotated[
        str,
        typer.Option(
            "--license", metavar="ID", parser=str, help="license of all assets, in place of the ones in their files"
        ),
    ] = "",
    model: Annotated[
        str, typer.Option("--model", metavar="URL", parser=str, help="annotate: address of an OpenAI-compatible server")
    ] = "",
    model_name: ModelName = "",
    budget: Budget = 1_000_000,
    replay: Replay = None,
) -> int:
    """Import assets, or write captions and synonyms for a library; print a line for each asset."""
    if action == "annotate":
        if len(paths) != 1 or out is not None:
            what = "takes one library, and no --out"
            raise InputError(what, where="nimbus assets annotate", instead="write 'nimbus assets annotate LIB'")
        return _annotate(paths[0], open_model(model, model_name, budget, replay, paths[0]) if model or replay else None)
    from nimbus.datagen.assets.import_library import import_assets

    if out is None:
        raise InputError("no library is given", where="--out", instead="write --out LIB")
    if not paths:
        raise InputError("no source", where="PATH", instead="give a folder, an archive or a mesh file")
    made = import_assets(paths, out, jobs=jobs, only=only or (), license=license, report=_report)
    refused = [entry for entry in made.entries if entry.refused]
    restricted = sorted({entry.license for entry in made.entries if entry.is_restricted and not entry.refused})
    accepted = len(made.entries) - len(refused)
    write_out(f"{accepted} accepted, {len(refused)} refused, {made.prepared} prepared now: {shown_path(made.out)}\n")
    if restricted:
        write_out(f"license {', '.join(restricted)}: exports omit these assets unless --restricted-assets is given\n")
    return 0 if accepted else 1


def _annotate(folder: Path, model: LanguageModel | None) -> int:
    """Annotate a library; return 1 if the token budget is too small."""
    from nimbus.datagen.assets.annotate import annotate_library

    def report(words: Annotation, number: int, count: int) -> None:
        synonyms = f" ({', '.join(words.synonyms)})" if words.synonyms else ""
        dropped = f"; dropped: {'; '.join(words.dropped)}" if words.dropped else ""
        write_out(single_line(f"{number}/{count} {words.kind}: {words.caption}{synonyms}{dropped}") + "\n")

    made, stopped = annotate_library(folder, model, report=report)
    tokens = f", {model.spent} tokens" if model else ""
    write_out(f"{len(made)} annotated{tokens}{f'; {stopped}' if stopped else ''}: {shown_path(folder)}\n")
    return 1 if stopped else 0


def _report(entry: AssetEntry, seconds: float, number: int, count: int) -> None:
    x, y, z = (f"{100 * side:.3g}" for side in entry.size)
    content = (
        f"refused: {entry.refused}"
        if entry.refused
        else f"{entry.category}, {x} x {y} x {z} cm, {1000 * entry.mass:.3g} g"
    )
    write_out(single_line(f"{number}/{count} {entry.kind}: {content} ({seconds:.1f} s)") + "\n")
