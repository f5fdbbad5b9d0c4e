"""Exports, conversions and runs that are killed at any file operation end like undisturbed ones.

``benchmarks/kills.py`` makes more than a hundred kills; this file has some of each kind.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.dying import Dying, spread
from tests.support.export_formats import MANIPULATION_FORMATS
from tests.support.foreign import write_v21
from tests.support.kill_checks import Publication, SerialRun
from tests.support.synthetic import make_rendered, write_dataset

LENGTHS = (9, 7, 8, 6)
OFTEN = ("aloha", "lerobot")
"""Formats that are killed in each test run: one with HDF5 files, one with tables and videos."""


@pytest.fixture(scope="module")
def dying() -> Iterator[Dying]:
    with Dying() as found:
        yield found


@pytest.mark.slow
@pytest.mark.parametrize(
    "to", [pytest.param(name, marks=() if name in OFTEN else pytest.mark.long) for name in MANIPULATION_FORMATS]
)
def test_an_export_is_whole_or_absent_and_ends_with_the_same_bytes(dying: Dying, tmp_path: Path, to: str):
    write_dataset(tmp_path / "data", [make_rendered(row, steps=steps) for row, steps in enumerate(LENGTHS)])
    tally = Publication(dying, ("export", str(tmp_path / "data"), "--to", to), tmp_path).kill(6)
    assert tally.is_good and tally.kills >= 5 and tally.places > 15, tally


@pytest.mark.slow
@pytest.mark.parametrize("to", ["lerobot", pytest.param("lerobot-v2.1", marks=pytest.mark.long)])
def test_a_conversion_is_whole_or_absent_and_ends_with_the_same_bytes(dying: Dying, tmp_path: Path, to: str):
    write_v21(tmp_path / "data", LENGTHS)
    words = ("convert", str(tmp_path / "data"), "--to", to, "--episode-size", "2")
    tally = Publication(dying, words, tmp_path).kill(6)
    assert tally.is_good and tally.kills >= 5 and tally.places > 15, tally


@pytest.mark.slow
def test_a_run_loses_nothing_that_was_stored_and_ends_with_the_same_content(dying: Dying, tmp_path: Path):
    """The number of operations depends on the load, since status is written by time: late places may never come."""
    tally = SerialRun(dying, tmp_path, episodes=3).kill(6)
    assert tally.is_good and tally.kills >= 3 and tally.places > 15, tally


def test_places_are_spread_over_all():
    assert list(spread(100, 4)) == [1, 34, 67, 100]
    assert list(spread(3, 9)) == [1, 2, 3]


@pytest.mark.slow
def test_an_export_that_is_torn_or_another_at_the_end_is_noticed(dying: Dying, tmp_path: Path):
    write_dataset(tmp_path / "data", [make_rendered(0, steps=4)])
    found = Publication(dying, ("export", str(tmp_path / "data"), "--to", "aloha"), tmp_path)
    assert found.die(found.tally.places)
    next(found.out.glob("*.hdf5")).write_bytes(b"half")
    found.die(1)
    assert found.tally.torn
