"""Measurements of `sort_trash`: yield, contact, time, memory, replay. Prints tables, and merges the figures into a JSON
file.

Run it as ``python benchmarks/sort_trash.py [plan] [render] [replay] [--episodes N] [--json FILE]``; without a part, all
of them run. Times are CPU seconds of one core.

- ``plan``: attempts at indices 0 to N-1 of seed 0 (N is 100 by default), without rendering; yield, contacts, planning
  time.
- ``render``: N episodes (4) of exactly 3 items with everything rendered and stored; CPU time by stage, memory.
- ``replay``: N stored episodes (50, with tiny images), executed again in a new process from their files alone.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "exts/nimbus.datagen"))
os.environ |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}

import numpy as np  # noqa: E402

from nimbus.datagen.files.scene_files import scene_file  # noqa: E402
from nimbus.datagen.pipeline import RunContext, load_pipeline  # noqa: E402
from nimbus.datagen.stages import Chain, Planned, Request  # noqa: E402
from nimbus.datagen.tasks.task import Task, load_task  # noqa: E402
from nimbus.runner.cell.transport.spec import CellSpec  # noqa: E402
from nimbus.runner.cell.worker.job import task_context  # noqa: E402
from nimbus.runner.cli import main as nimbus  # noqa: E402
from nimbus.runner.system.threads import prepare_libraries  # noqa: E402

Figures = dict[str, Any]


def measure_plans(count: int) -> Figures:
    """Measure the attempts at the first ``count`` episodes of seed 0."""
    from nimbus.datagen.execute.planner import SkillPlanner
    from nimbus.datagen.execute.recorder import largest_creep
    from nimbus.datagen.load.scene_loader import UsdSceneLoader, assets_of
    from nimbus.datagen.randomize.tabletop import TabletopRandomizer

    task, context = _prepare("sort_trash")
    chain = Chain([UsdSceneLoader(task, assets_of(context)), TabletopRandomizer(task, 0), SkillPlanner(task)])
    attempts: list[Planned] = []
    with chain:
        for attempt in chain.run(Request(index=index) for index in range(count)):
            attempts.append(attempt)
            _say(f"{attempt.label} attempt {attempt.attempt}: {attempt.trajectory.outcome.reason}")
    first = [item for item in attempts if item.attempt == 0]
    stored = [item for item in attempts if item.trajectory.outcome.success]
    failures = [item.trajectory.outcome for item in attempts if not item.trajectory.outcome.success]
    plans: dict[str, list[float]] = defaultdict(list)
    for item in attempts:
        for name, values in item.trajectory.plan_statistics.items():
            plans[name] += values.tolist()
    depths = np.array(plans["recheck_depth"])
    motion = np.nansum([plans[name] for name in ("ik_time", "plan_time", "timing_time")], axis=0)
    contacts = {
        name: max(float(np.nanmax(item.trajectory.contacts[name], initial=0.0)) for item in stored)
        for name in ("held_penetration", "table_penetration")
    }
    creep = [largest_creep(item.trajectory.contacts["held_slip"], rate=item.trajectory.rate) for item in stored]
    return {
        "episodes asked": count,
        "first attempts that succeed": _share(item.trajectory.outcome.success for item in first),
        "by kind": _by_kind(first),
        "episodes stored": len(stored),
        "reasons": dict(Counter(str(outcome.reason) for outcome in failures)),
        "phases": dict(Counter(f"{outcome.phase}: {outcome.reason}" for outcome in failures)),
        "plans re-checked before they ran": int(np.isfinite(depths).sum()),
        "plans refused": int((depths > 0.0).sum()),
        "refused plans": {
            f"{outcome.phase}: {outcome.detail}": 1 for outcome in failures if outcome.reason == "plan_rejected"
        },
        "motions without a plan": int(np.isnan(depths).sum()),
        "grasps tried again": sum(
            segment.phase == "back off" for item in attempts for segment in item.trajectory.segments
        ),
        "plan CPU per stored episode [s]": sum(item.times["plan"] for item in attempts) / max(1, len(stored)),
        "median motion plan [ms]": 1e3 * float(np.median(motion)),
        "95th percentile motion plan [ms]": 1e3 * float(np.percentile(motion, 95)),
        "motion plans": len(motion),
        "median episode [s]": float(np.median([item.trajectory.step_count / item.trajectory.rate for item in stored])),
        "held penetration, largest [mm]": 1e3 * contacts["held_penetration"],
        "table penetration, largest [mm]": 1e3 * contacts["table_penetration"],
        "creep in the hand, largest of a carry [mm/s]": 1e3 * max(creep),
        "creep in the hand, median of episodes [mm/s]": 1e3 * float(np.median(creep)),
        "peak memory [MB]": _peak_memory(),
    }  # fmt: skip


def measure_rendering(count: int) -> Figures:
    """Measure episodes of three items, with all five stages, in this process."""
    from nimbus.datagen.pipeline import build
    from nimbus.datagen.store.dataset import Dataset

    with tempfile.TemporaryDirectory() as folder:
        path = _changed_task(Path(folder), "count: [2, 4]", "count: 3")
        task, context = _prepare(str(path))
        with Dataset.create_or_open(Path(folder) / "data", task=task.name, task_hash=task.content_hash, seed=0) as data:
            with build(load_pipeline(task.pipeline), replace(context, dataset=data)) as chain:
                clock = _Clock(chain)
                begin = time.process_time()
                stored = [
                    item for item in _said(chain.run(Request(index=index) for index in range(count))) if item.path
                ]
                total = time.process_time() - begin
        steps = sum(item.step_count for item in stored)
        views = steps * len(task.cameras)
        stages = {name: seconds / len(stored) for name, seconds in clock.seconds.items()}
        return {
            "episodes stored": len(stored),
            "CPU per stored episode [s]": total / len(stored),
            "CPU per stored episode by stage [s]": stages,
            "CPU per view, rendering [ms]": 1e3 * clock.seconds["render"] / views,
            "CPU per view, all stages [ms]": 1e3 * total / views,
            "views per stored episode": views / len(stored),
            "bytes per stored episode": sum(item.byte_count for item in stored) / len(stored),
            "peak memory [MB]": _peak_memory(),
        }


class _Clock:
    """CPU seconds of every stage, including its I/O thread. While a stage waits for another one, the time counts for
    the other one.
    """

    def __init__(self, chain: Chain) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self._running = ["other"]
        self._since = self._now()
        stages: list[Any] = chain.stages
        for stage in stages:
            stage.process = self._timed(stage.name, stage.process)
        render = next(stage for stage in stages if stage.name == "render")
        process = render.process

        def lazy(item: Any) -> Iterator[Any]:
            for rendered in process(item):
                yield replace(rendered, observations=self._iterate("render", rendered.observations))

        render.process = lazy

    def _timed(self, name: str, process: Callable[[Any], Iterator[Any]]) -> Callable[[Any], Iterator[Any]]:
        return lambda item: self._iterate(name, process(item))

    def _iterate(self, name: str, items: Iterator[Any]) -> Iterator[Any]:
        while True:
            self._switch(name)
            try:
                item = next(items)
            except StopIteration:
                return
            finally:
                self._switch(None)
            yield item

    def _switch(self, name: str | None) -> None:
        now, (thread, process) = self._now(), self._since
        self.seconds[self._running[-1]] += now[0] - thread
        self.seconds["store"] += (now[1] - process) - (now[0] - thread)  # the only other thread encodes
        self._since = now
        if name is None:
            self._running.pop()
        else:
            self._running.append(name)

    @staticmethod
    def _now() -> tuple[float, float]:
        return time.thread_time(), time.process_time()


def measure_replay(count: int) -> Figures:
    """Execute stored episodes again in a new process, which has neither the task file nor the seed."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = _changed_task(folder, "size: [320, 240]", "size: [32, 24]")
        nimbus(["run", "--task", str(path), "--episodes", str(count), "--out", str(folder / "data")])
        path.unlink()
        line = [sys.executable, str(ROOT / "runner/runner.py"), "replay", str(folder / "data"), "--json"]
        results = json.loads(subprocess.run(line, stdout=subprocess.PIPE, cwd=folder).stdout)
    return {
        "episodes replayed": len(results),
        "same outcome": _share(result["same_outcome"] for result in results),
        "largest difference of a joint [rad or m]": max(result["joint_error"] for result in results),
        "largest difference of a body [m]": max(result["body_error"] for result in results),
    }


