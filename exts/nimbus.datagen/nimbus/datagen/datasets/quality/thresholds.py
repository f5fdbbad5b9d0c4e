"""What the checks judge by; every number can be set on the command line."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace

from nimbus.datagen.errors import InputError, suggest


@dataclass(frozen=True, kw_only=True)
class Thresholds:
    """See each."""

    grid: float = 1e-4
    """[s] by which readers let a time miss its place."""
    jump: float = 8.0
    """How many times further than in 95 of 100 steps is a jump, …"""
    jump_share: float = 0.2
    """… if it is also this share of a column's range."""
    stats: float = 1e-3
    """Of a column's range: what stored statistics of numbers may differ by."""
    image_stats: float = 0.08
    """What the stored mean of pictures, 0 to 1, may differ by from that of the pictures looked at."""
    limit: float = 0.02
    """[rad, m] by which a joint may be beyond its limits."""
    speed: float = 1.5
    """Times a joint's velocity limit that it may move at between two rows."""
    still_step: float = 1e-4
    """[rad, m] a row: who moves less stands still."""
    still_share: float = 0.7
    """Share of an episode in which nothing moves, from which it is told."""
    lag: int = 3
    """Rows by which an episode's actions may lead its states otherwise than those of the others."""
    black: int = 16
    """No pixel of a black picture is brighter."""
    same: float = 5.0
    """Levels by which two pictures that are the same may differ anywhere once they are small: codecs flicker."""
    frozen_frames: int = 10
    """Pictures in a row that are the same, …"""
    frozen_motion: float = 0.3
    """[rad, m] … while a joint moves by this."""
    repeat_motion: float = 0.01
    """[rad, m] by which a joint moves from a row to the next, …"""
    repeat_share: float = 0.3
    """… and share of such rows whose picture is that of the row before."""
    outlier: float = 2.0
    """Times as far as those around it a picture is from its neighbours when it is in the wrong place."""
    pictures: int = 40_000
    """Pictures decoded at most; of more, windows spread evenly over every episode."""
    window: int = 12
    """Pictures in such a window."""
    same_motion: float = 1e-3
    """Of each column's range: two episodes this close all along are the same."""
    balance: float = 0.1
    """Episodes of the rarest task over those of the most frequent."""
    length: float = 4.0
    """Times longer or shorter than the median episode."""
    few: int = 10
    """Episodes from which a set is judged by its spread."""


def with_settings(thresholds: Thresholds, settings: Iterable[str]) -> Thresholds:
    """Thresholds with some set anew.

    Args:
        thresholds: What they are else.
        settings: Such as ``jump=12``.

    Raises:
        InputError: An unknown name, or no number.
    """
    known = {field.name: type(getattr(thresholds, field.name)) for field in fields(thresholds)}
    for setting in settings:
        name, _, text = setting.partition("=")
        if name not in known:
            raise InputError(f"no threshold '{name}'", where="--set", instead=suggest(name, known))
        try:
            value = known[name](text)
            if not 0 <= value < 1e12:
                raise ValueError
        except ValueError:
            raise InputError(f"'{text}' for {name}", where="--set", instead=f"write {name}={known[name](1)}") from None
        thresholds = replace(thresholds, **{name: value})
    return thresholds
