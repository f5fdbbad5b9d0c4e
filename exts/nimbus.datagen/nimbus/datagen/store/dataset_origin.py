"""One dataset, one origin: a folder that holds something else is refused."""

from __future__ import annotations

import re
from pathlib import Path

from nimbus.datagen.errors import InputError
from nimbus.datagen.store.folder import OTHER_OUT, check_writable
from nimbus.datagen.store.info import INFO_NAME, DatasetInfo, read_info
from nimbus.datagen.store.ledger.ledger import FILE_NAME as LEDGER_NAME


def check_folder(folder: Path, *, task: str, task_hash: str, seed: int) -> None:
    """Refuse early, and without making anything, what :meth:`Dataset.create_or_open` would refuse.

    Raises:
        InputError: The folder is a file, cannot be written, holds something else, or was made from something else.
    """
    folder = folder.absolute()
    check_writable(folder)
    if (folder / INFO_NAME).exists():
        refuse_other_task(folder, read_info(folder), task=task, task_hash=task_hash, seed=seed)
    elif folder.exists():
        refuse_foreign(folder)


def refuse_other_task(folder: Path, found: DatasetInfo, *, task: str, task_hash: str, seed: int) -> None:
    """Refuse a dataset of another task or seed, or one without its ledger."""
    if found.task != task:
        raise InputError(f"holds a dataset of task '{found.task}'", where=str(folder), instead=OTHER_OUT)
    if found.task_hash != task_hash:
        what = f"holds a dataset of another version of task '{found.task}'"
        raise InputError(what, where=str(folder), instead=f"{OTHER_OUT}, or restore the task file")
    if found.seed != seed:
        what = f"holds a dataset of seed {found.seed}, not {seed}"
        raise InputError(what, where=str(folder), instead=f"{OTHER_OUT}, or --seed {found.seed}")
    ledger = folder / LEDGER_NAME
    if found.episode_count and not (ledger.exists() and ledger.stat().st_size):
        state = "empty" if ledger.exists() else "missing"
        what = f"holds {found.episode_count} episodes but its {LEDGER_NAME} is {state}"
        raise InputError(what, where=str(folder), instead=f"restore it from a copy, or {OTHER_OUT}")


def refuse_other_inputs(folder: Path, found: DatasetInfo, wanted: DatasetInfo) -> None:
    """Refuse a dataset whose content something else decided."""
    for name in sorted({*found.inputs, *wanted.inputs}):
        then, now = (inputs.get(name) or "none" for inputs in (found.inputs, wanted.inputs))
        if then != now:
            what = f"holds a dataset made with another {name} ({_short(then)}, now {_short(now)})"
            raise InputError(what, where=str(folder), instead=f"{OTHER_OUT}, or restore what it was made with")


def _short(content: str) -> str:
    """The beginning of a hash, or what else is said as a whole."""
    return content[:16] if re.fullmatch("[0-9a-f]{32,}", content) else content


def refuse_foreign(folder: Path) -> None:
    """Refuse a folder that is not empty and no dataset."""
    strangers = sorted(path.name for path in folder.iterdir())
    if strangers:
        what = f"holds '{strangers[0]}' and no {INFO_NAME}: not a dataset"
        raise InputError(what, where=str(folder), instead=f"{OTHER_OUT}, new or empty")
