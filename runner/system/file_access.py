"""Limits on the files that a command opens: those that the command line names, and nothing else of the user's.

Commands set them before anything of others is read; see :mod:`nimbus.datagen.files.access_limits`. A command that runs
code or task files of the user sets none, because these may open anything.
"""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from nimbus.datagen.files.access_limits import AccessLimits, limit_access
from nimbus.datagen.files.asset_folders import folders_of
from nimbus.datagen.files.cache import cache_folder, shared_folders
from nimbus.datagen.files.scene_files import is_path
from nimbus.datagen.files.variables import variable_path
from nimbus.datagen.geometry.warp_library import kernel_folder

DATA_COMMANDS = frozenset(
    "assets card convert filter hash lineage merge mirror qa report reword scale status view warm".split()
)
"""Commands that open what is named on the command line."""
TASK_COMMANDS = frozenset(
    "certify close-the-loop demonstrate evaluate export export-usd improve multiply replay rerender run verify".split()
)
"""Commands that also open files of tasks. A user whose own tasks name files keeps the right to read all files, because
scenes refer to files anywhere."""
FREE_READERS = frozenset("objects robot".split())
"""Commands on files of the user, which name others anywhere: they may read all files, and write only their outputs."""

VARIABLE = "NIMBUS_READ_FOLDERS"
"""Environment variable with more folders that commands may read, separated as in ``PATH``; ``/`` lifts all limits."""

_MAKERS = frozenset("close-the-loop demonstrate evaluate improve multiply run".split())
"""Commands whose output is in ``out`` by default."""
_BESIDE = frozenset("demonstrate multiply".split())
"""Commands that put recordings or a task beside their output."""
_TRAINERS = frozenset("close-the-loop improve".split())
"""Commands whose processes exchange gradients over TCP of this machine."""
_INTERPRETERS = ("NIMBUS_BLENDER_PYTHON", "NIMBUS_CUROBO_PYTHON", "NIMBUS_ISAACSIM")
"""Variables with programs that a stored task may need; these have folders and caches of their own."""
_OUTPUTS = ("html", "out", "picture", "save", "sheet", "token_to", "yields")
"""Parameters with the path of an output."""
SCHEMES = {"layouts": ("train",), "policy": ("replay", "state")}
"""Parameters with a text that names a folder after one of these words and a colon."""
_OWN_CODE = ("pipeline", "robot", "skills", "stored_task", "task", "task_name")
"""Parameters that may name code or task files of the user."""
_OTHER_PROGRAMS = {"cluster": None, "device": "cpu", "job": None, "nodes": None, "planner": "ompl", "sim": "newton"}
"""Parameters that start other programs, or use a GPU, unless they have this value."""
DEMONSTRATOR = "demonstrator"
"""Policy whose name wins over a folder of the current folder. The module of policies, which has these names too,
imports NumPy; that must not happen before the threads of libraries are limited."""


def limit_file_access(command: str, given: Mapping[str, Any]) -> None:
    """Limit the files and connections of this process for a command, if it has limits and the kernel enforces them.

    Args:
        command: Name of the command.
        given: Values of its parameters, by name; addresses are texts.

    Raises:
        InputError: An environment variable holds a relative path, or the cache cannot be used.
    """
    if (limits := command_limits(command, given)) is not None:
        limit_access(limits)


def command_limits(command: str, given: Mapping[str, Any]) -> AccessLimits | None:
    """Return the limits of a command, or None if it has none; its folder of temporary files moves into the cache.

    Raises:
        InputError: An environment variable holds a relative path, or the cache cannot be used.
    """
    more = [variable_path(VARIABLE, text) for text in os.environ.get(VARIABLE, "").split(os.pathsep) if text]
    is_known = command in DATA_COMMANDS | TASK_COMMANDS | FREE_READERS
    if not is_known or _is_unlimited(command, given) or Path("/") in more:
        return None
    is_remote = any("://" in str(one) for value in given.values() for one in _listed(value))
    has_own = command in TASK_COMMANDS and _has_own_tasks()
    reads_all = is_remote or command in FREE_READERS or has_own
    # A task that these commands make names demonstrations of this user, and is recorded as an own one.
    records = has_own or command in _BESIDE
    private = [*["own_tasks"] * records, *["remote", "servers"] * is_remote]
    written = (*map(cache_folder, private), *_own_places(), *_folders(given), *_outputs(command, given))
    return AccessLimits(
        read=None if reads_all else tuple(dict.fromkeys((*_named(given), *more, cache_folder("own_tasks")))),
        write=tuple(dict.fromkeys(written)),
        may_connect=is_remote or command in _TRAINERS or given.get("serve") is not None,
    )


