"""Limits on the files that a command opens: those that the command line names, and nothing else of the user's.

Commands that read datasets of others set them before anything of the dataset is read; see
:mod:`nimbus.datagen.files.access_limits`. Commands that run skills, policies or task files of the user set none.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from nimbus.datagen.files.access_limits import AccessLimits, limit_access
from nimbus.datagen.files.cache import cache_folder
from nimbus.datagen.files.scene_files import is_path
from nimbus.datagen.files.variables import variable_path

DATA_COMMANDS = frozenset("card convert filter hash lineage merge mirror qa report reword status view".split())
"""Commands that open datasets and no files of tasks."""
TASK_COMMANDS = frozenset("certify export export-usd replay rerender verify".split())
"""Commands that also open files of stored tasks. A user whose own tasks name files keeps the right to read them all,
because scenes refer to files anywhere."""

VARIABLE = "NIMBUS_READ_FOLDERS"
"""Environment variable with more folders that these commands may read, separated as in ``PATH``."""

_OUTPUTS = ("html", "out", "picture", "save", "sheet", "yields")
"""Parameters with the path of an output."""
_OWN_CODE = ("pipeline", "robot", "skills", "stored_task", "task", "task_name")
"""Parameters that may name code or task files of the user, which may open anything."""
_WARP = "WARP_CACHE_PATH"


def limit_file_access(command: str, given: Mapping[str, Any]) -> bool:
    """Limit the files and connections of this process for a command; return False if the command has no limits.

    Args:
        command: Name of the command.
        given: Values of its parameters, by name.

    Raises:
        InputError: An environment variable holds a relative path, or the cache cannot be used.
    """
    limits = command_limits(command, given)
    return limits is not None and limit_access(limits)


def command_limits(command: str, given: Mapping[str, Any]) -> AccessLimits | None:
    """Return the limits of a command, or None if it has none; its folder of temporary files moves into the cache."""
    if command not in DATA_COMMANDS | TASK_COMMANDS or _is_open(command, given):
        return None
    texts = [str(one) for value in given.values() for one in _listed(value)]
    is_remote = any("://" in text for text in texts)
    reads_all = is_remote or (command in TASK_COMMANDS and any(cache_folder("own_tasks").iterdir()))
    named = [path for value in given.values() for path in _listed(value) if isinstance(path, Path)]
    written = [_existing(given[name]) for name in _OUTPUTS if isinstance(given.get(name), Path)]
    more = [variable_path(VARIABLE, text) for text in os.environ.get(VARIABLE, "").split(os.pathsep) if text]
    return AccessLimits(
        read=None if reads_all else (*named, *more),
        write=tuple(dict.fromkeys((*_own_places(), *_folders(given), *_default_outputs(command, given), *written))),
        may_connect=is_remote or bool(given.get("serve")),
    )


def _is_open(command: str, given: Mapping[str, Any]) -> bool:
    """Return True for a call that runs code of the user, a viewer, or a GPU's driver."""
    if given.get("device") == "cuda" or (command == "view" and not (given.get("sheet") or given.get("save"))):
        return True
    own = (text for name in _OWN_CODE for text in _listed(given.get(name)))
    return any(isinstance(text, Path) or is_path(text) for text in own)


def _listed(value: object) -> Iterator[Any]:
    if isinstance(value, list | tuple):
        yield from value
    elif value is not None:
        yield value


def _folders(given: Mapping[str, Any]) -> Iterator[Path]:
    """Yield the datasets of a command: SQLite writes beside a ledger that it reads, and reports lie in the dataset."""
    for name in ("folder", "parts"):
        yield from (path for path in _listed(given.get(name)) if isinstance(path, Path))
    if isinstance(episode := given.get("episode"), tuple):  # a dataset and an id
        yield Path(episode[0])
    if source := given.get("source"):
        yield from (Path(source), _existing(Path(given["target"])))


def _default_outputs(command: str, given: Mapping[str, Any]) -> Iterator[Path]:
    """Yield the folders of outputs that no parameter names."""
    if command == "convert" and given["out"] is None:
        yield given["folder"].absolute().parent
    if command == "export-usd" and given["out"] is None:
        yield Path()
    if command == "view" and given["sheet"] is not None and not given["sheet"].name:
        yield Path()


def _own_places() -> Iterator[Path]:
    """Yield the cache and the folder of temporary files, which is in the cache unless the user has named another."""
    temporary = cache_folder("temporary")
    yield temporary.parent
    if not any(os.environ.get(name) for name in ("TMPDIR", "TEMP", "TMP")):
        tempfile.tempdir = os.environ["TMPDIR"] = str(temporary)
    yield Path(tempfile.gettempdir())
    if kernels := os.environ.get(_WARP):
        yield variable_path(_WARP, kernels)


def _existing(path: Path) -> Path:
    """Return a path if it exists, or the nearest folder above it, in which it will be made."""
    path = path.absolute()
    return next(place for place in (path, *path.parents) if place.is_dir() or (place == path and path.is_file()))
