"""Commands work in the root folder, because libraries open files of the current one, which may be a dataset of others.

Commands with ``--skills`` or a policy in Python on the command line stay in the folder in which they were started,
because this code of the user may open files relative to it. Code that a pipeline file names, and skills of installed
packages, run in the root folder.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nimbus.datagen.files.scene_files import resolve_from, scene_names
from nimbus.datagen.files.start_folder import leave_start_folder, start_folder
from nimbus.runner.system.file_access import DEMONSTRATOR, SCHEMES, is_code

_STAYING = frozenset(["cluster", "studio"])
"""Commands that print paths of other machines, or in which the user writes more paths."""
_NAMES = frozenset("file libraries library_name pipeline robot scene stored_task task task_name".split())
"""Parameters with a name or a path."""
_PATHS = frozenset("compare name_map out source target".split())
"""Parameters with texts that are paths or addresses."""


def work_in_root(command: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Move this process into the root folder if the command needs no other; return its parameters with new values.

    Args:
        command: Name of the command.
        given: Values of its parameters, by name; addresses are texts.
    """
    if command in _STAYING or given.get("skills") or is_code(given.get("policy") or ""):
        return {}
    here = start_folder()
    moved = {name: _absolute(here, name, value) for name, value in given.items()}
    leave_start_folder()
    return {name: value for name, value in moved.items() if value != given[name]}


def _absolute(here: Path, name: str, value: Any) -> Any:
    """Return the value of a parameter with absolute paths, also in lists."""
    if name == "episode" and isinstance(value, tuple):  # a dataset and an id
        return str(here / value[0]), value[1]
    if isinstance(value, list | tuple):
        return type(value)(_absolute(here, name, one) for one in value)
    if isinstance(value, Path):
        return here / value if value.parts else value  # without parts, the name of a file is chosen later
    if not isinstance(value, str) or not value or "://" in value:
        return value
    if name in _PATHS:
        return str(here / value)
    if name == "task" and value not in scene_names("tasks") and Path(value).is_dir():
        return str(here / value)
    if name in _NAMES:
        return resolve_from(here, value)
    scheme, colon, place = value.partition(":")
    if colon and scheme in SCHEMES.get(name, ()):
        return f"{scheme}:{here / place}"
    return str(here / value) if name == "policy" and value != DEMONSTRATOR and Path(value).exists() else value
