"""K regions compared with K separate renders, for tasks with other robots; the benchmark has more tasks."""

from __future__ import annotations

import pytest

from benchmarks import stacked_tasks


@pytest.mark.parametrize("task", ["open_drawer"])
def test_regions_side_by_side_show_what_each_shows_alone(task: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(stacked_tasks, "SIZE", (24, 18))
    (row,) = stacked_tasks.compare(task, [2])
    assert (row["wrong_labels"], row["K"]) == (0, 2)
    assert row["depth_error_m"] <= 1e-4
    assert row["seen"] > 0.3
