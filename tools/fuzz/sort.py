"""Sorts of inputs, and commands that read them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np


@dataclass(frozen=True, kw_only=True)
class Sort:
    """One sort of inputs, with functions that make, damage and read an input."""

    name: str
    make: Callable[[Path], object]
    """Function that writes an undamaged input to a folder; called once."""
    spoil: Callable[[Path, np.random.Generator], str]
    """Function that damages a copy of the input and returns a short description of the damage."""
    read: Callable[[Path, np.random.Generator], object]
    """Function that reads the copy; ``InputError`` is an accepted result."""


class Crash(Exception):
    """Raised for a command that ended with an undocumented exit code or a traceback."""


def command(*words: object) -> int:
    """Run a command as a user does; return its exit code.

    Raises:
        Crash: The command ended with a traceback or an undocumented exit code.
    """
    from nimbus.runner.cli import main

    code = main([str(word) for word in words])
    if code not in (0, 1, 2):
        raise Crash(f"nimbus {words[0]} exits with {code}")
    return code
