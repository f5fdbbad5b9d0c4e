"""Whether a task's regions hold its objects, asked before anything is made."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from nimbus.datagen.random_streams import generator
from nimbus.datagen.randomize.objects import draw_objects
from nimbus.datagen.tasks.task import Task

if TYPE_CHECKING:
    from nimbus.datagen.load.scene_loader import SceneAssets

_DRAWS = 3


def check_room(task: Task, assets: SceneAssets, *, seed: int) -> None:
    """Draw the first layouts of a run with as many objects as the task allows.

    Args:
        task: The task.
        assets: What it names.
        seed: The run's seed.

    Raises:
        InputError: A region is too small for its objects, with its place in the file.
    """
    fullest = {name: group.model_copy(update={"count": (group.count[1],) * 2}) for name, group in task.objects.items()}
    for index in range(_DRAWS):
        streams = partial(generator, seed, index, "physical", "objects")
        draw_objects(replace(task, objects=fullest), assets.stage, streams, reachable=assets.reach)
