"""``nimbus tasks``: what there is to run."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from nimbus.datagen.files.scene_files import scene_folder, scene_names
from nimbus.datagen.files.strict_yaml import read

_COLUMNS = ("task", "family", "robot", "instruction")


def command(args: argparse.Namespace) -> int:
    """Print every task with its family, its robot and its first instruction."""
    rows = [_COLUMNS, *(_row(name, scene_folder("tasks") / f"{name}.yaml") for name in scene_names("tasks"))]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    for *cells, last in rows:
        sys.stdout.write(
            "  ".join(f"{cell:<{width}}" for cell, width in zip(cells, widths, strict=True)) + f"  {last}\n"
        )
    return 0


def _row(name: str, path: Path) -> tuple[str, ...]:
    """What a task file says of itself; it is not checked."""
    data = read(path).data
    said = data if isinstance(data, dict) else {}
    instructions = said.get("instructions")
    first = str(instructions[0]) if isinstance(instructions, tuple) and instructions else summary(path)
    return name, str(said.get("family", "")), str(said.get("robot", "")), first


def summary(path: Path) -> str:
    """The comment that a file begins with, empty where there is none."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return lines[0].lstrip("# ").strip() if lines and lines[0].startswith("#") else ""
