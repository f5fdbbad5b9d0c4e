"""Rates of navigation: episodes of 100 rows that two cores make in an hour, from the CPU time of whole runs.

``python -m benchmarks.navigation_rates [small mesh splats blender] [--short 5] [--episodes 15]``

- small: ``navigate_homes`` at 320 x 240.
- mesh: ``navigate_homes`` at 640 x 480.
- splats: ``navigate_splats`` at 320 x 240, 300,000 splats a home.
- blender: ``navigate_homes`` at 320 x 240 by Blender with 4 samples, on short paths with 2 rows a second, because a
  view takes seconds; ``--short 0 --episodes 2`` includes the start, which is short compared with them.

Images are color, depth and both masks. A short and a long run are subtracted, so that the start of a run is left out.
Five episodes share a scene: the difference holds the loading and baking of the further scenes. CPU seconds of all
processes count, so the rate is that of two cores without other programs; on a busy machine it is an underestimate.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "exts/nimbus.datagen"), str(ROOT)]

from benchmarks.paper import run_form  # noqa: E402
from nimbus.datagen.files.scene_files import scene_file  # noqa: E402

CASES = {
    "small": ("navigate_homes", (320, 240)),
    "mesh": ("navigate_homes", (640, 480)),
    "splats": ("navigate_splats", (320, 240)),
    "blender": ("navigate_homes", (320, 240)),
}
_ROWS = 100
_CORES = 2


def task_text(case: str) -> str:
    """Return the task of a case: a shipped one with another size of images, and with the modalities that count."""
    name, size = CASES[case]
    text = scene_file("tasks", name, kind="task").read_text()
    words = f"size: [{size[0]}, {size[1]}], modalities: [rgb, depth, instance, semantic]"
    text = re.sub(r"size: \[\d+, \d+\]", words, text)
    if case == "blender":
        text = text.replace("length: [2 m, 25 m]", "length: [1 m, 3 m]") + "pipeline: nav_mesh_blender\nrate: 2\n"
    return text


def measure(case: str, form: str, short: int, episodes: int) -> dict[str, Any]:
    """Run a case twice, and return the cost of 100 rows."""
    with tempfile.TemporaryDirectory(prefix="nimbus-rates-") as name:
        scratch = Path(name)
        task = scratch / "task.yaml"
        task.write_text(task_text(case))
        none: dict[str, Any] = {"cpu": 0.0, "steps": 0, "stages": {}}
        few = run_form(str(task), form, scratch / "short", short) if short else none
        many = run_form(str(task), form, scratch / "long", episodes)
    rows = many["steps"] - few["steps"]
    cost = (many["cpu"] - few["cpu"]) / rows * _ROWS
    stages = {
        stage: round((spent - few["stages"].get(stage, 0.0)) / rows * _ROWS, 3)
        for stage, spent in many["stages"].items()
    }
    return {
        "case": case,
        "form": form,
        "episodes": [short, episodes],
        "rows": rows,
        "CPU-s per 100 rows": cost,
        "stages": stages,
        "episodes of 100 rows per hour": 3600 * _CORES / cost,
        "load of the machine": os.getloadavg()[0],
    }


def main() -> int:
    """Measure the cases that the command line names, and print one line of JSON for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("case", nargs="*", choices=tuple(CASES), default=["small", "mesh", "splats"])
    parser.add_argument("--form", choices=("fused", "decoupled"), default="fused")
    parser.add_argument("--short", type=int, default=5)
    parser.add_argument("--episodes", type=int, default=15)
    words = parser.parse_args()
    for case in words.case:
        sys.stdout.write(json.dumps(measure(case, words.form, words.short, words.episodes)) + "\n")
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
