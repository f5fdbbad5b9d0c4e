"""The four pipelines of the paper, each coupled, fused and decoupled: stage split, speed-up, cost per stored episode.

``python -m benchmarks.paper [--pipeline NAME ...] [--episodes N] [--short N] [--json FILE] [--write]``
``python -m benchmarks.paper --small [--pipeline NAME ...] [--form NAME ...]``

- coupled: the paper's baseline, ``nimbus run --coupled``: one process, one world per launch, each attempt rendered
  before it is judged.
- fused: ``nimbus run --roles fused``: each worker of a cell runs an episode through all stages.
- decoupled: ``nimbus run --roles dynamic``: planners pass their plans to renderers.

Seconds are CPU seconds of all processes, so the figures are also valid on a busy machine. The costs of two runs of
different lengths are subtracted, which removes the cost of starting. ``--write`` writes the section ``Pipelines`` of
``docs/performance.md`` from all figures in the JSON file, including those of earlier runs.

``--small`` runs one episode in each form, with small images and homes, and prints the section: a check of the
benchmark, whose figures consist mostly of the start.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "exts/nimbus.datagen"), str(ROOT)]

from benchmarks.performance import run_timed  # noqa: E402
from benchmarks.performance_page import PAGE, PIPELINES_TITLE  # noqa: E402
from nimbus.datagen.files.scene_files import scene_file  # noqa: E402
from nimbus.datagen.files.strict_yaml import parse  # noqa: E402

Figures = dict[str, Any]
PIPELINES = {
    "manipulation": "sort_trash",
    "proposed tabletop tasks": "",
    "navigation on meshes": "navigate_homes",
    "navigation on splats": "navigate_splats",
}
"""Task of each pipeline; the proposed one is made by ``nimbus propose``."""
_FUSED = "navigation on splats (`roles: fused` in `nav_splat`)"
"""Pipelines that are fused by default."""
FORMS = {"coupled": ("--coupled",), "fused": ("--roles", "fused"), "decoupled": ("--roles", "dynamic")}
_PROPOSED_SEED = 3
_PRICE = 0.04
"""Price of a machine of two cores [USD per hour], as in docs/claims.md."""
_CORES = 2


def proposed_task(folder: Path) -> str:
    """Write a task with goals drawn by the seed; return its path."""
    words = ["propose", "--count", "1", "--seed", str(_PROPOSED_SEED), "--family", "pack", "--out", str(folder)]
    run_timed([sys.executable, "runner/runner.py", *words], ROOT)
    return str(min(folder.glob("task_*.yaml")))


def small_task(text: str) -> str:
    """Return a task with one camera of 32 x 24 pixels and, for navigation, small homes and short paths."""
    task: dict[str, Any] = parse(text, "task").data  # a plain loader would read the key `on` as True
    cameras = task["cameras"]
    front = cameras["front"] if isinstance(cameras, dict) else {"preset": "front"}
    task["cameras"] = {"front": {**front, "size": [32, 24]}}
    if "navigate" in task:
        task["scene"] |= {"rooms": [2, 2]} | ({"per_home": 20_000} if "per_home" in task["scene"] else {})
        task["navigate"]["length"] = ["1 m", "3 m"]
    return json.dumps(task)  # which is YAML


def run_form(task: str, form: str, folder: Path, episodes: int) -> Figures:
    """Run some episodes; return the CPU time of all processes, the CPU time of each stage, and the counts."""
    words = ["run", "--task", task, "--episodes", str(episodes), "--out", str(folder), *FORMS[form]]
    cost = run_timed([sys.executable, "runner/runner.py", *words], ROOT)
    status = json.loads((folder / "status.json").read_text())
    return {"cpu": cost.cpu, "stored": status["stored"], "steps": status["step_count"], "stages": status["cpu_times"]}


def measure(name: str, form: str, scratch: Path, *, short: int, episodes: int, small: bool = False) -> Figures:
    """Measure one pipeline in one form."""
    task = PIPELINES[name] or proposed_task(scratch / "proposed")
    if small:
        given = scene_file("tasks", task, kind="task") if PIPELINES[name] else Path(task)
        reduced = scratch / "small.yaml"
        reduced.write_text(small_task(given.read_text()))
        task = str(reduced)
    none: Figures = {"cpu": 0.0, "stored": 0, "steps": 0, "stages": {}}
    few = run_form(task, form, scratch / "short", short) if short else none
    many = run_form(task, form, scratch / "long", episodes)
    stored = many["stored"] - few["stored"]
    split = {stage: spent - few["stages"].get(stage, 0.0) for stage, spent in many["stages"].items()}
    cost = (many["cpu"] - few["cpu"]) / stored
    sys.stderr.write(f"{name}, {form}: {cost:.2f} CPU-s an episode\n")
    return {
        "episodes": [short, episodes],
        "cpu_s": cost,
        "rows": (many["steps"] - few["steps"]) / stored,
        "stages": {stage: spent / stored for stage, spent in split.items()},
    }


def bound(stages: dict[str, float]) -> float:
    """Return the speed-up if each stage had its own resource: the sum of the stages divided by the largest."""
    rendering = stages.get("render", 0.0) + stages.get("store", 0.0)
    planning = stages.get("randomize", 0.0) + stages.get("plan", 0.0)
    return (planning + rendering) / max(planning, rendering, 1e-9)


_HEAD = (
    PIPELINES_TITLE
    + """
Should planning and rendering run in separate processes? Four pipelines, each in three forms. `make paper` measures them
and writes this section.

