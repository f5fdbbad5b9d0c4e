"""Origin checks: a dataset has one origin, and other folders are refused."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from nimbus.datagen.errors import InputError, quote_words
from nimbus.datagen.files.folder_lock import LOCK_NAME
from nimbus.datagen.store.folder import OTHER_OUT, check_writable
from nimbus.datagen.store.info import INFO_NAME, DatasetInfo, read_info
from nimbus.datagen.store.ledger.ledger import FILE_NAME as LEDGER_NAME
from nimbus.datagen.store.remote.cache_root import address_of, stands_for
from nimbus.datagen.version import was_source_hash


def check_folder(folder: Path, *, task: str, task_hash: str, seed: int, collection: str = "") -> None:
    """Refuse a folder that :meth:`Dataset.create_or_open` would refuse, without creating anything.

    Raises:
        InputError: The folder is a file, cannot be written, or holds other files or a dataset of another origin.
    """
    folder = folder.absolute()
    check_writable(folder)
    if (folder / INFO_NAME).exists():
        info = read_info(folder)
        refuse_other_task(folder, info, task=task, task_hash=task_hash, seed=seed, collection=collection)
    elif folder.exists():
        refuse_foreign(folder)


def refuse_other_task(
    folder: Path, found: DatasetInfo, *, task: str, task_hash: str, seed: int, collection: str = ""
) -> None:
    """Refuse a dataset of another task, task folder or seed, or one without its ledger."""
    if bool(found.tasks) != bool(collection) or found.task != (collection or task):
        holds = "the tasks of" if found.tasks else "task"
        raise InputError(f"holds a dataset of {holds} '{found.task}'", where=address_of(folder), instead=OTHER_OUT)
    known = found.tasks[task].task_hash if task in found.tasks else task_hash if collection else found.task_hash
    if known != task_hash:
        what = f"holds a dataset of another version of task '{task}'"
        raise InputError(what, where=address_of(folder), instead=f"{OTHER_OUT}, or restore the task file")
    if found.seed != seed:
        what = f"holds a dataset of seed {found.seed}, not {seed}"
        raise InputError(what, where=address_of(folder), instead=f"{OTHER_OUT}, or {quote_words('--seed', found.seed)}")
    ledger = folder / LEDGER_NAME
    if found.episode_count and not (ledger.exists() and ledger.stat().st_size):
        state = "empty" if ledger.exists() else "missing"
        what = f"holds {found.episode_count} episodes but its {LEDGER_NAME} is {state}"
        raise InputError(what, where=address_of(folder), instead=f"restore it from a copy, or {OTHER_OUT}")


def refuse_other_inputs(folder: Path, found: DatasetInfo, wanted: DatasetInfo) -> None:
    """Refuse a dataset with other inputs that decide its content."""
    inputs = found.inputs_of(wanted.task)
    refuse_source_hashes(
        inputs, wanted.inputs, where=address_of(folder), instead=f"continue it with that version, or {OTHER_OUT}"
    )
    if found.field_schema != wanted.field_schema:
        what = (
            f"holds a dataset of field schema {found.field_schema}; this version of Nimbus writes {wanted.field_schema}"
        )
        instead = f"continue it with the version that began it, or {OTHER_OUT}"
        raise InputError(what, where=address_of(folder), instead=instead)
    if difference := find_difference(inputs, wanted.inputs):
        what = f"holds a dataset made with another {difference}"
        name = difference.partition(" (")[0]
        instead = f"give {_flag(name, inputs)}" if name in _FLAGS else "restore the original inputs"
        raise InputError(what, where=address_of(folder), instead=f"{OTHER_OUT}, or {instead}")


_FLAGS = ("images", "physics", "planner", "sim")
"""Inputs that are flags of ``nimbus run``."""
_ENGINES = {"newton": "mujoco"}
"""Values of ``--physics`` for simulators of another name."""


def _flag(name: str, inputs: Mapping[str, str]) -> str:
    """Return the flag with which a dataset was made."""
    value = inputs.get(name) or _WHERE_ABSENT.get(name, "newton")
    return quote_words(f"--{name}", _ENGINES.get(value, value) if name == "physics" else value)


_WHERE_ABSENT = {"images": "lossless"}
"""Values of inputs that are left out of a dataset when they are the default."""


def find_difference(found: Mapping[str, str], wanted: Mapping[str, str]) -> str:
    """Return the first differing input with both values, as in ``mujoco (3.1, now 3.2)``; empty if none differs."""
    for name in sorted({*found, *wanted}):
        then, now = (inputs.get(name) or _WHERE_ABSENT.get(name, "none") for inputs in (found, wanted))
        if then != now:
            return f"{name} ({_shorten(then)}, now {_shorten(now)})"
    return ""


def refuse_source_hashes(
    found: Mapping[str, str], wanted: Mapping[str, str], *, where: str, instead: str, made_by: str = ""
) -> None:
    """Refuse a dataset made before components and generators had version numbers, because changes cannot be detected.

    Args:
        found: Identities in the dataset, by name.
        wanted: Current identities.
        where: The dataset or the episode.
        instead: The fix.
        made_by: Version of Nimbus that made the dataset, if ``found`` does not contain it.

    Raises:
        InputError: An identity in ``found`` is a hash of source text.
    """
    if any(was_source_hash(found[name], now) for name, now in wanted.items() if name in found):
        made_by = made_by or found.get("nimbus-datagen", "")
        what = f"made by Nimbus {made_by}, which identified components by a hash of their source"
        raise InputError(what, where=where, instead=instead)


def _shorten(content: str) -> str:
    """Return the beginning of a hash, or another text whole."""
    return content[:16] if re.fullmatch("[0-9a-f]{32,}", content) else content


def refuse_foreign(folder: Path) -> None:
    """Refuse a folder that is neither empty nor a dataset."""
    if stands_for(folder):
        return  # a spool contains its own files from the start; its store was checked before
    strangers = sorted(path.name for path in folder.iterdir() if path.name != LOCK_NAME)
    if strangers:
        what = f"holds '{strangers[0]}' and no {INFO_NAME}: not a dataset"
        raise InputError(what, where=address_of(folder), instead=f"{OTHER_OUT} that is new or empty")
