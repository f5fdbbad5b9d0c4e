from __future__ import annotations

from pathlib import Path

import pytest

from nimbus.datagen.store.ledger.attempt import Attempt
from nimbus.datagen.store.ledger.ledger import Ledger
from nimbus.datagen.store.ledger.records import EpisodeState, EpisodeStatus
from nimbus.runner.cell.missing_work import CompletedWork, completed_before, missing_work
from nimbus.runner.cell.transport.spec import CellSpec


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path)


def row(index: int, variant: int = 0, *, success: bool = True) -> Attempt:
    name = f"{index}-{variant}"
    return Attempt(
        episode_id=name,
        task="",
        seed=0,
        idx=index,
        variant=variant,
        attempt=2,
        final=True,
        success=success,
        path=f"episodes/{name}.hdf5" if success else "",
    )


def test_what_is_left_is_what_is_neither_stored_nor_rejected_nor_given_up(ledger: Ledger) -> None:
    ledger.record(row(0, 0), row(0, 1), row(1, 1), row(2, success=False), row(7, 0))
    ledger.record(EpisodeState(idx=3, variant=0, state=EpisodeStatus.QUARANTINED))
    ledger.record(EpisodeState(idx=1, variant=0, state=EpisodeStatus.PENDING, lease=4))
    spec = CellSpec(folder="", episodes=5, variants=2)
    assert completed_before(ledger, spec) == CompletedWork(settled=2 + 1 + 2 + 1, stored=3, missing=3)
    one, three, four = missing_work(ledger, spec)
    assert (one.index, one.variants, one.leases) == (1, (0,), 4)
    assert (one.stored_plan, one.stored_attempt) == ("episodes/1-1.hdf5", 2)
    assert (three.index, three.variants, three.stored_plan) == (3, (1,), "")
    assert (four.index, four.variants, four.leases) == (4, (0, 1), 0)


def test_ten_million_episodes_are_counted_and_begun_at_once(ledger: Ledger) -> None:
    """The supervisor counts before its first heartbeat."""
    spec = CellSpec(folder="", episodes=10**7)
    assert completed_before(ledger, spec) == CompletedWork(settled=0, stored=0, missing=10**7)
    assert next(missing_work(ledger, spec)).index == 0
