"""``nimbus verify DIR``: checks all files of a dataset."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nimbus.runner.commands.options import AsJson, DatasetFolder, Skills, StoredTask, whole
from nimbus.runner.system.output import write_json, write_out

if TYPE_CHECKING:
    from nimbus.datagen.store.verify import Verification
    from nimbus.runner.checks.recompute import Recomputation

REMEDY = "to make an episode again: delete its file and repeat the 'nimbus run' that made it"


def command(
    folder: DatasetFolder,
    *,
    as_json: AsJson = False,
    count: Annotated[
        int,
        typer.Option(
            "--recompute",
            metavar="N",
            parser=whole(0, 10**7),
            help="number of layouts and plans to recompute from their seeds and compare",
        ),
    ] = 2,
    skills: Skills = None,
    task: StoredTask = None,
    pipeline: Annotated[
        Path | None,
        typer.Option(
            "--pipeline",
            metavar="FILE",
            help="pipeline file that you trust, for recomputing a task that names a file",
        ),
    ] = None,
) -> int:
    """Print a summary and every problem; return 1 if there is a problem."""
    from nimbus.datagen.datasets.export.publication import NAME as EXPORT_NAME
    from nimbus.datagen.store.info import INFO_NAME
    from nimbus.datagen.store.verify import verify
    from nimbus.datagen.tasks.own_tasks import name_task
    from nimbus.runner.checks.recompute import recompute

    if not (folder / INFO_NAME).exists() and (folder / "manifest.parquet").is_file():
        return _shards(folder, as_json=as_json)
    if not (folder / INFO_NAME).exists() and (folder / EXPORT_NAME).is_file():
        return _export(folder, as_json=as_json)
    if task:
        name_task(task, skill_folders=skills or [])
    found = verify(folder)
    damaged = {problem.partition(": ")[0] for problem in found.problems}
    with _saying(count):
        again = recompute(folder, count, skills=skills or (), pipeline=pipeline, without=damaged)
    if as_json:
        summary = {key: value for key, value in asdict(found).items() if key != "info"}
        summary |= {"recomputed": asdict(again)}
        write_json(summary | {"task": found.info.task, "seed": found.info.seed})
    else:
        _print(found, again)
    return 1 if found.problems or again.problems else 0


def _shards(folder: Path, *, as_json: bool) -> int:
    from nimbus.datagen.datasets.training.sharded import ShardManifest, check_shards

    manifest = ShardManifest(folder)
    return _tell("shards", len(manifest), list(check_shards(manifest)), as_json=as_json)


def _export(folder: Path, *, as_json: bool) -> int:
    from nimbus.datagen.datasets.export.publication import read_manifest
    from nimbus.datagen.datasets.quality.lerobot import check_sums

    manifest = read_manifest(folder)
    problems = [f"{finding.where}: {finding.what}" for finding in check_sums(folder)]
    return _tell(manifest.format, len(manifest.episodes), problems, as_json=as_json)


def _tell(kind: str, episode_count: int, problems: list[str], *, as_json: bool) -> int:
    """Print the result for a folder that is not a dataset of a run."""
    if as_json:
        write_json({"episode_count": episode_count, "problems": problems})
    else:
        write_out("".join(f"{problem}\n" for problem in problems))
        verdict = "all is well" if not problems else f"{len(problems)} problem{'s' * (len(problems) > 1)}"
        write_out(f"{kind}, {episode_count} episodes: {verdict}\n")
    return 1 if problems else 0


def _saying(count: int) -> AbstractContextManager[object]:
    """Show a spinner in a terminal during long work."""
    from nimbus.runner.system.console import TerminalConsole

    console = TerminalConsole(stderr=True)
    return console.status(f"recomputing {count} plans") if console.is_terminal and count else nullcontext()


def _print(found: Verification, again: Recomputation) -> None:
    from rich.table import Table

    from nimbus.runner.system.console import TerminalConsole, trim_lines

    table = Table(show_header=False, box=None)
    table.add_row("dataset", f"{found.info.task}, seed {found.info.seed}")
    table.add_row("episodes", f"{found.episode_count}")
    table.add_row("steps", f"{found.step_count}")
    table.add_row("bytes", f"{found.byte_count:,}")
    table.add_row("failed attempts", f"{found.failed_count}")
    if found.faults:
        table.add_row("faults", ", ".join(f"{kind} {count}" for kind, count in found.faults.items()))
    if found.quarantined:
        table.add_row("quarantined", ", ".join(found.quarantined))
    table.add_row("checked", "ledger against files, shapes, types, finite numbers, growing time, content hashes")
    if again.equal or again.problems:
        table.add_row("recomputed", f"{len(again.equal)} layouts and plans, equal to the last bit")
    console = TerminalConsole()
    with trim_lines(console):
        console.print(table)
    for note in again.notes:
        console.print(note, style="yellow", soft_wrap=True)
    problems = (*found.problems, *again.problems)
    for problem in problems:
        console.print(problem, style="red", soft_wrap=True)
    if any(map(_is_of_an_episode, found.problems)):
        console.print(REMEDY, soft_wrap=True)
    verdict = "all is well" if not problems else f"{len(problems)} problem{'s' * (len(problems) > 1)}"
    console.print(verdict, style="bold red" if problems else "bold green")


def _is_of_an_episode(problem: str) -> bool:
    return problem.startswith("episodes/") and ": not in the ledger" not in problem
