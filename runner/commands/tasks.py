"""``nimbus tasks``: lists the tasks that can be run."""

from __future__ import annotations

from pathlib import Path

from nimbus.runner.commands.options import Skills
from nimbus.runner.commands.table import align, leading_comment
from nimbus.runner.system.output import write_out

_COLUMNS = ("task", "family", "robot", "instruction")


def command(*, skills: Skills = None) -> int:
    """Print every task with its family, its robot and its first instruction."""
    from nimbus.datagen.files.scene_files import scene_folder, scene_names

    rows = [_COLUMNS, *(_row(name, scene_folder("tasks") / f"{name}.yaml") for name in scene_names("tasks"))]
    write_out("".join(f"{line}\n" for line in align(rows)))
    return 0


def _row(name: str, path: Path) -> tuple[str, ...]:
    """Return the columns of a task file, without validating it."""
    from nimbus.datagen.files.strict_yaml import read

    data = read(path).data
    fields = data if isinstance(data, dict) else {}
    instructions = fields.get("instructions")
    first = str(instructions[0]) if isinstance(instructions, tuple) and instructions else leading_comment(path)
    return name, str(fields.get("family", "")), str(fields.get("robot", "")), first
