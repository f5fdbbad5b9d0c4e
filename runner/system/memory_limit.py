"""Memory limit of the commands that only read: a damaged or hostile file may not use up the machine's memory."""

from __future__ import annotations

import os
import resource

from nimbus.datagen.errors import InputError
from nimbus.datagen.machine import total_memory

READERS = frozenset(
    "assets card certify convert export filter hash lineage merge mirror objects qa replay report reword status "
    "verify view warm".split()
)
"""Commands that open foreign files and use no GPU. Commands that use a GPU have no limit, because its drivers reserve
memory that they never use."""

VARIABLE = "NIMBUS_MEMORY_LIMIT"
"""Environment variable with another limit [GB]; 0 for none."""

_SHARE = 0.75
"""Part of the memory that a reading command may use."""
_LEAST = 4 << 30
"""Smallest limit [bytes]; the libraries alone use a part of it."""


def limit_memory() -> None:
    """Limit the private memory of this process and of each process that it starts.

    Raises:
        InputError: The environment variable holds no number of gigabytes.
    """
    limit = _limit()
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    lower = [known for known in (limit, soft, hard) if known != resource.RLIM_INFINITY]
    if lower:
        resource.setrlimit(resource.RLIMIT_DATA, (min(lower), hard))


def memory_complaint() -> str:
    """Return the message for a :class:`MemoryError`, or an empty text if this process has no limit."""
    soft, _ = resource.getrlimit(resource.RLIMIT_DATA)
    if soft == resource.RLIM_INFINITY:
        return ""
    return (
        f"memory: more than {soft / 1e9:.1f} GB would be needed, which a damaged file may cause; "
        f"check where the files come from, or set {VARIABLE} to more gigabytes"
    )


def _limit() -> int:
    text = os.environ.get(VARIABLE, "").strip()
    if not text:
        return max(_LEAST, int(_SHARE * total_memory()))
    if not text.isdecimal() or len(text) > 5:
        raise InputError(f"'{text}' is not a number of gigabytes", where=VARIABLE, instead="write one such as 16, or 0")
    return int(text) * 10**9 or resource.RLIM_INFINITY
