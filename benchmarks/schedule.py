"""Simulation of dynamic scheduling: the production queue and scheduler with a virtual clock.

Run it as ``python benchmarks/schedule.py [--json FILE]``. Four workers make 400 plans of one second each. Four fifths
of the plans are rendered, each in 2.5 seconds. Spread evenly, this takes 300 seconds. ``bound`` is the ideal duration
with unlimited slots, including the cost of switches; ``static`` is the duration if workers keep their roles. Durations
are means over the seeds.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "exts/nimbus.datagen"), str(ROOT)]

from tests.support.simulated_cell import UNBOUNDED, Cell, simulate  # noqa: E402
from tests.support.simulated_instances import InstanceRun, best_fixed, end_of  # noqa: E402

COSTS = ((0.0, False), (5.0, False), (60.0, False), (5.0, True), (60.0, True))


def rows(variation: float, seeds: int) -> list[dict[str, Any]]:
    """Return a row for each cost of a switch, number of slots and initial split."""
    found = []
    for cost, once in COSTS:
        for slots in (4, 16, UNBOUNDED):
            for planners in (1, 2, 3):
                cell = Cell(
                    planners=planners,
                    renderers=4 - planners,
                    slots=slots,
                    switch_seconds=cost,
                    switch_once=once,
                    variation=variation,
                )
                cells = [replace(cell, seed=seed) for seed in range(seeds)]
                outcomes = [simulate(each) for each in cells]
                found.append(
                    {
                        "variation": variation,
                        "switch_seconds": cost,
                        "switch_once": once,
                        "slots": slots if slots < UNBOUNDED else None,
                        "planners": planners,
                        "ideal": statistics.mean(each.ideal for each in cells),
                        "bound": statistics.mean(each.bound for each in cells),
                        "end": statistics.mean(outcome.end for outcome in outcomes),
                        "static": statistics.mean(simulate(replace(each, fixed=True)).end for each in cells),
                        "switches": statistics.mean(outcome.switches for outcome in outcomes),
                    }
                )
    return found


def instance_rows(hours: float) -> list[dict[str, Any]]:
    """Return rows for runs whose renderers are Isaac Sim instances, on 1, 2 and 8 GPUs; an instance takes 30 to 300
    seconds to start.
    """
    found = []
    for gpus, cores in ((1, 8), (2, 16), (8, 32)):
        for start in (30.0, 100.0, 300.0):
            for plan, render in ((4.0, 2.0), (4.0, 8.0), (10.0, 2.0), (2.0, 10.0)):
                run = InstanceRun(
                    cores=cores,
                    gpus=gpus,
                    episodes=int(hours * 3600 * cores / (plan + render)),
                    plan_seconds=plan,
                    render_seconds=render,
                    start_seconds=start,
                )
                best, split = best_fixed(run)
                row = {"gpus": gpus, "cores": cores, "start": start, "plan": plan, "render": render}
                row |= {"end": end_of(run), "default": end_of(run, run.default), "best": best, "best split": split}
                found.append(row)
                sys.stdout.write(
                    f"{gpus} GPUs, {cores} cores, start {start:3.0f} s, plan {plan:2.0f} s, render {render:2.0f} s: "
                    f"end {row['end']:5.0f}, default split {row['default']:5.0f}, best {best:5.0f} {split}, "
                    f"ratio {row['end'] / best:.3f}\n"
                )
    return found


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="write the figures to this JSON file")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument(
        "--instances", type=float, metavar="HOURS", help="simulate runs with renderer instances of this duration"
    )
    arguments = parser.parse_args()
    if arguments.instances:
        found = instance_rows(arguments.instances)
        if arguments.json:
            arguments.json.write_text(json.dumps(found, indent=1))
        return
    found = rows(0.0, 1) + rows(0.7, arguments.seeds)
    out = sys.stdout
    out.write("CV   switch    slots  planners  static  bound    end  end/ideal  switches\n")
    for row in found:
        cost = f"{row['switch_seconds']:g}{' once' if row['switch_once'] else ''}"
        out.write(
            f"{row['variation']:<4} {cost:<9} {row['slots'] or 'any':<6} {row['planners']:<8} {row['static']:7.0f} "
            f"{row['bound']:6.0f} {row['end']:6.0f} {row['end'] / row['ideal']:10.3f} {row['switches']:9.1f}\n"
        )
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
