"""Checks of the rows that nodes report: values that no cell writes are refused before they reach the ledger."""

from __future__ import annotations

import re
from collections.abc import Iterable

from nimbus.datagen.episode.trajectory import Reason
from nimbus.datagen.store.ledger.attempt import Attempt

_ID = re.compile("[A-Za-z0-9][A-Za-z0-9_-]*-[0-9a-f]{8}")
_LONGEST_ID = 200
_LONGEST_NAME = 255
"""Longest file name [bytes]."""
_DEEPEST = 32
"""Largest nesting depth of drawn values."""


def check_rows(rows: Iterable[Attempt]) -> None:
    """Check the rows of a report.

    Args:
        rows: Rows of one episode.

    Raises:
        ValueError: An id or a file name does not match the row's episode, a reason is unknown, or drawn values are
        nested too deeply.
    """
    for row in rows:
        numbers = f"-s{row.seed}-{row.idx:06d}-v{row.variant}"
        has_form = len(row.episode_id) <= _LONGEST_ID and _ID.fullmatch(row.episode_id)
        if not has_form or not row.episode_id[:-9].endswith(numbers):
            raise ValueError(f"{row.episode_id[:_LONGEST_ID]!a} is not the id of this episode")
        Reason(row.reason)
        _check_files(row)
        if not _is_flat(row.drawn):
            raise ValueError(f"{row.episode_id}: drawn values of more than {_DEEPEST} levels")


def _check_files(row: Attempt) -> None:
    """Check that files are named after the episode: other names could replace files of other episodes."""
    wanted = {row.path: f"episodes/{row.episode_id}.hdf5"} if row.path else {}
    if row.failure:
        wanted[row.failure.path] = f"failures/{row.episode_id}.a{row.attempt}.hdf5"
    names = [name for name, right in wanted.items() if name != right]
    names += [video.path for video in row.videos if not video.path.startswith(f"episodes/{row.episode_id}.")]
    names += [video.path for video in row.videos if len(video.path.encode()) > _LONGEST_NAME]
    if names:
        raise ValueError(f"{names[0][:_LONGEST_NAME]!a} is not a file of episode {row.episode_id}")


def _is_flat(value: object) -> bool:
    """Return True if values are not nested too deeply; one level is checked at a time, without recursion."""
    level = [value]
    for _ in range(_DEEPEST):
        parts: list[object] = []
        for each in level:
            parts += each.values() if isinstance(each, dict) else each if isinstance(each, list) else ()
        if not parts:
            return True
        level = parts
    return False
