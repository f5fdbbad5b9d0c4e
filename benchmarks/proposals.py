"""Proposed tasks as drawn by the grammar: fraction without findings, fraction with a successful first attempt, and
cost.

    python benchmarks/proposals.py --seed 100 --count 40 --out rows.jsonl [--family pack] [--layouts 1]

Nothing is repaired. Each graph is a line of ``--out``; graphs that the file already contains are not tried again.
The summary counts first attempts by number of steps and by relation, and lists each failure.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "exts/nimbus.datagen"))
os.environ |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}

from nimbus.datagen.propose.catalogue import Catalogue  # noqa: E402
from nimbus.datagen.propose.grammar import FAMILIES, Vocabulary  # noqa: E402
from nimbus.datagen.propose.grammar_source import GrammarSource  # noqa: E402
from nimbus.datagen.propose.proposals import ProposalRequest, Trial, Workshop  # noqa: E402
from nimbus.datagen.propose.wording.instructions import InstructionWriter  # noqa: E402
from nimbus.datagen.robots.robot import load_robot  # noqa: E402
from nimbus.datagen.tasks.plugins import discover, discover_components  # noqa: E402
from nimbus.runner.system.threads import prepare_libraries  # noqa: E402

LONG = 4
"""Smallest number of steps of a long task."""


def main() -> int:
    """Try graphs, and print a summary of all graphs in the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=40, help="number of graphs")
    parser.add_argument("--out", type=Path, required=True, help="JSON lines file, one line per graph")
    parser.add_argument("--family", action="append", choices=sorted(FAMILIES), help="family of goals; may be repeated")
    parser.add_argument("--layouts", type=int, default=1, help="largest number of attempts per graph")
    parser.add_argument(
        "--index", type=int, action="append", help="index of a graph to try; may be repeated (default: all)"
    )
    args = parser.parse_args()
    prepare_libraries()
    discover_components()
    discover()
    rows = [json.loads(line) for line in args.out.read_text().splitlines()] if args.out.exists() else []
    catalogue = Catalogue(load_robot("panda"))
    request = ProposalRequest(count=args.count, seed=args.seed, layouts=args.layouts)
    writer = InstructionWriter.check((), seed=args.seed)
    workshop = Workshop.open(request, catalogue, lambda graph: writer.write(graph, catalogue, ()))
    source = GrammarSource(
        Vocabulary(catalogue),
        seed=args.seed,
        robot="panda",
        scene="table",
        families=args.family or (),
        has_room=workshop.has_room,
    )
    there = {row["index"] for row in rows}
    for index in args.index or range(args.count):
        if index in there:
            continue
        begin = time.process_time()
        graph = source.draw(index)
        if graph is None:
            continue
        drawing = time.process_time() - begin
        trial = workshop.try_graph(graph, index=index, attempt=0)
        rows.append(_row(index, trial, drawing))
        with args.out.open("a") as file:
            file.write(json.dumps(rows[-1]) + "\n")
        sys.stderr.write(f"{json.dumps(summary_row(rows[-1]))}\n")
    sys.stdout.write("\n".join(summary(rows)) + "\n")
    return 0


def _row(index: int, trial: Trial, drawing: float) -> dict[str, Any]:
    return {
        "index": index,
        "stage": trial.stage,
        "steps": trial.steps,
        "skeleton": trial.graph.skeleton,
        "attempts": [one.success for one in trial.attempts],
        "messages": trial.messages(),
        "seconds": round(trial.seconds, 1),
        "drawing": round(drawing, 2),
        "text": trial.text,
    }


def summary_row(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row without the task file."""
    return {key: value for key, value in row.items() if key != "text"}


def summary(rows: Sequence[dict[str, Any]]) -> list[str]:
    """List the figures of all rows."""
    clean = [row for row in rows if row["stage"] in ("physics", "accepted")]
    tried = [row for row in clean if row["attempts"]]
    lines = [f"clean by the doctor  {len(clean)} of {len(rows)}", f"first attempt  {_share(tried)}"]
    lines.append(f"with {LONG} steps or more  {_share([row for row in tried if row['steps'] >= LONG])}")
    for relation in sorted({relation for row in tried for relation in row["skeleton"]}):
        lines.append(f"  {relation}  {_share([row for row in tried if relation in row['skeleton']])}")
    if rows:
        seconds = [row["seconds"] + row["drawing"] for row in rows]
        lines.append(f"CPU [s] a graph  mean {statistics.mean(seconds):.1f}, median {statistics.median(seconds):.1f}")
    return lines


def _share(rows: Sequence[dict[str, Any]]) -> str:
    return f"{sum(row['attempts'][0] for row in rows)} of {len(rows)}"


if __name__ == "__main__":
    sys.exit(main())
