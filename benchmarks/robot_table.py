"""Table of robots in the documentation: first attempts of every robot at shipped tasks, with an image of each.

Run it as ``python benchmarks/robot_table.py [ROBOT:TASK ...] [--episodes N]``; without a pair, it measures all pairs
that were measured before. A pair is a robot with a task of another robot, as in ``nimbus run --task TASK --robot
ROBOT``; the attempts of a robot at its own tasks are those of ``benchmarks/task_table.py``. Attempts in the file of
records are kept; ``--anew`` deletes those of the named pairs, and ``--episodes 0`` only writes the page
docs/robot-table.md. Only the outcome is stored: an attempt is repeatable from seed 0 and the index of the layout.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "exts/nimbus.datagen")]
os.environ |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}

from benchmarks import task_table  # noqa: E402
from benchmarks.task_table import Record, attempts, draw, record, tasks_with_steps  # noqa: E402
from nimbus.datagen.errors import InputError  # noqa: E402
from nimbus.datagen.files.scene_files import scene_names  # noqa: E402
from nimbus.datagen.tasks.task import load_task  # noqa: E402
from nimbus.runner.system.threads import prepare_libraries  # noqa: E402

Records = dict[str, dict[str, dict[str, Record]]]
"""Records by robot, task and index of the layout."""

RECORDS = ROOT / "benchmarks/robot_table.json"
PAGE = ROOT / "docs/robot-table.md"
PICTURES = ROOT / "docs/images/robots"
LEAST, COUNTED, WANTED = 0.8, 20, 2
"""Fraction of successful first attempts, number of layouts, and number of tasks that every robot should reach."""
_REFUSED = "refused"
"""Phase that is recorded if Nimbus refuses a task for a robot before planning."""
_HEAD = """# Robots and the tasks that they do

This page lists the robots that ship with Nimbus, and for each the shipped tasks in which it was measured. Use it to
select a robot for a task. A task of another robot runs by `nimbus run --task TASK --robot ROBOT`; the column *robot of
the task* names it. [Robots](robots.md) describes the robot files.

Each rate counts one attempt at each of the first layouts of seed 0, planned and executed in physics, and judged by the
task's own conditions and by plausible contact. A run tries a layout up to three times and therefore stores a larger
fraction. `benchmarks/robot_table.py` writes this page from its [records](../benchmarks/robot_table.json) and those of
the [tasks](task-table.md). Pairs that no row names were not measured.