def _prepare(name: str) -> tuple[Task, RunContext]:
    task = load_task(name)
    prepare_libraries()
    return task, task_context(CellSpec(folder="", task=name), task, load_pipeline(task.pipeline))


def _changed_task(folder: Path, old: str, new: str) -> Path:
    text = scene_file("tasks", "sort_trash", kind="task").read_text()
    assert old in text
    path = folder / "sort_trash.yaml"
    path.write_text(text.replace(old, new))
    return path


def _by_kind(attempts: list[Planned]) -> dict[str, Figures]:
    tried: Counter[str] = Counter()
    good: Counter[str] = Counter()
    for attempt in attempts:
        kinds = {item.kind for item in attempt.layouts[0].physical.objects}
        tried.update(kinds)
        good.update(kinds if attempt.trajectory.outcome.success else ())
    rows = {kind: {"attempts": tried[kind], "share": good[kind] / tried[kind]} for kind in tried}
    return dict(sorted(rows.items(), key=lambda row: row[1]["share"]))


def _share(values: Iterator[bool] | Any) -> float:
    return float(np.mean([bool(value) for value in values]))


def _peak_memory() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _say(text: str) -> None:
    sys.stderr.write(text + "\n")


def _said(items: Iterator[Any]) -> Iterator[Any]:
    for item in items:
        _say(f"{item.episode_id}: {item.outcome.reason}, {item.step_count} steps")
        yield item


def _print(part: str, figures: Figures) -> None:
    sys.stdout.write(f"\n{part}\n")
    for name, value in figures.items():
        if not isinstance(value, dict):
            sys.stdout.write(f"  {name:<48} {_number(value)}\n")
            continue
        sys.stdout.write(f"  {name}\n")
        for key, entry in value.items():
            text = f"{entry['share']:.0%} of {entry['attempts']}" if isinstance(entry, dict) else _number(entry)
            sys.stdout.write(f"    {key:<46} {text}\n")


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4g}"


PARTS = {"plan": (measure_plans, 100), "render": (measure_rendering, 4), "replay": (measure_replay, 50)}


def main() -> None:
    """Measure the requested parts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], default=[], metavar="PART")
    parser.add_argument("--episodes", type=int)
    parser.add_argument("--json", type=Path, help="JSON file; figures of other parts in it are kept")
    args = parser.parse_args()
    for part in args.parts or PARTS:
        measure, count = PARTS[part]
        figures = measure(args.episodes or count)
        _print(part, figures)
        if args.json:
            known = json.loads(args.json.read_text()) if args.json.exists() else {}
            args.json.write_text(json.dumps(known | {part: figures}, indent=2) + "\n")


if __name__ == "__main__":
    main()
