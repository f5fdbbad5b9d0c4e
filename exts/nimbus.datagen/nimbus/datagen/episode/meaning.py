"""Meaning of a task in a few words: they stay with a dataset, so that yields are counted by them."""

from __future__ import annotations

from dataclasses import dataclass, field

LENGTHS = ((3, "1-3"), (5, "4-5"), (8, "6-8"))
"""Largest number of steps of each bin of lengths; longer ones are in ``9+``."""


@dataclass(frozen=True, kw_only=True)
class TaskMeaning:
    """Scene, goals and things of a task, as far as words go."""

    scene: str = ""
    """Name of the scene: a stage, a family of rooms, or a file."""
    relations: tuple[str, ...] = ()
    """Relations of the scene graph that its success asks for, each once, sorted."""
    steps: int = 0
    """Steps in the task file, those inside of loops once."""
    categories: dict[str, str] = field(default_factory=dict)
    """Categories of the kinds that it may draw, by kind."""


def length_bin(steps: int) -> str:
    """The bin of a number of steps, such as ``4-5``."""
    return next((name for most, name in LENGTHS if steps <= most), "9+")
