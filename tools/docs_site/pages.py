"""Generated pages of the documentation site: the commands with their flags, and the gallery of tasks."""

from __future__ import annotations

import io
import json
import os
from collections import defaultdict
from contextlib import redirect_stdout
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).resolve().parents[2]
GALLERY = ROOT / "build/gallery"
"""Folder of the videos and pictures that ``python -m tools.docs_site.gallery`` makes."""
_WIDTH = "100"
"""Width of the help texts on the page of commands [columns]."""


def commands_page() -> str:
    """Return the page of all commands: their meaning and their help text, by panel."""
    from nimbus.runner.commands import PANELS

    lines = ["# Commands", "", "`nimbus COMMAND --help` prints the same. " + _EXIT_CODES, ""]
    for panel, commands in PANELS.items():
        lines += [f"## {panel.capitalize()}", ""]
        for name, meaning in commands.items():
            lines += [f"### nimbus {name}", "", f"{meaning[0].upper()}{meaning[1:]}.", "", "```text"]
            lines += [help_of(name).strip("\n"), "```", ""]
    return "\n".join(lines)


def help_of(name: str) -> str:
    """Return the help text of a command."""
    from nimbus.runner.cli import parse_command

    printed = io.StringIO()
    with mock.patch.dict(os.environ, COLUMNS=_WIDTH, NO_COLOR="1"), redirect_stdout(printed):
        parse_command([name, "--help"])
    return printed.getvalue()


def gallery_page() -> str:
    """Return the gallery: a picture or a video of every task with its instruction and its measured yield."""
    from nimbus.datagen.files.scene_files import scene_folder, scene_names
    from nimbus.datagen.files.strict_yaml import read

    records = json.loads((ROOT / "benchmarks/task_table.json").read_text())
    families: dict[str, list[str]] = defaultdict(list)
    for name in scene_names("tasks"):
        data = read(scene_folder("tasks") / f"{name}.yaml").data
        fields = data if isinstance(data, dict) else {}
        rows = records.get(name, {}).values()
        first = f"{sum(row['success'] for row in rows)} of {len(rows)} first attempts" if rows else "not measured"
        instructions = fields.get("instructions")
        instruction = str(instructions[0]) if isinstance(instructions, tuple) and instructions else ""
        families[str(fields.get("family", "other"))] += [
            *(f"### {name}", "", f"“{instruction}” `{fields.get('robot', '')}`, {first}.", ""),
            *(_shown(name), ""),
        ]
    lines = ["# Gallery", "", "Tasks that come with Nimbus, by family. Each is one file: `nimbus run --task NAME`.", ""]
    for family in sorted(families):
        lines += [f"## {family.capitalize()}", "", *families[family]]
    for title, folder in (("Robots", "robots"), ("Scenes", "scenes")):
        if pictures := sorted((GALLERY / folder).glob("*.jpg")):
            lines += [f"## {title}", ""]
            for picture in pictures:
                lines += [f"### {picture.stem}", "", f"![{picture.stem}]({folder}/{picture.name})", ""]
    return "\n".join(lines)


def _shown(name: str) -> str:
    picture = f"images/tasks/{name}.jpg"
    if (GALLERY / f"{name}.mp4").is_file():
        poster = f' poster="{picture}"' if (ROOT / "docs" / picture).is_file() else ""
        return f'<video controls muted loop preload="none"{poster} src="videos/{name}.mp4" width="480"></video>'
    return f"![{name}]({picture})" if (ROOT / "docs" / picture).is_file() else "No picture yet."


_EXIT_CODES = (
    "Exit codes: 0 done; 1 incomplete, or a check found a fault; 2 bad input, reported in one line; "
    "130 interrupted; 70 a bug in Nimbus, with a traceback."
)
