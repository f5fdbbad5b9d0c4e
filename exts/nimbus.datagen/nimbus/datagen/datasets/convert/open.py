"""Opening a LeRobot dataset to write it anew."""

from __future__ import annotations

from pathlib import Path

from nimbus.datagen.datasets.convert import read_v21, read_v30
from nimbus.datagen.datasets.convert.lerobot_set import LeRobotSet
from nimbus.datagen.datasets.convert.meta_files import INFO, read_info
from nimbus.datagen.errors import InputError


def open_set(folder: Path) -> LeRobotSet:
    """The dataset in a folder.

    Raises:
        InputError: There is none, or something in its tables is missing, damaged, or does not fit together.
    """
    info = read_info(folder)
    found = (read_v30 if info["codebase_version"] == "v3.0" else read_v21).read(folder, info)
    if not found.items:
        raise InputError("no episode in it", where=str(folder), instead="give a dataset that holds some")
    if info["total_episodes"] != len(found.items):
        what = f"total_episodes {info['total_episodes']}, found {len(found.items)}"
        raise InputError(what, where=str(folder / INFO), instead="see what 'nimbus qa' says")
    for item in found.items:
        for path in (item.rows, *(clip.path for clip in item.clips.values())):
            if not path.is_file():
                name = path.relative_to(folder).as_posix()
                raise InputError(f"{name} is missing", where=str(folder), instead="restore it from a copy")
    return found
