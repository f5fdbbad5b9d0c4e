"""Checks of images: number of images; black, frozen, repeated and swapped images. They also collect statistics."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.arrays import Float32Array
from nimbus.datagen.datasets.quality.finding import fail, warn
from nimbus.datagen.datasets.quality.signals import STATE
from nimbus.datagen.datasets.quality.thresholds import Thresholds
from nimbus.datagen.datasets.quality.view import EpisodeView, Pictures, View
from nimbus.datagen.errors import Diagnostic

_SMALL = 24
"""Approximate height of a reduced image [px]."""
_RETURN = 0.75
"""Largest difference between the neighbors of an outlier, as a fraction of the outlier's difference from them."""
_LEVELS = 2.0
"""Smallest mean difference of images that counts [levels, 0 to 255]."""
_STRIP = 4
"""Number of images of an episode that are kept for a page."""


@dataclass(frozen=True, kw_only=True)
class CameraStatistics:
    """Image statistics of one camera in one episode."""

    number: int
    camera: str
    mean: NDArray[np.float16]
    """(h, w, 3) mean of the reduced images [levels, 0 to 255]."""
    digest: bytes
    """Hash of the reduced first image and the mean."""
    strip: list[NDArray[np.uint8]] = field(default_factory=list)
    """Images for a page, each (H, W, 3)."""
    looked_at: int = 0
    """Number of decoded images."""


class PictureChecks:
    """Checks all images of a small dataset, and windows of images of a large one.

    Args:
        view: Dataset to check.
        thresholds: Limits of the checks.
    """

    def __init__(self, view: View, thresholds: Thresholds) -> None:
        self._thresholds = thresholds
        self._frame_count = view.frame_count
        self.looks: list[CameraStatistics] = []
        self.looked_at = 0

    def add(self, clip: EpisodeView, *, strips: bool) -> Iterator[Diagnostic]:
        """Yield the findings on the images of one episode.

        Args:
            clip: Episode to check.
            strips: Keep a few images for a page.

        Raises:
            Unreadable: A file is damaged.
        """
        for camera, pictures in clip.images.items():
            yield from self._camera(clip, camera, pictures, strips=strips)

    def _camera(self, clip: EpisodeView, camera: str, pictures: Pictures, *, strips: bool) -> Iterator[Diagnostic]:
        where = f"{clip.name}, {camera}"
        count = pictures.count()
        if count != clip.length:
            yield fail("video_frames", where, f"there are {count} images, expected {clip.length}")
        state = clip.columns.get(STATE)
        first: Float32Array | None = None
        total: Any = 0.0
        looked_at, still = 0, True
        strip: list[NDArray[np.uint8]] = []
        for start, stop in self._windows(count, len(clip.images)):
            seen = _FrameWindow(start)
            for picture in pictures.read(start, stop):
                seen.add(picture, self._thresholds)
                small = seen.small[-1]
                first = small if first is None else first
                total, looked_at = total + small, looked_at + 1
                if strips and len(strip) < _STRIP and start + len(seen.small) > len(strip) * count / _STRIP:
                    strip.append(picture)
            still = still and bool(seen.same) and all(seen.same)
            yield from seen.findings(where, state, self._thresholds)
        if first is None:
            return
        self.looked_at += looked_at
        self.looks.append(_look(clip.number, camera, first, total / looked_at, looked_at, strip))
        if still and looked_at >= self._thresholds.frozen_frames and first.max() > self._thresholds.black:
            yield warn("frozen", where, "all images are equal to the first one")

    def _windows(self, count: int, cameras: int) -> list[tuple[int, int]]:
        """Return the ranges of images to check: all images, or windows of equal length at equal spacing."""
        share = self._thresholds.pictures / max(1, self._frame_count * max(1, cameras))
        width = max(2, self._thresholds.window)
        windows = max(1, round(count * share / width))
        if share >= 1 or windows * width >= count:
            return [(0, count)]
        starts = np.linspace(0, count - width, windows).round().astype(int)
        return [(int(start), int(start) + width) for start in starts]


