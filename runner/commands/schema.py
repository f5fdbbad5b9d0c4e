"""``nimbus schema``: prints the JSON Schema of a task file."""

from __future__ import annotations

import json

from nimbus.runner.commands.options import Skills
from nimbus.runner.system.output import write_out


def command(*, skills: Skills = None) -> int:
    """Print the schema as JSON."""
    from nimbus.datagen.tasks.json_schema import task_schema

    write_out(json.dumps(task_schema(skill_folders=skills or []), indent=2) + "\n")
    return 0
