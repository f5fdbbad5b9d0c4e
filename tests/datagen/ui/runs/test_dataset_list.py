"""List of a dataset in a panel: by outcome, by reason, with the stored data of each attempt."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest

from nimbus.datagen.episode.trajectory import Reason
from nimbus.datagen.errors import InputError
from nimbus.datagen.ui.runs.dataset_list import FAILED, STORED, DatasetList, attempt_label
from tests.support.synthetic import failure, make_rendered, write_dataset


def test_attempts_are_filtered_by_outcome_and_by_reason(tmp_path: Path):
    items = [make_rendered(index) for index in range(3)]
    items += [make_rendered(3, outcome=failure(Reason.NO_IK)), make_rendered(4, outcome=failure(Reason.ON_FLOOR))]
    items += [make_rendered(5, outcome=failure(Reason.NO_IK))]
    write_dataset(tmp_path, items)
    found = DatasetList.open(tmp_path)
    assert found.reasons() == [("no_ik", 2), ("on_floor", 1)]
    assert [attempt.idx for attempt in found.filtered(outcome=STORED)] == [0, 1, 2]
    assert [attempt.idx for attempt in found.filtered(outcome=FAILED)] == [3, 4, 5]
    assert [attempt.idx for attempt in found.filtered(reason="no_ik")] == [3, 5]
    assert found.filtered(outcome=STORED, reason="no_ik") == []
    assert all((path := found.file(attempt)) and path.is_file() for attempt in found.filtered(outcome=STORED))
    assert len({attempt_label(attempt) for attempt in found.attempts}) == 6


def test_a_folder_without_a_dataset_is_one_line(tmp_path: Path):
    with pytest.raises(InputError, match="no dataset"):
        DatasetList.open(tmp_path)


def test_thousands_of_reasons_are_counted_once_and_200_are_listed(tmp_path: Path):
    write_dataset(tmp_path, [make_rendered(0, outcome=failure(Reason.NO_IK))])
    found = DatasetList.open(tmp_path)
    many = DatasetList(
        tmp_path, tuple(replace(found.attempts[0], reason=f"reason_{n % 50_000}") for n in range(60_000))
    )
    start = time.process_time()
    reasons = many.reasons()
    assert len(reasons) == 200
    assert reasons[0] == ("reason_0", 2)
    assert time.process_time() - start < 2.0
