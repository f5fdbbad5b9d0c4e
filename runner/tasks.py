"""``nimbus tasks``: what there is to run."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from nimbus.datagen.scene_files import scene_folder, scene_names


def command(args: argparse.Namespace) -> int:
    """Print every task's name with the first line of its file."""
    names = scene_names("tasks")
    width = max(map(len, names), default=0)
    for name in names:
        sys.stdout.write(f"{name:<{width}}  {summary(scene_folder('tasks') / f'{name}.yaml')}\n")
    return 0


def summary(path: Path) -> str:
    """The comment that a task file begins with, empty where there is none."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return lines[0].lstrip("# ").strip() if lines and lines[0].startswith("#") else ""
