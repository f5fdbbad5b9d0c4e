from __future__ import annotations

from pathlib import Path

import pytest

from nimbus.datagen.errors import StorageError
from nimbus.runner.cell.disk_guard import DiskWatch


@pytest.fixture
def watch(tmp_path: Path) -> DiskWatch:
    """Of a disk that has room, whatever somebody met on it at time 0."""
    watch = DiskWatch(tmp_path, patience=60.0)
    with watch.guard(0.0):
        raise StorageError("no room")
    assert watch.is_full
    return watch


def test_a_disk_that_stays_full_is_complained_of_when_the_patience_is_over(watch: DiskWatch) -> None:
    watch.look(59.0, needed=1 << 62)
    assert watch.is_full and watch.complaint(59.0) == ""
    assert watch.complaint(61.0) == "no room"


def test_once_there_is_room_the_first_episode_may_take_longer_than_the_patience(watch: DiskWatch) -> None:
    watch.look(50.0, needed=0)
    assert not watch.is_full and watch.complaint(100.0) == ""
    watch.worked()
    watch.full(200.0, "again")
    assert watch.complaint(259.0) == "" and watch.complaint(261.0) == "again"


def test_room_that_is_none_for_those_who_write_does_not_renew_the_patience(watch: DiskWatch) -> None:
    watch.look(50.0, needed=0)
    watch.full(70.0, "a quota")
    assert watch.complaint(70.0) == "a quota"
