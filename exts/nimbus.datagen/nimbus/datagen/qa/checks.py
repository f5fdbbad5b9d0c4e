"""The checks: structure, indices, times, signals, pictures."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.qa.finding import Finding, Unreadable, fail, warn
from nimbus.datagen.qa.signals import SignalChecks
from nimbus.datagen.qa.view import Clip, View

_GRID = 1e-4
"""[s] by which readers let a time miss its place."""
_BLACK = 16
"""No pixel of a black picture is brighter."""
_FROZEN_FRAMES = 10
_FROZEN_MOTION = 0.3
"""[rad, m] by which a joint moves while pictures stand still."""
_STILL = 1
"""Levels by which pixels of a picture that stands still may differ."""


def check(view: View) -> list[Finding]:
    """Everything that is wrong with a dataset."""
    found = list(view.structure())
    signals = SignalChecks(view.stats)
    for clip in view.clips():
        if isinstance(clip, Finding):
            found.append(clip)
            continue
        found += _rows(clip, view)
        found += signals.add(clip)
        for camera in clip.images:
            try:
                found += _pictures(clip, camera)
            except Unreadable as error:
                found.append(fail("files", error.where, error.what))
    return found + signals.end()


def _rows(clip: Clip, view: View) -> Iterator[Finding]:
    columns = clip.columns
    count = len(columns["timestamp"]) if "timestamp" in columns else clip.length
    if count != clip.length:
        yield fail("counts", clip.name, f"{count} rows, expected {clip.length}")
    expected = {"frame_index": np.arange(count), "index": np.arange(count) + clip.start}
    for name, values in expected.items():
        if name in columns and not np.array_equal(columns[name], values):
            row = int(np.argmax(columns[name] != values))
            yield fail("row_index", clip.name, f"{name} of row {row} is {columns[name][row]}, expected {values[row]}")
    if "timestamp" in columns and count:
        late = np.abs(columns["timestamp"] - np.arange(count) / view.fps)
        if not late.max() <= _GRID:  # also where a time is none
            row = int(np.argmax(late > _GRID))
            yield fail("timestamps", clip.name, f"row {row} is {late[row]:.4f} s off the grid of {view.fps:g} Hz")
    if view.wordings and "task_index" in columns:
        for number in sorted({*columns["task_index"].tolist()} - {*view.wordings}):
            yield fail("tasks", clip.name, f"task {number} is in no table")


def _pictures(clip: Clip, camera: str) -> Iterator[Finding]:
    where = f"{clip.name}, {camera}"
    before: NDArray[Any] | None = None
    count, black, since = 0, [], 0
    runs: list[tuple[int, int]] = []
    for picture in clip.images[camera]():
        seen = picture[::2, ::2].astype(np.int16)
        if seen.max() <= _BLACK:
            black.append(count)
        if before is not None and (before.shape != seen.shape or np.abs(seen - before).max() > _STILL):
            runs.append((since, count))
            since = count
        before = seen
        count += 1
    runs.append((since, count))
    if count != clip.length:
        yield fail("video_frames", where, f"{count} pictures, expected {clip.length}")
    if black:
        yield fail("black", where, f"{len(black)} black pictures, the first is {black[0]}")
    state = clip.columns.get("observation.state")
    for start, stop in runs:
        rows = None if state is None or stop - start < _FROZEN_FRAMES else state[start:stop]
        moved = 0.0 if rows is None or not len(rows) else np.ptp(rows, axis=0).max()
        if moved > _FROZEN_MOTION:
            yield fail("frozen", where, f"pictures {start} to {stop - 1} are the same while joints move by {moved:.2f}")
    if count and len(black) < count and len(runs) == 1 and count >= _FROZEN_FRAMES:
        yield warn("frozen", where, "no picture differs from the first")
