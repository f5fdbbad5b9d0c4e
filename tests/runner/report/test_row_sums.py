from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nimbus.datagen.store.ledger.attempt import Attempt
from nimbus.runner.report.row_sums import MOST_LISTED, RowSums


@given(st.lists(st.integers(1, 50), min_size=1, max_size=40))
def test_motions_are_those_of_all_lengths(steps: list[int]) -> None:
    seconds = [count / 15 for count in steps]
    found = RowSums(folder=Path(), starts=(), durations=Counter(seconds)).motions()
    assert found == pytest.approx(
        {"shortest": min(seconds), "median": np.median(seconds), "longest": max(seconds), "total": sum(seconds)}
    )


def test_missing_files_are_counted_and_few_listed(tmp_path: Path) -> None:
    row = Attempt(
        episode_id="e",
        task="t",
        seed=0,
        idx=0,
        variant=0,
        attempt=0,
        final=False,
        success=True,
        path="episodes/gone.hdf5",
    )
    rows = (replace(row, episode_id=f"e{index}", idx=index) for index in range(MOST_LISTED + 5))
    sums = RowSums.of(tmp_path, rows, [])
    assert (sums.stored, sums.outdated_count, len(sums.outdated)) == (MOST_LISTED + 5, MOST_LISTED + 5, MOST_LISTED)
