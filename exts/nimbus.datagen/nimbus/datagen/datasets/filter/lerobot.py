"""Filter of a LeRobot dataset; the new dataset has the same LeRobot version."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from nimbus.datagen.datasets.convert.convert import VERSION_OF, Converted, convert
from nimbus.datagen.datasets.convert.lerobot_set import LeRobotEpisode, LeRobotSet
from nimbus.datagen.datasets.convert.meta_files import read_info
from nimbus.datagen.datasets.filter.expression import Condition
from nimbus.datagen.errors import InputError


def filter_lerobot(
    folder: Path, out: Path, condition: Condition, *, tell: Callable[[int], None] = lambda left: None
) -> Converted:
    """Write the episodes that meet a condition as a new, renumbered dataset.

    Args:
        folder: Folder of the source dataset.
        out: Folder of the new dataset.
        condition: Condition on the values that :func:`columns_of` returns.
        tell: Called with the number of remaining files or episodes.

    Raises:
        InputError: The condition uses an unknown column, or no episode meets it; and the errors of
            :func:`~nimbus.datagen.datasets.convert.convert.convert`.
        StorageError: The disk is full; nothing was published.
    """

    def choose(source: LeRobotSet) -> list[int]:
        columns = {name for item in source.items for name in columns_of(item, source)}
        condition.check(dict.fromkeys(columns))
        chosen = [item.number for item in source.items if condition(columns_of(item, source))]
        if not chosen:
            raise no_episode(condition, len(source.items))
        return chosen

    version = read_info(folder)["codebase_version"]
    return convert(folder, out, to=VERSION_OF[version], choose=choose, tell=tell)


def no_episode(condition: Condition, count: int) -> InputError:
    """Return the error for a condition that no episode meets."""
    what = f"none of the {count} episodes meets '{condition.text}'"
    return InputError(what, where="--where", instead="give a weaker condition")


def columns_of(item: LeRobotEpisode, source: LeRobotSet) -> dict[str, Any]:
    """Return the values of an episode by column, for conditions.

    The columns are ``index``, ``length`` [frames], ``seconds``, ``task``, ``tasks``, and those in the table of
    episodes.
    """
    return {
        **item.extra,
        "index": item.number,
        "length": item.length,
        "seconds": item.length / source.fps,
        "task": item.tasks[0] if item.tasks else "",
        "tasks": list(item.tasks),
    }
