"""Shipped tasks as a scripted operator shows them by hand, see ``hand_skills/by_hand.py``."""

from __future__ import annotations

import re
from pathlib import Path

from nimbus.datagen.files.scene_files import scene_file
from nimbus.datagen.tasks.task import load_task

HAND_SKILLS = Path(__file__).parent / "hand_skills"
SHOWS = {
    "insert_peg": "insert",
    "open_drawer": "open",
    "handover_block": "handover",
    "lift_tray_together": "together",
    "place_beside": "beside",
    "stack_blocks": "stack",
}
"""Demonstration of each task."""


def hand_task(name: str, folder: Path) -> Path:
    """Write a shipped task whose only step is a demonstration by hand; returns its file.

    Args:
        name: The task.
        folder: Folder for the file, named as the task is.
    """
    text = scene_file("tasks", name, kind="task").read_text()
    things = ", ".join(load_task(name).objects)
    steps = f"steps:\n  - by_hand: {{show: {SHOWS[name]}, about: [{things}]}}\nexecution_noise: 0\nsuccess:"
    shown, count = re.subn(r"^steps:\n.*?^success:", steps, text, flags=re.DOTALL | re.MULTILINE)
    assert count == 1
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.yaml"
    path.write_text(shown)
    return path
