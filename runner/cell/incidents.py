"""A folder for each fault: what, when, in which phase of which episode, the stacks, the last lines, the task."""

from __future__ import annotations

import json
import logging
import os
import re
import shutil
import time
from pathlib import Path

_log = logging.getLogger(__name__)

KEPT = 200
"""Folders that are kept, the newest; how many faults there were is in the ledger."""
_LONGEST_TEXT = 256 << 10
"""Letters of a file; of a longer text the end is kept."""
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
        kind: What happened, for example ``hang``; becomes part of the name.
        worker: Number of the worker.
        phase: What it was in.
        index: Episode, -1 for none.
        lease: How often that episode was handed out.
        detail: One line for people.
        stack: Stacks of its threads.
        log_tail: The last lines of its log.
        task_text: The task file.

    Returns:
        The folder; ``None``, and a warning in the log, when the disk does not take it: a fault must not cause another.
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
            (made / name).write_text(text, encoding="utf-8", errors="backslashreplace")
        _forget_oldest(folder / "incidents")
    except OSError as error:
        _log.warning("cannot write an incident (%s of worker %d): %s", kind, worker, error)
        if made:
            shutil.rmtree(made, ignore_errors=True)
        return None
    return made


def _new_folder(incidents: Path, moment: str, kind: str) -> Path:
    incidents.mkdir(exist_ok=True)
    word = re.sub(r"[^A-Za-z0-9_]+", "_", kind)[:40] or "fault"
    taken = [_order(name)[1] for name in os.listdir(incidents) if name.startswith(f"{moment}-")]
    first = max(taken, default=0) + 1
    for number in range(first, first + _ATTEMPTS):
        path = incidents / f"{moment}-{number}-{word}"
        try:
            path.mkdir()
            return path
        except FileExistsError:
            continue
    raise FileExistsError(f"{incidents}: no free name")


def _order(name: str) -> tuple[str, int]:
    """By time; incidents of one second by their number."""
    match = re.fullmatch(r"(\d{8}-\d{6})-(\d+)-\w+", name)
    return (match[1], int(match[2])) if match else ("", 0)


def _forget_oldest(incidents: Path) -> None:
    """Remove all but the newest; what has another kind of name is somebody else's."""
    ours = sorted((name for name in os.listdir(incidents) if _order(name)[0]), key=_order)
    for name in ours[:-KEPT]:
        shutil.rmtree(incidents / name, ignore_errors=True)