class _FrameWindow:
    """Consecutive images of an episode."""

    def __init__(self, start: int) -> None:
        self.start = start
        self.small: list[Float32Array] = []
        self.same: list[bool] = []
        """For each image from the second on: True if it equals the previous one."""
        self.black: list[int] = []
        """Indices of black images."""

    def add(self, picture: NDArray[np.uint8], thresholds: Thresholds) -> None:
        """Add the next image.

        Args:
            picture: (H, W, 3) sRGB [levels, 0 to 255].
            thresholds: Limits for black images and for images equal to the previous one.
        """
        if picture[::2, ::2].max() <= thresholds.black:
            self.black.append(self.start + len(self.small))
        small = _shrink(picture)
        if self.small:
            before = self.small[-1]
            alike = before.shape == small.shape and np.abs(small - before).max() <= thresholds.same
            self.same.append(bool(alike))
        self.small.append(small)

    def findings(self, where: str, state: NDArray[Any] | None, thresholds: Thresholds) -> Iterator[Diagnostic]:
        """Yield the findings on black, frozen, repeated and swapped images in the window.

        Args:
            where: Episode and camera, for the findings.
            state: (T, D) or (T,) joint positions of the whole episode [rad or m]; None if there are none.
            thresholds: Limits of the checks.
        """
        if not self.small:  # a video may contain fewer images than it declares
            return
        if self.black:
            yield fail("black", where, f"{len(self.black)} black images, the first is {self.black[0]}")
        if state is not None and len(state) >= self.start + len(self.small):
            rows = state[self.start : self.start + len(self.small)].reshape(len(self.small), -1)
            frozen = list(self._frozen(rows, thresholds))
            for first, last, moved in frozen:
                what = f"images {first} to {last} are equal while joints move by {moved:.2f}"
                yield fail("frozen", where, what)
            if not frozen:
                yield from self._repeated(where, rows, thresholds)
        if not self.black:
            yield from self._order(where, thresholds)

    def _frozen(self, rows: NDArray[Any], thresholds: Thresholds) -> Iterator[tuple[int, int, float]]:
        since = 0
        for place in range(1, len(self.small) + 1):
            if place < len(self.small) and self.same[place - 1]:
                continue
            if place - since >= thresholds.frozen_frames:
                moved = float(np.ptp(rows[since:place], axis=0).max())
                if moved > thresholds.frozen_motion:
                    yield self.start + since, self.start + place - 1, moved
            since = place

    def _repeated(self, where: str, rows: NDArray[Any], thresholds: Thresholds) -> Iterator[Diagnostic]:
        moving = np.abs(np.diff(rows, axis=0)).max(axis=1, initial=0.0) > thresholds.repeat_motion
        if moving.sum() < thresholds.frozen_frames:
            return
        share = float(np.array(self.same)[moving].mean())
        if share > thresholds.repeat_share:
            yield fail("repeated", where, f"{share:.0%} of the images equal the previous one while joints move")

    def _order(self, where: str, thresholds: Thresholds) -> Iterator[Diagnostic]:
        """Find two swapped images: each differs from its own neighbors, but resembles the neighbors of the other image.

        A single outlier may be correct, for example when something passes close to a camera.
        """
        if len(self.small) < 5:
            return
        small = np.stack(self.small)
        step = np.abs(np.diff(small, axis=0)).mean(axis=(1, 2, 3))
        over = np.abs(small[2:] - small[:-2]).mean(axis=(1, 2, 3))
        away = np.minimum(step[:-1], step[1:])
        odd = [place for place in np.flatnonzero((over < _RETURN * away) & (away > _LEVELS)).tolist()]
        odd = [place + 1 for place in odd if away[place] > thresholds.outlier * _around(step, place)]
        for one, other in combinations(odd, 2):
            there = max(np.abs(small[one] - small[other + side]).mean() for side in (-1, 1))
            back = max(np.abs(small[other] - small[one + side]).mean() for side in (-1, 1))
            if one + 1 < other and there < away[other - 1] and back < away[one - 1]:
                yield fail("picture_order", where, f"images {self.start + one} and {self.start + other} are swapped")


def _around(step: NDArray[np.float32], place: int) -> float:
    """Return the median difference between successive images near an image, without the image itself [levels]."""
    return float(np.median(np.concatenate([step[max(0, place - 4) : place], step[place + 2 : place + 6]])))


def _shrink(picture: NDArray[np.uint8]) -> Float32Array:
    """Return a reduced image (h, w, 3), whose pixels are the means of square tiles."""
    every = max(1, picture.shape[0] // _SMALL)
    height, width = picture.shape[0] // every, picture.shape[1] // every
    tiles = picture[: height * every, : width * every].reshape(height, every, width, every, 3)
    return tiles.mean(axis=(1, 3), dtype=np.float32)


def _look(
    number: int, camera: str, first: Float32Array, mean: Float32Array, looked_at: int, strip: list[NDArray[np.uint8]]
) -> CameraStatistics:
    height, width = mean.shape[0] // 2, mean.shape[1] // 2
    tiles = mean[: height * 2, : width * 2].reshape(height, 2, width, 2, 3).mean(axis=(1, 3))
    seen = np.round(np.stack([first, mean])).astype(np.uint8)
    return CameraStatistics(
        number=number,
        camera=camera,
        mean=tiles.astype(np.float16),
        digest=hashlib.sha256(seen.tobytes()).digest(),
        strip=strip,
        looked_at=looked_at,
    )