"""


def measured(records: Records, own: dict[str, dict[str, Record]]) -> Records:
    """Return the attempts of all robots: at their own tasks, then at tasks with ``--robot``."""
    found: dict[str, dict[str, dict[str, Record]]] = {name: {} for name in sorted(scene_names("robots"))}
    for name in tasks_with_steps():
        if own.get(name):
            found[load_task(name).robot_name][name] = own[name]
    for robot, tasks in records.items():
        found[robot] |= tasks
    return found


def measure(robot: str, name: str, episodes: int, records: Records, *, pictures: bool) -> None:
    """Add the missing attempts of a pair, and an image of its first success if there is none."""
    known = records.setdefault(robot, {}).setdefault(name, {})
    missing = [index for index in range(episodes) if str(index) not in known]
    if any(_is_refusal(found) for found in known.values()) or not missing:
        return
    picture = PICTURES / f"{robot}-{name}.jpg"
    try:
        for item, seconds in attempts(load_task(name, robot=robot), missing, robot=robot):
            index = item.layouts[0].key.index
            found = known.setdefault(str(index), record(item, seconds))
            _keep(robot, name, known)
            sys.stderr.write(f"{robot} {name} {index}: {found['failure'] or 'ok'}\n")
            if pictures and found["success"] and not picture.exists():
                draw(item, picture)
    except InputError as error:
        known["0"] = {"success": False, "failure": f"{_REFUSED}: {error.what}"}
        _keep(robot, name, known)
        sys.stderr.write(f"{robot} {name}: {error}\n")


def _keep(robot: str, name: str, known: dict[str, Record]) -> None:
    saved = _saved()  # another process may have measured other pairs meanwhile
    saved.setdefault(robot, {})[name] = known
    write(saved)


def _is_refusal(found: Record) -> bool:
    return str(found["failure"]).startswith(_REFUSED + ":")


def reached(tasks: dict[str, dict[str, Record]]) -> list[str]:
    """Return the tasks of a robot with enough layouts and enough first attempts that succeed."""
    return [name for name, tried in tasks.items() if len(tried) >= COUNTED and _share(tried) >= LEAST]


def _share(tried: dict[str, Record]) -> float:
    return sum(bool(one["success"]) for one in tried.values()) / len(tried)


def _row(robot: str, name: str, tried: dict[str, Record]) -> str:
    own = load_task(name).robot_name
    pictures = {f"images/robots/{robot}-{name}.jpg", f"images/tasks/{name}.jpg" if own == robot else ""}
    shown = next((path for path in sorted(pictures) if path and (ROOT / "docs" / path).exists()), "")
    reasons = Counter(_reason(str(one["failure"])) for one in tried.values() if one["failure"])
    why = ", ".join(f"{count} {reason}" for reason, count in reasons.most_common(3))
    cells = (
        f"![{robot} in {name}]({shown})" if shown else "",
        f"[{name}](../scenes/tasks/{name}.yaml)",
        "its own" if own == robot else own,
        f"{_share(tried):.0%} of {len(tried)}",
        why,
    )
    return "| " + " | ".join(cells) + " |\n"


def _reason(failure: str) -> str:
    phase, _, rest = failure.partition(": ")
    return f"{phase} {rest.split()[0]}"


def page(found: Records) -> str:
    """Write the whole page: a line for each robot, then its tasks."""
    text = (
        _HEAD
        + f"| robot | tasks with at least {LEAST:.0%} of {COUNTED} first attempts | other tasks |\n|---|---|---|\n"
    )
    refusals: list[str] = []
    for robot, tasks in found.items():
        good = reached(tasks)
        others = [
            name for name, tried in tasks.items() if name not in good and not any(map(_is_refusal, tried.values()))
        ]
        text += f"| [{robot}](#{robot}) | {', '.join(good)} | {', '.join(others)} |\n"
    for robot, tasks in found.items():
        rows = ""
        for name, tried in tasks.items():
            if refusal := next(filter(_is_refusal, tried.values()), None):
                refusals.append(f"| {robot} | {name} | {str(refusal['failure']).partition(': ')[2]} |\n")
            else:
                rows += _row(robot, name, tried)
        text += (
            f"\n## {robot}\n\n| | task | robot of the task | succeed | reasons of failures |\n|---|---|---|---|---|\n"
            + rows
        )
    if refusals:
        text += "\n## Refused before a run\n\n| robot | task | reason |\n|---|---|---|\n" + "".join(refusals)
    return text


def _saved() -> Records:
    return json.loads(RECORDS.read_text()) if RECORDS.exists() else {}


def write(records: Records) -> None:
    """Write the records, one line per attempt."""
    robots = []
    for robot in sorted(records):
        tasks = []
        for name in sorted(records[robot]):
            tried = records[robot][name]
            rows = ",\n".join(f'"{index}": {json.dumps(tried[index])}' for index in sorted(tried, key=int))
            tasks.append(f'"{name}": {{\n{rows}\n}}')
        robots.append(f'"{robot}": {{\n' + ",\n".join(tasks) + "\n}")
    RECORDS.write_text("{\n" + ",\n".join(robots) + "\n}\n")


def main() -> None:
    """Make the missing measurements, then write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pairs", nargs="*", metavar="ROBOT:TASK")
    parser.add_argument("--episodes", type=int, default=COUNTED)
    parser.add_argument("--anew", action="store_true", help="delete the records of these pairs first")
    parser.add_argument("--no-pictures", dest="pictures", action="store_false")
    args = parser.parse_args()
    records = _saved()
    pairs = [tuple(pair.split(":")) for pair in args.pairs]
    pairs = pairs or [(robot, name) for robot, tasks in records.items() for name in tasks]
    if args.episodes:
        prepare_libraries()
    for robot, name in pairs:
        if args.anew:
            records.get(robot, {}).pop(name, None)
            (PICTURES / f"{robot}-{name}.jpg").unlink(missing_ok=True)
        measure(robot, name, args.episodes, records, pictures=args.pictures)
    records = _saved()
    own = json.loads(task_table.RECORDS.read_text())
    PAGE.write_text(page(measured(records, own)))


if __name__ == "__main__":
    main()
