"""Episodes prepared in a few processes, where that pays."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from nimbus.datagen.datasets.export.parts import EpisodeParts
from nimbus.datagen.datasets.export.processes import core_count, make_all
from nimbus.datagen.datasets.export.source import ExportItem, Source

_PAYS = 20_000_000
"""Pixels that take as long to encode as a process takes to start, and some more."""


def prepare(source: Source, folder: Path, *, workers: int | None = None, tell: Callable[[int], None]) -> None:
    """Prepare what is missing.

    Args:
        source: The dataset.
        folder: Where prepared episodes are kept.
        workers: Processes; as many as pay when not given, 1 is this one.
        tell: Called with how many episodes are yet to come, after each.

    Raises:
        InputError: An episode does not fit in with the others, or cannot be read.
        StorageError: The disk is full.
    """
    parts = EpisodeParts(source, folder)
    missing = parts.missing()
    make_all(parts.make, missing, workers=workers or _worth(source, missing), tell=tell)


def _worth(source: Source, items: list[ExportItem]) -> int:
    frames = sum(item.step_count for item in items if not item.videos)  # what is video already is taken as it is
    pixels = frames * sum(width * height for width, height in source.cameras.values())
    return min(core_count(), 1 + pixels // _PAYS)
