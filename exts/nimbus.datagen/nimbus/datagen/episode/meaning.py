"""Meaning of a task in a few words, stored with a dataset so that its yields can be counted by meaning."""

from __future__ import annotations

from dataclasses import dataclass, field

LENGTHS = ((3, "1-3"), (5, "4-5"), (8, "6-8"))
"""Largest number of steps in each bin of lengths; longer tasks are in ``9+``."""


@dataclass(frozen=True, kw_only=True)
class TaskMeaning:
    """Scene, goals and objects of a task, in words."""

    scene: str = ""
    """Name of the scene: a stage, a family of rooms, or a file."""
    relations: tuple[str, ...] = ()
    """Relations of the scene graph that the success conditions require, sorted and without repetitions."""
    steps: int = 0
    """Number of steps in the task file; steps inside loops count once."""
    categories: dict[str, str] = field(default_factory=dict)
    """Category of each kind that the task may draw, by kind."""


def length_bin(steps: int) -> str:
    """Return the bin of a number of steps, such as ``4-5``."""
    return next((name for most, name in LENGTHS if steps <= most), "9+")
