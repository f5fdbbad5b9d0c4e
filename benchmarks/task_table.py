"""Table of tasks in the documentation: attempts in physics, with an image of each task.

Run it as ``python benchmarks/task_table.py [TASK ...] [--episodes N]``; without a task, it measures all shipped tasks.
Attempts in the file of records are kept, so a long measurement can be made in parts. ``--anew`` deletes those of the
named tasks, a deleted image is made again, and ``--episodes 0`` only writes the pages: docs/task-table.md, and the
table of skills in docs/skills.md. Times are CPU seconds of one core. Nothing is rendered or stored: an attempt is
identified by its task, seed 0 and the index of its outcome in ``benchmarks/task_table.json``. ``nimbus run --task TASK
--seed 0`` makes the same layouts and first attempts, with images, in a folder.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "exts/nimbus.datagen")]
os.environ |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}

import numpy as np  # noqa: E402
from PIL import Image  # noqa: E402

from benchmarks.task_policies import RECORDS as POLICIES  # noqa: E402
from benchmarks.task_policies import section  # noqa: E402
from nimbus.datagen.execute.planner import SkillPlanner  # noqa: E402
from nimbus.datagen.execute.recorder import largest_creep  # noqa: E402
from nimbus.datagen.load.scene_loader import UsdSceneLoader, assets_of  # noqa: E402
from nimbus.datagen.pipeline import load_pipeline  # noqa: E402
from nimbus.datagen.randomize.tabletop import TabletopRandomizer  # noqa: E402
from nimbus.datagen.stages import Chain, Planned, Request  # noqa: E402
from nimbus.datagen.tasks.scene_assets import SceneAssets  # noqa: E402
from nimbus.datagen.tasks.steps import walk  # noqa: E402
from nimbus.datagen.tasks.task import Task, load_any_task, load_task, task_names  # noqa: E402
from nimbus.runner.cell.transport.spec import CellSpec  # noqa: E402
from nimbus.runner.cell.worker.job import task_context  # noqa: E402
from nimbus.runner.system.threads import prepare_libraries  # noqa: E402

Record = dict[str, Any]
Records = dict[str, dict[str, Record]]
"""Records by task and index of the layout."""

RECORDS = ROOT / "benchmarks/task_table.json"
PAGE = ROOT / "docs/task-table.md"
SKILLS_PAGE = ROOT / "docs/skills.md"
PICTURES = ROOT / "docs/images/tasks"
_SIZE = (160, 120)
_MOMENT = 0.85
"""Fraction of an episode after which its image is taken: the result is visible, and the arm is still near."""
ARM_ALONE = ("move", "go_to_pose", "go_to_joints", "home", "gripper", "wait", "scan", "follow")
"""Skills that change no object."""
_EVERYWHERE = ("at_rest", "gripper_clear", "nothing_on_floor", "fixtures_unmoved")
"""Conditions of many tasks, which say little about a skill."""
_SKILLS_BEGIN, _SKILLS_END = "<!-- table of skills -->\n", "<!-- end of table -->\n"
_HEAD = """# Shipped tasks and their yields

This page lists the tasks that ship with Nimbus and their measured success rates. Use it to select a task to run or to
copy. Each row is one file of [scenes/tasks](../scenes/tasks); `nimbus run --task NAME` runs it.

Each rate counts one attempt at each of the first layouts of seed 0. Attempts are planned and executed in physics and
judged by the task's own conditions and by plausible contact. A run tries a layout up to three times and therefore
stores a larger fraction. The columns:

- **steps**: lines under `steps` in the task file;
- **CPU**: CPU time of one core for planning and physics of an attempt;
- **length**: duration of the episode;
- **deepest**: largest penetration between a held object and the surfaces that hold it;
- **creep**: largest speed of a held object relative to the hand.

The last two are the maximum over all successful attempts. `benchmarks/task_table.py` writes this page from
[its records](../benchmarks/task_table.json).

