"""``python -m nimbus.datagen.ui.runs.check TASK``: loads a task with all that it names, and says in JSON what is in it.

Runs in a process of its own, with all dependencies; the panel reads the last line of what it prints.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

from nimbus.datagen.errors import InputError


def main(words: Sequence[str]) -> int:
    """Print one line of JSON: a summary of the task, or the line that says what is wrong with it."""
    try:
        summary = summarize(words[0])
    except InputError as error:
        sys.stdout.write(json.dumps({"problem": str(error)}) + "\n")
        return error.exit_code
    sys.stdout.write(json.dumps(summary) + "\n")
    return 0


def summarize(name: str) -> dict[str, object]:
    """What a panel shows of a task.

    Raises:
        InputError: It cannot be loaded, or does not fit its scene, robot and libraries.
    """
    from nimbus.datagen.tasks.task import load_task

    task = load_task(name)
    from nimbus.datagen.load.scene_loader import (
        load_assets,  # loads the simulator: not before the file is known to be right
    )

    assets = load_assets(task)
    return {
        "name": task.name,
        "path": task.path,
        "robot": assets.robot.name,
        "scene": assets.stage.name,
        "objects": [
            f"{group}: {_count(settings.count)} of {settings.library}" for group, settings in task.objects.items()
        ],
        "cameras": [f"{camera}: {s.size[0]} x {s.size[1]}" for camera, s in task.cameras.items()],
        "randomized": sorted(task.randomize),
        "instructions": list(task.instructions),
    }


def _count(count: Sequence[int]) -> str:
    low, high = count
    return str(low) if low == high else f"{low} to {high}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
