"""A picture of what each preset of randomization does: one row a preset, as docs/randomization.md shows.

Run it as ``python benchmarks/layout_sheet.py OUT.jpg [--task NAME] [--columns N]``.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "exts/nimbus.datagen"))
os.environ |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}

import numpy as np  # noqa: E402
from PIL import Image  # noqa: E402

from nimbus.datagen.episode.layout import EpisodeKey, Layout  # noqa: E402
from nimbus.datagen.execute.planner import settle  # noqa: E402
from nimbus.datagen.files.scene_files import scene_file  # noqa: E402
from nimbus.datagen.load.scene_loader import load_assets  # noqa: E402
from nimbus.datagen.randomize.tabletop import draw_physical, draw_visual  # noqa: E402
from nimbus.datagen.render.scene_renderer import SceneRenderer  # noqa: E402
from nimbus.datagen.simulate.newton import NewtonSimulation  # noqa: E402
from nimbus.datagen.tasks.plugins import discover_components  # noqa: E402
from nimbus.datagen.tasks.task import parse_task  # noqa: E402

PRESETS = ("none", "small", "medium", "large")


def row(text: str, *, columns: int) -> np.ndarray:
    """(H, columns * W, 3) the first camera's view of the first layouts of seed 0."""
    task = parse_task(text)
    assets = load_assets(task)
    simulation = NewtonSimulation(assets.stage, assets.robot, rate=task.rate)
    renderer = SceneRenderer(assets.stage, assets.robot, stack=1, modalities=("rgb",))
    pictures = []
    for index in range(columns):
        physical = draw_physical(task, assets, seed=0, index=index)
        key = EpisodeKey(task=task.name, task_hash=task.content_hash, seed=0, index=index)
        visual = draw_visual(task, assets.stage, assets.robot, physical, key=key)
        simulation.load(physical)
        settle(simulation)
        renderer.load(Layout(key=key, physical=physical, visual=visual))
        shown = renderer.render(simulation.body_names, simulation.body_positions()[None], simulation.body_wxyz()[None])
        pictures.append(next(iter(shown.values())).rgb[0])
        sys.stdout.write(f"{index}: {visual.instruction}\n")
    return np.concatenate(pictures, axis=1)


def main() -> None:
    """Draw and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--task", default="sort_trash")
    parser.add_argument("--columns", type=int, default=5)
    arguments = parser.parse_args()
    discover_components()
    text = scene_file("tasks", arguments.task, kind="task").read_text()
    text = re.sub(r"^randomize:.*?(?=^\S)", "", text, flags=re.MULTILINE | re.DOTALL)
    rows = [row(f"{text}randomize: {preset}\n", columns=arguments.columns) for preset in PRESETS]
    Image.fromarray(np.concatenate(rows)).save(arguments.out, quality=80)


if __name__ == "__main__":
    main()
