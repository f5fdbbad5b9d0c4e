"""``nimbus schema``: the JSON Schema of a task file."""

from __future__ import annotations

import argparse
import json
import sys

from nimbus.datagen.tasks.json_schema import task_schema


def command(args: argparse.Namespace) -> int:
    """Print the schema as JSON."""
    sys.stdout.write(json.dumps(task_schema(skill_folders=args.skills), indent=2) + "\n")
    return 0