- Coupled: the baseline, `--coupled`. One process renders each step separately, and each attempt before it is judged.
- Fused: `--roles fused`. Each worker of a cell takes an episode through all stages.
- Decoupled: `--roles dynamic`. Planners hand plans to renderers; workers change roles when that saves time.

Measured on {date} with {cores} shared cores and no GPU, at a load of up to {load:.0f}. Seconds are CPU seconds of all
processes per stored episode; the start of the run is subtracted, unless the table counts from episode 0. Five episodes
of navigation share a home; its loading and its light count as start if both runs have at most five. One run each:
differences of a tenth are noise. A dash, or a pipeline without a row, was not measured.

| pipeline | task, episodes, rows | coupled | fused | decoupled | speed-up: coupled ÷ the best | USD per 1,000 |
|---|---|---|---|---|---|---|"""
)
_COSTS_END = f"""
The last column is the cheaper of fused and decoupled, for a machine of {_CORES} cores at {_PRICE} USD per hour. Where
decoupling costs more than it gives, the pipeline is fused by default: {_FUSED}. The others are decoupled.

The stages of the fused form, in CPU seconds per stored episode. The bound is the speed-up of decoupling if planning and
rendering each had a resource to themselves: the sum divided by the larger half. On cores that both halves share, the
bound is 1. The last column is the cost of decoupling: the additional CPU seconds compared with the fused form.

| pipeline | load | randomize | plan | render | store | bound | decoupled - fused |
|---|---|---|---|---|---|---|---|"""


def write_section(found: Figures) -> Iterator[str]:
    """Yield the lines of the section."""
    yield _HEAD.format(date=found["date"], **found["machine"])
    pipelines = {name: found["pipelines"][name] for name in PIPELINES if name in found["pipelines"]}
    for name, forms in pipelines.items():
        costs = {form: one["cpu_s"] for form, one in forms.items()}
        best = min((cost for form, cost in costs.items() if form != "coupled"), default=None)
        few, many = next(iter(forms.values()))["episodes"]
        rows = next(iter(forms.values()))["rows"]
        ratio = f"{costs['coupled'] / best:.2f}" if best and "coupled" in costs else "-"
        price = f"{1000 * best / _CORES / 3600 * _PRICE:.3f}" if best else "-"
        cells = [f"{costs[form]:.2f}" if form in costs else "-" for form in FORMS]
        what = f"`{PIPELINES[name] or 'nimbus propose'}`, {few} to {many}, {rows:.0f}"
        yield f"| {name} | {what} | {' | '.join(cells)} | {ratio} | {price} |"
    yield _COSTS_END
    for name, forms in pipelines.items():
        if "fused" not in forms:
            continue
        stages = forms["fused"]["stages"]
        split = [f"{stages.get(stage, 0.0):.2f}" for stage in ("load", "randomize", "plan", "render", "store")]
        is_whole = "decoupled" in forms
        extra = f"{forms['decoupled']['cpu_s'] - forms['fused']['cpu_s']:+.2f}" if is_whole else "-"
        yield f"| {name} | {' | '.join(split)} | {bound(stages):.2f} | {extra} |"


def measure_small(pipelines: Iterable[str], forms: Iterable[str]) -> Figures:
    """Return the figures of one small episode in each form, with the start."""
    found: Figures = {name: {} for name in pipelines}
    for name, kinds in found.items():
        for form in forms:
            with tempfile.TemporaryDirectory(prefix="nimbus-paper-") as scratch:
                kinds[form] = measure(name, form, Path(scratch), short=0, episodes=1, small=True)
    return {"pipelines": found, **_machine()}


def _machine(earlier: float = 0.0) -> Figures:
    """Return the date, the cores and the load, or the earlier load if that was larger."""
    load = max(os.getloadavg()[0], earlier)
    return {"machine": {"cores": os.cpu_count(), "load": load}, "date": time.strftime("%Y-%m-%d")}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure the pipelines that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pipeline", nargs="*", choices=tuple(PIPELINES), default=list(PIPELINES))
    parser.add_argument("--form", nargs="*", choices=tuple(FORMS), default=list(FORMS))
    parser.add_argument("--short", type=int, default=2, help="episodes of the short run; 0 subtracts nothing")
    parser.add_argument("--episodes", type=int, default=12, help="episodes of the long run")
    parser.add_argument("--json", type=Path, default=ROOT / "out" / "paper.json")
    parser.add_argument("--write", action="store_true", help="write the section of docs/performance.md")
    parser.add_argument("--small", action="store_true", help="one small episode in each form; nothing is written")
    words = parser.parse_args(arguments)
    if words.small:
        sys.stdout.write("\n".join(write_section(measure_small(words.pipeline, words.form))) + "\n")
        return 0
    known: Figures = json.loads(words.json.read_text()) if words.json.exists() else {"pipelines": {}}
    known |= _machine(known.get("machine", {}).get("load", 0.0))
    words.json.parent.mkdir(parents=True, exist_ok=True)
    for name in words.pipeline:
        for form in words.form:
            with tempfile.TemporaryDirectory(prefix="nimbus-paper-") as scratch:
                one = measure(name, form, Path(scratch), short=words.short, episodes=words.episodes)
            known["pipelines"].setdefault(name, {})[form] = one
            words.json.write_text(json.dumps(known, indent=1) + "\n")
    if words.write:
        before, _, _ = PAGE.read_text().partition(PIPELINES_TITLE)
        PAGE.write_text(before + "\n".join(write_section(known)) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
