"""Limits of the quality checks, which can be set on the command line."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace

from nimbus.datagen.errors import InputError, suggest


@dataclass(frozen=True, kw_only=True)
class Thresholds:
    """Limits of the quality checks."""

    grid: float = 1e-4
    """Largest error of a time stamp [s]; readers have the same tolerance."""
    jump: float = 8.0
    """Factor on the 95th percentile of steps; a larger step that also exceeds ``jump_share`` is a jump."""
    jump_share: float = 0.2
    """Fraction of the column's range; a larger step that also exceeds ``jump`` is a jump."""
    stats: float = 1e-3
    """Tolerance of stored statistics of numbers, as a fraction of a column's range."""
    image_stats: float = 0.08
    """Tolerance of the stored mean of images, on a scale from 0 to 1."""
    limit: float = 0.02
    """Distance by which a joint may exceed its limits [rad or m]."""
    speed: float = 1.5
    """Ratio to a joint's velocity limit above which its speed is reported."""
    still_step: float = 1e-4
    """Motion per row below which the robot does not move [rad or m]."""
    still_share: float = 0.7
    """Fraction of rows without motion above which an episode is reported."""
    lag: int = 3
    """Smallest reported difference from the usual lead of actions over states [rows]."""
    black: int = 16
    """Largest value in a black image [levels, 0 to 255]."""
    same: float = 5.0
    """Largest difference between two equal images after reduction [levels]; codecs cause small differences."""
    frozen_frames: int = 10
    """Smallest number of successive equal images that count as frozen."""
    frozen_motion: float = 0.3
    """Motion of a joint during equal images above which they are reported as frozen [rad or m]."""
    repeat_motion: float = 0.01
    """Motion of a joint between two rows above which their images must differ [rad or m]."""
    repeat_share: float = 0.3
    """Largest fraction of rows that may have this motion and yet an unchanged image; a larger one is reported."""
    outlier: float = 2.0
    """Ratio to the usual difference between successive images above which an image is an outlier."""
    pictures: int = 40_000
    """Largest number of decoded images; in larger datasets, windows at equal spacing in every episode are checked."""
    window: int = 12
    """Number of images in a window."""
    same_motion: float = 1e-3
    """Difference between two motions, as a fraction of each column's range, below which they are equal."""
    balance: float = 0.1
    """Ratio to the number of episodes of the most frequent task below which a task is reported."""
    length: float = 4.0
    """Factor between the length of an episode and the median length above which the episode is reported."""
    few: int = 10
    """Smallest number of episodes for checks of distributions."""


def with_settings(thresholds: Thresholds, settings: Iterable[str]) -> Thresholds:
    """Return thresholds with some values replaced.

    Args:
        thresholds: Current values.
        settings: Assignments such as ``jump=12``.

    Raises:
        InputError: A name is unknown, or a value is not a number.
    """
    known = {field.name: type(getattr(thresholds, field.name)) for field in fields(thresholds)}
    for setting in settings:
        name, _, text = setting.partition("=")
        if name not in known:
            raise InputError(f"there is no threshold '{name}'", where="--set", instead=suggest(name, known))
        try:
            value = known[name](text)
            if not 0 <= value < 1e12:
                raise ValueError
        except ValueError:
            what = f"'{text}' is not a value for {name}"
            raise InputError(what, where="--set", instead=f"write {name}={known[name](1)}") from None
        thresholds = replace(thresholds, **{name: value})
    return thresholds