These rates are the demonstrator's. A policy trained on its demonstrations succeeds less often: one on states, from 299
demonstrations of `pick_and_place`, in 77 of 100 held-out layouts ([policies](policies.md#figures)).

"""


def tasks_with_steps() -> list[str]:
    """List the shipped tasks of arms; navigation tasks have a separate page."""
    return [name for name in task_names() if isinstance(load_any_task(name), Task)]


def attempts(task: Task, indices: list[int], *, robot: str = "") -> Iterator[tuple[Planned[SceneAssets], float]]:
    """Yield the first attempts at some layouts of seed 0, and the CPU seconds of each.

    Args:
        task: Task, loaded with ``robot`` if given.
        indices: Indices of the layouts.
        robot: Robot in place of the task's own; empty for that.
    """
    context = task_context(CellSpec(folder="", task=task.name, robot=robot), task, load_pipeline(task.pipeline))
    loader = UsdSceneLoader(task, assets_of(context))
    with Chain([loader, TabletopRandomizer(task, 0), SkillPlanner(task, attempts=1)]) as chain:
        begin = time.process_time()
        for item in chain.run(Request(index=index) for index in indices):
            yield item, time.process_time() - begin
            begin = time.process_time()


def record(item: Planned[SceneAssets], seconds: float) -> Record:
    """Make the table's record of an attempt."""
    trajectory = item.trajectory
    outcome = trajectory.outcome
    names = ("held_penetration", "table_penetration", "held_slip")
    held, table, slip = (trajectory.contacts.get(name, np.zeros(0)) for name in names)  # none before the first step
    measured = {
        "held_mm": 1e3 * float(held.max(initial=0.0)),
        "table_mm": 1e3 * float(table.max(initial=0.0)),
        "creep_mm_s": 1e3 * float(largest_creep(slip, rate=trajectory.rate)) if len(slip) else 0.0,
        "cpu_s": seconds,
        "length_s": trajectory.step_count / trajectory.rate,
    }
    failure = "" if outcome.success else f"{outcome.phase}: {outcome.reason} {outcome.detail}".strip()
    return {"success": outcome.success, "failure": failure} | {name: round(v, 3) for name, v in measured.items()}


def draw(item: Planned[SceneAssets], path: Path) -> None:
    """Render a moment of an episode with its first camera."""
    from nimbus.datagen.render.scene_renderer import SceneRenderer

    assets, trajectory = item.scene.assets, item.trajectory
    renderer = SceneRenderer(assets.stage, assets.robot, stack=1, libraries=tuple(assets.libraries))
    renderer.load(item.layouts[0])
    step = int(_MOMENT * trajectory.step_count)
    where = trajectory.body_positions[step : step + 1], trajectory.body_wxyz[step : step + 1]
    name = next(camera.name for camera in item.layouts[0].visual.cameras if not camera.mount)
    pixels = np.asarray(renderer.render(trajectory.body_names, *where, first_step=step)[name].rgb)[0]
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).resize(_SIZE, Image.Resampling.LANCZOS).save(path, quality=85, optimize=True)


def measure(name: str, episodes: int, records: Records, *, pictures: bool) -> None:
    """Add the missing attempts, and an image of the first success if there is none."""
    missing = [index for index in range(episodes) if str(index) not in records.get(name, {})]
    picture = PICTURES / f"{name}.jpg"
    known = records.setdefault(name, {})
    if pictures and not missing and not picture.exists():
        missing = [int(index) for index, found in known.items() if found["success"]][:1]  # only for its image
    if not missing:
        return
    for item, seconds in attempts(load_task(name), missing):
        index = item.layouts[0].key.index
        found = known.setdefault(str(index), record(item, seconds))
        sys.stderr.write(f"{name} {index}: {found['failure'] or 'ok'}\n")
        if pictures and found["success"] and not picture.exists():
            draw(item, picture)


def step_lines(task: Task) -> int:
    """Count the lines under ``steps``."""
    lines = task.text.splitlines()
    start = lines.index("steps:") + 1
    return next((place for place, line in enumerate(lines[start:]) if line[:1].strip()), len(lines) - start)


def row(task: Task, tried: list[Record]) -> str:
    """Return a row of the table."""
    good = [attempt for attempt in tried if attempt["success"]]
    deepest, creep = (max((a[what] for a in good), default=0.0) for what in ("held_mm", "creep_mm_s"))
    seconds = np.mean([attempt["cpu_s"] for attempt in tried])
    length = np.median([attempt["length_s"] for attempt in good]) if good else 0.0
    picture = f"![{task.name}](images/tasks/{task.name}.jpg)" if (PICTURES / f"{task.name}.jpg").exists() else ""
    name = f"[{task.name}](../scenes/tasks/{task.name}.yaml)"
    share = f"{len(good) / len(tried):.0%} of {len(tried)}"
    cells = (picture, name, task.robot, step_lines(task), share, f"{seconds:.1f} s", f"{length:.0f} s")
    return "| " + " | ".join(map(str, (*cells, f"{deepest:.2f} mm", f"{creep:.2f} mm/s"))) + " |"


def page(records: Records) -> str:
    """Return the whole page: a table by family, then the reasons of failed attempts."""
    tasks = {name: load_task(name) for name in tasks_with_steps() if records.get(name)}
    others = [f"[{name}](../scenes/tasks/{name}.yaml)" for name in tasks_with_steps() if name not in tasks]
    families: dict[str, list[str]] = defaultdict(list)
    for name, task in tasks.items():
        families[task.family].append(name)
    text = _HEAD + "| family | tasks | first attempts that succeed |\n|---|---|---|\n"
    for family, names in sorted(families.items()):
        tried = [attempt for name in names for attempt in records[name].values()]
        share = sum(attempt["success"] for attempt in tried) / len(tried)
        text += f"| {family} | {len(names)} | {share:.0%} of {len(tried)} |\n"
    if others:
        text += f"\nNot measured yet: {', '.join(others)}.\n"
    for family, names in sorted(families.items()):
        text += f"\n## {family.capitalize()}\n\n| | task | robot | steps | succeed | CPU | length | deepest | creep |\n"
        text += "|---|---|---|---|---|---|---|---|---|\n"
        text += "".join(row(tasks[name], list(records[name].values())) + "\n" for name in names)
    text += "\n## Reasons of failures\n\n| task | attempts | step and reason |\n|---|---|---|\n"
    for name in tasks:
        reasons = Counter(
            " ".join(a["failure"].split(": ")[:1] + a["failure"].split(": ")[1].split()[:1])
            for a in records[name].values()
            if a["failure"]
        )
        text += "".join(f"| {name} | {count} | {why} |\n" for why, count in reasons.most_common())
    return text + (section(json.loads(POLICIES.read_text())) if POLICIES.exists() else "")


def skill_table(records: Records) -> str:
    """Write the table of the skills that change the state of an object, with their yields in measured tasks."""
    tasks: dict[str, list[str]] = defaultdict(list)
    judges: dict[str, Counter[str]] = defaultdict(Counter)
    for name in tasks_with_steps():
        task = load_task(name)
        conditions = {step.name for step, _ in walk(task.success)} - {*_EVERYWHERE}
        for skill in sorted({step.name for step, _ in walk(task.steps)}) if records.get(name) else ():
            tasks[skill].append(name)
            judges[skill].update(sorted(conditions))
    text = "| skill | judged by | tasks | first attempts that succeed |\n|---|---|---|---|\n"
    for skill, names in sorted(tasks.items()):
        tried = [attempt["success"] for name in names for attempt in records[name].values()]
        shown = ", ".join(f"`{name}`" for name in names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
        by = ", ".join(f"`{name}`" for name, _ in judges[skill].most_common(3))
        if skill not in ARM_ALONE:
            text += f"| `{skill}` | {by} | {shown} | {np.mean(tried):.0%} of {len(tried)} |\n"
    return text


def with_skill_table(text: str, records: Records) -> str:
    """Return the text of the skills page with an updated table."""
    before, rest = text.split(_SKILLS_BEGIN)
    return before + _SKILLS_BEGIN + skill_table(records) + _SKILLS_END + rest.split(_SKILLS_END)[1]


def write(records: Records) -> None:
    """Write the records, one line per attempt."""
    tasks = []
    for name in sorted(records):
        rows = ",\n".join(f'"{i}": {json.dumps(records[name][i])}' for i in sorted(records[name], key=int))
        tasks.append(f'"{name}": {{\n{rows}\n}}')
    RECORDS.write_text("{\n" + ",\n".join(tasks) + "\n}\n")


def main() -> None:
    """Make the missing measurements, then write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tasks", nargs="*", metavar="TASK")
    parser.add_argument("--episodes", type=int, default=20)
    parser.add_argument("--anew", action="store_true", help="delete the records of these tasks first")
    parser.add_argument("--no-pictures", dest="pictures", action="store_false")
    args = parser.parse_args()
    records: Records = json.loads(RECORDS.read_text()) if RECORDS.exists() else {}
    if args.anew:
        for name in args.tasks:
            records.pop(name, None)
            if args.pictures:
                (PICTURES / f"{name}.jpg").unlink(missing_ok=True)
    if args.episodes:
        prepare_libraries()
    for name in args.tasks or tasks_with_steps():
        measure(name, args.episodes, records, pictures=args.pictures and bool(args.episodes))
        write(records)
    PAGE.write_text(page(records))
    SKILLS_PAGE.write_text(with_skill_table(SKILLS_PAGE.read_text(), records))


if __name__ == "__main__":
    main()
