"""Pictures of the guides: ``python -m tools.docs_site.pictures randomization|rooms OUT.jpg``.

``randomization`` shows the first layouts of a task under each preset, one row per preset; ``rooms`` shows three rooms
of each family, one row per family. The light of a room is baked first, in about 10 CPU-seconds per room.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

import numpy as np
from PIL import Image

from nimbus.datagen.arrays import AnyArray
from nimbus.datagen.episode.layout import EpisodeKey, Layout
from nimbus.datagen.execute.planner import settle
from nimbus.datagen.files.scene_files import scene_file
from nimbus.datagen.load.scene_loader import load_assets
from nimbus.datagen.randomize.tabletop import draw_physical, draw_visual
from nimbus.datagen.render.scene_renderer import SceneRenderer
from nimbus.datagen.rooms.settings import FAMILIES
from nimbus.datagen.simulate.newton import NewtonSimulation
from nimbus.datagen.tasks.plugins import discover_components
from nimbus.datagen.tasks.task import parse_task

SEEDS = (1, 2, 3)
"""Numbers of the rooms, from left to right."""
_PRESETS = ("none", "small", "medium", "large")
_RANDOMIZED = "sort_trash"
_ROOM = "pick_and_place"
_LAYOUTS = 5
_QUALITY = 85
"""JPEG quality of the pictures."""
_CAMERA = """
cameras:
  room: {position: [1.8, -0.75, 1.35], look_at: [-0.1, 0.25, 0.2], vertical_fov: 64 deg, size: [400, 300],
         modalities: [rgb], antialiasing: 2, tone: filmic}
"""
"""Camera that looks over the bench into the room."""


def draw_layouts(text: str, count: int) -> AnyArray:
    """Draw the first camera's view of a task's first layouts of seed 0.

    Args:
        text: Task file.
        count: Number of layouts.

    Returns:
        (H, count * W, 3) sRGB, uint8.
    """
    task = parse_task(text)
    assets = load_assets(task)
    simulation = NewtonSimulation(assets.stage, assets.robot, rate=task.rate)
    renderer = SceneRenderer(assets.stage, assets.robot, stack=1, modalities=("rgb",))
    views = []
    for index in range(count):
        physical = draw_physical(task, assets, seed=0, index=index)
        key = EpisodeKey(task=task.name, task_hash=task.content_hash, seed=0, index=index)
        visual = draw_visual(task, assets.stage, assets.robot, physical, key=key)
        simulation.load(physical)
        settle(simulation)
        renderer.load(Layout(key=key, physical=physical, visual=visual))
        frames = renderer.render(simulation.body_names, simulation.body_positions()[None], simulation.body_wxyz()[None])
        views.append(next(iter(frames.values())).rgb[0])
    return np.concatenate(views, axis=1)


def draw_presets() -> AnyArray:
    """Draw a row of layouts for each preset of randomization (H, W, 3), sRGB."""
    text = _without(_task_text(_RANDOMIZED), "randomize")
    return np.concatenate([draw_layouts(f"{text}randomize: {preset}\n", _LAYOUTS) for preset in _PRESETS])


def draw_rooms(family: str) -> AnyArray:
    """Draw three rooms of a family side by side (H, W, 3), sRGB."""
    return np.concatenate([draw_layouts(room_task(family, seed), 1) for seed in SEEDS], axis=1)


def room_task(family: str, seed: int) -> str:
    """Return a task file with a generated room and a camera that shows it."""
    text = _task_text(_ROOM)
    for field in ("randomize", "cameras", "scene"):
        text = _without(text, field)
    return f"{text}{_CAMERA}scene: {{family: {family}, seed: {seed}, bench: tabletop}}\n"


def save_picture(picture: AnyArray, path: Path) -> None:
    """Write a picture (H, W, 3) as JPEG."""
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(picture).save(path, quality=_QUALITY, optimize=True)


def _task_text(name: str) -> str:
    return scene_file("tasks", name, kind="task").read_text()


def _without(text: str, field: str) -> str:
    """Return a task file without a field of the top level."""
    return re.sub(rf"^{field}:.*?(?=^\S|\Z)", "", text, flags=re.MULTILINE | re.DOTALL)


def main() -> int:
    """Draw and write a picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("subject", choices=("randomization", "rooms"))
    parser.add_argument("out", type=Path, metavar="OUT.jpg")
    options = parser.parse_args()
    discover_components()
    is_rooms = options.subject == "rooms"
    save_picture(np.concatenate([draw_rooms(one) for one in FAMILIES]) if is_rooms else draw_presets(), options.out)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
