from __future__ import annotations

from pathlib import Path

import pytest

from nimbus.datagen.errors import StorageError
from nimbus.runner.cell.disk_guard import DiskGuard


@pytest.fixture
def guard(tmp_path: Path) -> DiskGuard:
    """Return the guard of a disk with free space, after a disk error at time 0."""
    guard = DiskGuard(tmp_path, patience=60.0)
    with guard.guard(0.0):
        raise StorageError("no room")
    assert guard.is_full
    return guard


def test_a_disk_that_stays_full_is_complained_of_when_the_patience_is_over(guard: DiskGuard) -> None:
    guard.look(59.0, needed=1 << 62)
    assert guard.is_full and guard.complaint(59.0) == ""
    assert guard.complaint(61.0) == "no room"


def test_once_there_is_room_the_first_episode_may_take_longer_than_the_patience(guard: DiskGuard) -> None:
    guard.look(50.0, needed=0)
    assert not guard.is_full and guard.complaint(100.0) == ""
    guard.worked()
    guard.full(200.0, "again")
    assert guard.complaint(259.0) == "" and guard.complaint(261.0) == "again"


def test_room_that_is_none_for_those_who_write_does_not_renew_the_patience(guard: DiskGuard) -> None:
    guard.look(50.0, needed=0)
    guard.full(70.0, "a quota")
    assert guard.complaint(70.0) == "a quota"
