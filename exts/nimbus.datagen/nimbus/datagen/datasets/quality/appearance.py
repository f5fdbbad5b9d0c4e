"""Checks that compare the images of different episodes: swapped cameras or color channels, and duplicates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.datasets.quality.finding import fail
from nimbus.datagen.datasets.quality.pictures import CameraStatistics
from nimbus.datagen.datasets.quality.thresholds import Thresholds
from nimbus.datagen.errors import Diagnostic

_NEARER = 0.5
"""Ratio of distances below which images resemble another camera or channel order instead of their own."""
_USUAL = 3.0
"""Ratio to the usual distance between episodes above which an episode stands out."""
_LEVELS = 3.0
"""Smallest mean difference between two images that counts [levels, 0 to 255]."""
_TOLD = 3
"""Smallest number of episodes from which the usual image of a camera is computed."""


def check_looks(
    looks: Sequence[CameraStatistics],
    *,
    stats: Mapping[str, Mapping[str, Any]],
    motions: Mapping[int, NDArray[np.float32]],
    thresholds: Thresholds,
) -> Iterator[Diagnostic]:
    """Find swapped cameras or color channels, wrong image statistics, and duplicate images.

    Args:
        looks: Image statistics of each camera in each episode.
        stats: Stored statistics of the dataset by feature.
        motions: (P, D) states and actions at P steps, by index of the episode [rad or m].
        thresholds: Limits of the checks.
    """
    cameras = _by_camera(looks)
    usual = {
        camera: np.median([look.mean for look in seen], axis=0).astype(np.float32) for camera, seen in cameras.items()
    }
    spread = {
        camera: float(np.median([_distance(look.mean, usual[camera]) for look in seen]))
        for camera, seen in cameras.items()
    }
    for camera, seen in cameras.items():
        if len(seen) >= _TOLD:
            for look in seen:
                yield from _exchanged(look, usual, spread[camera])
                yield from _colors(look, usual[camera], spread[camera])
        yield from _image_stats(camera, seen, stats, thresholds)
        yield from _same(seen, motions)


def _by_camera(looks: Sequence[CameraStatistics]) -> dict[str, list[CameraStatistics]]:
    cameras: dict[str, list[CameraStatistics]] = {}
    for look in looks:
        cameras.setdefault(look.camera, []).append(look)
    sizes = {camera: seen[0].mean.shape for camera, seen in cameras.items()}
    return {camera: [look for look in seen if look.mean.shape == sizes[camera]] for camera, seen in cameras.items()}


def _exchanged(look: CameraStatistics, usual: Mapping[str, Any], spread: float) -> Iterator[Diagnostic]:
    own = _distance(look.mean, usual[look.camera])
    for other, theirs in usual.items():
        if other == look.camera or theirs.shape != look.mean.shape:
            continue
        if own > _USUAL * spread + _LEVELS and _distance(look.mean, theirs) < _NEARER * own:
            yield fail(
                "cameras", f"episode {look.number}, {look.camera}", f"looks like '{other}' in the other episodes"
            )


def _colors(look: CameraStatistics, usual: Any, spread: float) -> Iterator[Diagnostic]:
    own = _distance(look.mean, usual)
    if own > _USUAL * spread + _LEVELS and _distance(look.mean[..., ::-1], usual) < _NEARER * own:
        where = f"episode {look.number}, {look.camera}"
        yield fail("colors", where, "looks like the other episodes if red and blue are swapped")


def _image_stats(
    camera: str, seen: Sequence[CameraStatistics], stats: Mapping[str, Mapping[str, Any]], thresholds: Thresholds
) -> Iterator[Diagnostic]:
    stored = stats.get(f"observation.images.{camera}", stats.get(camera, {})).get("mean")
    if stored is None or not seen:
        return
    weights = [look.looked_at for look in seen]
    mean = np.average([look.mean.mean(axis=(0, 1)) for look in seen], axis=0, weights=weights) / 255.0
    try:
        told = np.ravel(np.asarray(stored, np.float64))
    except (TypeError, ValueError):
        told = np.zeros(0)
    if told.shape != mean.shape or not np.all(np.abs(told - mean) <= thresholds.image_stats):
        yield fail("stats", f"observation.images.{camera}", "the stored mean differs from the mean of the images")


def _same(seen: Sequence[CameraStatistics], motions: Mapping[int, NDArray[np.float32]]) -> Iterator[Diagnostic]:
    """Find episodes with equal images but different motions: one of their videos has a wrong index."""
    known: dict[bytes, CameraStatistics] = {}
    for look in seen:
        first = known.setdefault(look.digest, look)
        if first is look or look.number not in motions or first.number not in motions:
            continue
        one, other = motions[first.number], motions[look.number]
        if one.shape != other.shape or np.abs(one - other).max() > 0.01:
            where = f"episode {look.number}, {look.camera}"
            yield fail("same_pictures", where, f"has the same images as episode {first.number} with another motion")


def _distance(one: Any, other: Any) -> float:
    return float(np.abs(one - other).mean())