def _is_unlimited(command: str, given: Mapping[str, Any]) -> bool:
    """Return True for a call that runs code of the user, a viewer, pip, or programs with folders of their own."""
    if command == "view" and not (given.get("sheet") or given.get("save")):
        return True
    if command == "robot" and given.get("action") != "check":
        return True
    if command in TASK_COMMANDS and any(os.environ.get(name) for name in _INTERPRETERS):
        return True
    if any(given.get(name, usual) != usual for name, usual in _OTHER_PROGRAMS.items()):
        return True
    if command == "run" and "://" in (given.get("out") or ""):  # senders to stores have settings anywhere
        return True
    own = (text for name in _OWN_CODE for text in _listed(given.get(name)))
    return any(isinstance(text, Path) or is_path(text) for text in own) or is_code(given.get("policy") or "")


def is_code(policy: str) -> bool:
    """Return True for a policy that is Python code: ``FILE.py:FUNCTION``, or a folder with a ``policy.py``."""
    if not policy or policy == DEMONSTRATOR:
        return False
    return policy.rpartition(":")[0].endswith(".py") or (":" not in policy and Path(policy, "policy.py").exists())


def _has_own_tasks() -> bool:
    return any(cache_folder("own_tasks").iterdir())


def _listed(value: object) -> Iterator[Any]:
    if isinstance(value, list | tuple):
        yield from value
    elif value is not None:
        yield value


def _named(given: Mapping[str, Any]) -> Iterator[Path]:
    """Yield the files and folders on the command line, also after a scheme such as ``replay:``."""
    for name, value in given.items():
        for one in _listed(value):
            if isinstance(one, Path):
                yield one
                yield from folders_of(one) if one.is_dir() else ()
            elif name in SCHEMES and isinstance(one, str):
                scheme, _, folder = one.partition(":")
                yield from [Path(folder)] if scheme in SCHEMES[name] and folder else []
            elif name in ("compare", "name_map") and one:
                yield Path(one)


def _folders(given: Mapping[str, Any]) -> Iterator[Path]:
    """Yield the datasets of a command: SQLite writes beside a ledger that it reads, and reports lie in the dataset."""
    for name in ("folder", "parts"):
        yield from (path for path in _listed(given.get(name)) if isinstance(path, Path))
    if isinstance(episode := given.get("episode"), tuple):  # a dataset and an id
        yield Path(episode[0])
    if source := given.get("source"):
        yield from (Path(source), _existing(Path(given["target"])))
    if given.get("action") == "annotate":
        yield from given["paths"]


def _outputs(command: str, given: Mapping[str, Any]) -> Iterator[Path]:
    """Yield the outputs of a command, or the folders in which they will be made."""
    named = [Path(path) for name in _OUTPUTS if isinstance(path := given.get(name), str | Path) and path]
    yield from (_existing(path) for path in named if path.name)
    if command in _BESIDE:
        yield from (_existing(path.parent) for path in named)
    if any(path.name for path in named):
        return
    if command == "convert":
        yield given["folder"].absolute().parent
    elif command in _MAKERS:
        if not (default := Path("out")).is_symlink():  # such an output is refused, see default_folder
            yield _existing(default)
    elif command in ("export-usd", "robot") or given.get("sheet"):
        yield Path()


def _own_places() -> Iterator[Path]:
    """Yield the folders of the cache, and that of temporary files, which is in the cache unless the user has one."""
    yield from shared_folders()
    place = Path(tempfile.gettempdir())
    is_relative = not os.path.isabs(os.environ.get("TMPDIR") or place)  # it begins in the current folder
    if is_relative or place.stat().st_mode & stat.S_IWOTH:  # such as /tmp, with the files of everything else
        tempfile.tempdir = os.environ["TMPDIR"] = str(cache_folder("temporary"))
    else:
        yield place
    yield kernel_folder()


def _existing(path: Path) -> Path:
    """Return a folder if it exists, or the nearest folder above an output, in which it is made or replaced."""
    path = path.absolute()
    return next(place for place in (path, *path.parents) if place.is_dir())
