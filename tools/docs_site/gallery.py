"""Generate the gallery's videos and images: ``python -m tools.docs_site.gallery [TASK ...]``.

One episode of each task is generated. Its video, and images of every robot and every family of rooms, are stored in
``build/gallery``, where ``make docs`` finds them. Existing files are kept. All of them take about ten CPU-minutes.
"""

from __future__ import annotations

import argparse
import logging
import shutil
from pathlib import Path

import numpy as np
from PIL import Image

from nimbus.datagen.files.scene_files import scene_names
from nimbus.datagen.rooms.settings import FAMILIES
from nimbus.datagen.tasks.plugins import discover_components
from nimbus.runner.cli import main as nimbus
from tools.docs_site.pages import GALLERY
from tools.docs_site.pictures import draw_rooms, save_picture

log = logging.getLogger(__name__)


def make_video(task: str) -> Path | None:
    """Generate one episode of a task and keep its video; return None if no episode was stored."""
    target, run = GALLERY / f"{task}.mp4", GALLERY / "runs" / task
    if target.is_file():
        return target
    if nimbus(["run", "--task", task, "--episodes", "1", "--out", str(run)]):
        log.warning("%s: no episode was stored", task)
        return None
    videos = sorted((run / "preview").glob("*.mp4"))
    if not videos:
        return None
    shutil.copyfile(videos[0], target)
    shutil.rmtree(run)
    return target


def make_robot_picture(robot: str) -> Path:
    """Render a robot in its home posture."""
    target = GALLERY / "robots" / f"{robot}.jpg"
    if not target.is_file():
        drawn = target.with_suffix(".png")
        nimbus(["robot", "check", robot, "--picture", str(drawn)])
        with Image.open(drawn, formats=["PNG"]) as picture:
            save_picture(np.asarray(picture.convert("RGB")), target)
        drawn.unlink()
    return target


def make_room_picture(family: str) -> Path:
    """Render three rooms of a family."""
    target = GALLERY / "scenes" / f"{family}.jpg"
    if not target.is_file():
        save_picture(draw_rooms(family), target)
    return target


def main() -> int:
    """Generate the missing files of the gallery."""
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tasks", nargs="*", help="tasks to show (default: all)")
    tasks = parser.parse_args().tasks or scene_names("tasks")
    (GALLERY / "robots").mkdir(parents=True, exist_ok=True)
    for robot in scene_names("robots"):
        make_robot_picture(robot)
    discover_components()
    for family in FAMILIES:
        make_room_picture(family)
    for task in tasks:
        log.info("%s: %s", task, make_video(task) or "left out")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
