"""Limits of the checks, which can be set on the command line."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace

from nimbus.datagen.errors import InputError, suggest


@dataclass(frozen=True, kw_only=True)
class Thresholds:
    """Thresholds of the quality checks."""

    grid: float = 1e-4
    """Tolerance of readers for time stamps [s]."""
    jump: float = 8.0
    """Factor on the 95th percentile of steps above which a step is a jump, …"""
    jump_share: float = 0.2
    """… if it also exceeds this fraction of the column's range."""
    stats: float = 1e-3
    """Tolerance of stored numeric statistics, as a fraction of a column's range."""
    image_stats: float = 0.08
    """Tolerance of the stored mean of images, 0 to 1."""
    limit: float = 0.02
    """Distance by which a joint may exceed its limits [rad, m]."""
    speed: float = 1.5
    """Ratio to a joint's velocity limit above which its speed is reported."""
    still_step: float = 1e-4
    """Motion per row below which the robot stands still [rad or m]."""
    still_share: float = 0.7
    """Fraction of an episode without motion above which it is reported."""
    lag: int = 3
    """Largest deviation from the usual number of rows by which actions lead states."""
    black: int = 16
    """Largest brightness of any pixel of a black image [levels]."""
    same: float = 5.0
    """Largest difference anywhere between two equal images after reduction [levels], because codecs flicker."""
    frozen_frames: int = 10
    """Number of equal images in a row, …"""
    frozen_motion: float = 0.3
    """… while a joint moves by at least this [rad, m]."""
    repeat_motion: float = 0.01
    """Motion of a joint between two rows [rad, m], …"""
    repeat_share: float = 0.3
    """… and fraction of such rows whose image equals the previous one."""
    outlier: float = 2.0
    """Ratio to the usual distance above which an image is out of place among its neighbors."""
    pictures: int = 40_000
    """Largest number of decoded images; larger datasets are sampled in windows spread evenly over every episode."""
    window: int = 12
    """Number of images in a window."""
    same_motion: float = 1e-3
    """Distance, as a fraction of each column's range, below which two episodes are equal."""
    balance: float = 0.1
    """Ratio of the episodes of the rarest task to those of the most frequent one."""
    length: float = 4.0
    """Ratio to the median length above which, or below whose inverse, an episode is reported."""
    few: int = 10
    """Smallest number of episodes for checks based on the spread."""


def with_settings(thresholds: Thresholds, settings: Iterable[str]) -> Thresholds:
    """Return thresholds with some values replaced.

    Args:
        thresholds: Current values.
        settings: Replacements such as ``jump=12``.

    Raises:
        InputError: A name is unknown, or a value is not a number.
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
