"""Sorts of inputs, and the command line as their reader."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np


@dataclass(frozen=True, kw_only=True)
class Sort:
    """One sort of inputs: how a good one is made, how it is spoilt, and what reads it."""

    name: str
    make: Callable[[Path], object]
    """Fills a folder with a good input, once."""
    spoil: Callable[[Path, np.random.Generator], str]
    """Changes a copy of it; returns what was done, in a few words."""
    read: Callable[[Path, np.random.Generator], object]
    """Reads the copy; ``InputError`` is a good end."""
    weight: float = 1.0
    """Share of all inputs, compared with the other sorts."""


class Crash(Exception):
    """A command that ended as only a bug makes it end."""


def command(*words: object) -> int:
    """Run a command as a user does; the exit code.

    Raises:
        Crash: It ended with a traceback, or with a code that it does not document.
    """
    from nimbus.runner.cli import main

    code = main([str(word) for word in words])
    if code not in (0, 1, 2):
        raise Crash(f"nimbus {words[0]} exits with {code}")
    return code
