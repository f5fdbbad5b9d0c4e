"""Checks of an episode's rows: their number, their numbers, their times, their tasks."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from nimbus.datagen.datasets.quality.finding import fail
from nimbus.datagen.datasets.quality.thresholds import Thresholds
from nimbus.datagen.datasets.quality.view import EpisodeView, View
from nimbus.datagen.errors import Diagnostic


def check_rows(clip: EpisodeView, view: View, thresholds: Thresholds) -> Iterator[Diagnostic]:
    """What is wrong with the rows of one episode."""
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
        if not late.max() <= thresholds.grid:  # also where a time is none
            row = int(np.argmax(~(late <= thresholds.grid)))
            yield fail("timestamps", clip.name, f"row {row} is {late[row]:.4f} s off the grid of {view.fps:g} Hz")
    if view.wordings and "task_index" in columns:
        for number in sorted({*columns["task_index"].tolist()} - {*view.wordings}):
            yield fail("tasks", clip.name, f"task {number} is in no table")
