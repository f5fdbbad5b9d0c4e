"""``nimbus verify DIR``: read a dataset again and check all of it."""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict

from rich.console import Console
from rich.table import Table

from nimbus.datagen.store.json_text import to_json
from nimbus.datagen.store.verify import Verification, verify
from nimbus.runner.tidy import tidy

REMEDY = "to make an episode again: delete its file and give the 'nimbus run' that made it once more"


def command(args: argparse.Namespace) -> int:
    """Print what was read and every problem; 1 when there is one."""
    found = verify(args.folder)
    if args.json:
        summary = {key: value for key, value in asdict(found).items() if key != "info"}
        sys.stdout.write(to_json(summary | {"task": found.info.task, "seed": found.info.seed}, indent=2) + "\n")
    else:
        _print(found)
    return 1 if found.problems else 0


def _print(found: Verification) -> None:
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
    console = Console()
    with tidy(console):
        console.print(table)
    for problem in found.problems:
        console.print(problem, style="red", soft_wrap=True, markup=False, highlight=False)
    if any(map(_is_of_an_episode, found.problems)):
        console.print(REMEDY, soft_wrap=True, markup=False, highlight=False)
    verdict = "all is well" if not found.problems else f"{len(found.problems)} problems"
    console.print(verdict, style="bold red" if found.problems else "bold green")


def _is_of_an_episode(problem: str) -> bool:
    return problem.startswith("episodes/") and ": not in the ledger" not in problem
