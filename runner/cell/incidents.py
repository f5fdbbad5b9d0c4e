"""Incident folders: one for each fault, with its facts, stacks, log tail and task file."""

from __future__ import annotations

import json
import logging
import os
import re
import sys
import time
from contextlib import suppress
from pathlib import Path

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.installation import PACKAGE_FOLDER
from nimbus.datagen.files.own_files import make_subfolder, remove_tree, write_new

_log = logging.getLogger(__name__)

KEPT = 200
"""Number of the newest incident folders that are kept; the ledger counts all faults."""
_LONGEST_TEXT = 256 << 10
"""Longest text written to a file [characters]; of a longer text, only the end is written."""
_ATTEMPTS = 100


def write_incident(
    folder: Path,
    *,
    kind: str,
    worker: int,
    phase: str,
    index: int,
    lease: int,
    detail: str,
    stack: str = "",
    log_tail: str = "",
    task_text: str = "",
) -> Path | None:
    """Write ``incidents/<YYYYmmdd-HHMMSS>-<n>-<kind>/`` (UTC) below a dataset's folder.

    Args:
        folder: The dataset's folder.
        kind: Kind of fault, for example ``hang``; part of the folder's name.
        worker: Row of the worker, as in the ledger.
        phase: Phase of the worker.
        index: Episode, -1 for none.
        lease: Number of the episode's lease.
        detail: One-line description.
        stack: Stacks of its threads.
        log_tail: End of its log.
        task_text: Text of the task file.

    Returns:
        The folder; None, with a warning in the log, when it cannot be written: a fault must not cause another.
    """
    now = time.time()
    facts = {
        "kind": kind,
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now)),
        "worker": worker,
        "phase": phase,
        "index": index,
        "lease": lease,
        "detail": detail,
    }
    texts = {
        "incident.json": json.dumps(facts, indent=2) + "\n",
        "stack.txt": stack[-_LONGEST_TEXT:],
        "log.txt": log_tail[-_LONGEST_TEXT:],
        "task.yaml": task_text,
    }
    made = None
    try:
        made = _new_folder(folder / "incidents", time.strftime("%Y%m%d-%H%M%S", time.gmtime(now)), kind)
        for name, text in texts.items():
            write_new(made / name, _portable(text, folder).encode(errors="backslashreplace"))
        _forget_oldest(folder / "incidents")
    except (OSError, InputError) as error:
        _log.warning("cannot write an incident (%s of worker %d): %s", kind, worker, error)
        if made:
            with suppress(OSError):
                remove_tree(made)
        return None
    return made


def _new_folder(incidents: Path, moment: str, kind: str) -> Path:
    make_subfolder(incidents)
    word = re.sub(r"[^A-Za-z0-9_]+", "_", kind)[:40] or "fault"
    taken = [_order(name)[1] for name in os.listdir(incidents) if name.startswith(f"{moment}-")]
    first = max(taken, default=0) + 1
    for number in range(first, first + _ATTEMPTS):
        path = incidents / f"{moment}-{number}-{word}"
        try:
            # mkdir fails for an existing folder, so that two processes cannot take the same name.
            path.mkdir()
            return path
        except FileExistsError:
            continue
    raise FileExistsError(f"{incidents}: no free name")


def _order(name: str) -> tuple[str, int]:
    """Return the sort key of an incident's name: its second, then its number."""
    match = re.fullmatch(r"(\d{8}-\d{6})-(\d+)-\w+", name)
    return (match[1], int(match[2])) if match else ("", 0)


def _forget_oldest(incidents: Path) -> None:
    """Remove all but the newest incidents; folders with other names are left alone."""
    ours = sorted((name for name in os.listdir(incidents) if _order(name)[0]), key=_order)
    for name in ours[:-KEPT]:
        with suppress(OSError):
            remove_tree(incidents / name)


def _portable(text: str, folder: Path) -> str:
    """Replace this machine's folders, which reveal user names, because a dataset is shared with its incidents."""
    home = os.path.expanduser("~")
    places = {str(folder): ".", str(PACKAGE_FOLDER): "<nimbus>", sys.prefix: "<python>", sys.base_prefix: "<python>"}
    places |= {home: "~"} if len(home) > 1 else {}
    # Longest first: the dataset's folder is usually inside the home folder.
    for place in sorted(places, key=len, reverse=True):
        text = re.sub(rf"{re.escape(place)}(?=[/\"':\s]|$)", places[place], text)
    return text
