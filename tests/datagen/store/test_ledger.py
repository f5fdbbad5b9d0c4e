from __future__ import annotations

import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nimbus.datagen.errors import InputError
from nimbus.datagen.store.ledger import Attempt, Ledger


def attempt(index: int = 0, *, variant: int = 0, number: int = 0, success: bool = True, final: bool = True) -> Attempt:
    episode_id = f"episode-{index}-{variant}"
    return Attempt(
        episode_id=episode_id,
        task="sort_trash",
        seed=0,
        idx=index,
        variant=variant,
        attempt=number,
        final=final,
        success=success,
        phase="" if success else "pick items_0",
        reason="none" if success else "no_ik",
        path=f"episodes/{episode_id}.hdf5" if success else "",
        times={"plan": 1.25, "store_wait": 0.5},
        objects=({"name": "items_0", "kind": "can"},),
    )


def test_attempts_come_back_as_they_were_recorded_in_the_order_of_their_address(tmp_path: Path) -> None:
    rows = [attempt(1), attempt(0, variant=1), attempt(0), attempt(2, success=False, number=1)]
    ledger = Ledger(tmp_path)
    for row in rows:
        ledger.record(row)
    expected = sorted(rows, key=lambda row: (row.idx, row.variant, row.attempt))
    assert ledger.attempts() == expected
    ledger.close()
    again = Ledger(tmp_path)
    assert again.attempts() == expected
    assert again.stored() == expected[:-1]
    again.close()


def test_an_attempt_made_again_replaces_its_row(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    ledger.record(attempt(success=False, final=False))
    ledger.record(replace(attempt(success=False, final=False), detail="again"))
    ledger.record(attempt(number=1))
    assert [(row.attempt, row.detail) for row in ledger.attempts()] == [(0, "again"), (1, "")]
    ledger.close()


def test_finished_are_the_stored_variants(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    ledger.record(attempt(3, variant=0))
    ledger.record(attempt(3, variant=2))
    assert ledger.finished(3, (0, 1, 2)) == (0, 2)
    assert ledger.finished(4, (0, 1, 2)) == ()
    ledger.close()


def test_a_plan_that_failed_for_good_finishes_all_variants_and_one_that_may_be_tried_again_none(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    ledger.record(attempt(5, success=False, final=False))
    assert ledger.finished(5, (0, 1)) == ()
    ledger.record(attempt(5, success=False, number=1))
    assert ledger.finished(5, (0, 1)) == (0, 1)
    ledger.close()


def test_an_episode_is_found_without_reading_the_whole_table(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    plan = ledger._connection.execute("EXPLAIN QUERY PLAN SELECT variant FROM attempts WHERE idx = 3").fetchall()
    assert "SEARCH attempts USING" in str(plan) and "SCAN" not in str(plan)
    ledger.close()


def test_a_reader_sees_each_row_while_a_writer_is_at_work(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    for index in range(3):
        ledger.record(attempt(index))
        reader = Ledger(tmp_path, read_only=True)
        assert len(reader.attempts()) == index + 1
        reader.close()
    ledger.close()


def test_reading_a_closed_ledger_leaves_no_file_beside_it(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    ledger.record(attempt())
    ledger.close()
    reader = Ledger(tmp_path, read_only=True)
    assert reader.attempts() == [attempt()]
    reader.close()
    assert [path.name for path in tmp_path.iterdir()] == ["ledger.sqlite"]


@pytest.mark.parametrize("content", [None, b"no database" * 1000])
def test_a_file_that_is_no_ledger_is_refused_in_one_line(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / "ledger.sqlite").write_bytes(content)
    with pytest.raises(InputError, match="ledger") as caught:
        Ledger(tmp_path, read_only=True)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("UPDATE attempts SET times = '{bad'", "Expecting property name"),
        ("UPDATE attempts SET objects = '7'", "objects: Input should be a valid tuple"),
        ("UPDATE attempts SET path = '../../../etc/passwd'", "path '../../../etc/passwd' is none of an episode"),
        ("UPDATE attempts SET path = 'episodes/../../other.hdf5'", "is none of an episode"),
        ("UPDATE attempts SET idx = 'first'", "idx: Input should be a valid integer"),
        ("ALTER TABLE attempts DROP COLUMN detail", "no such column: detail"),
    ],
)
@pytest.mark.parametrize("read_only", [True, False])
def test_a_damaged_row_is_one_line(tmp_path: Path, change: str, said: str, read_only: bool) -> None:
    ledger = Ledger(tmp_path)
    ledger.record(attempt(0))
    ledger.close()
    with sqlite3.connect(tmp_path / "ledger.sqlite") as connection:
        connection.execute(change)
    connection.close()
    with pytest.raises(InputError, match=r"ledger.sqlite: not a ledger: .*restore this file from a copy") as caught:
        Ledger(tmp_path, read_only=read_only).attempts()
    assert said in str(caught.value) and "\n" not in str(caught.value)
    assert caught.value.exit_code == 2


@settings(max_examples=30, deadline=None)
@given(
    rows=st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(0, 2), st.booleans(), st.booleans()), max_size=12
    )
)
def test_no_variant_is_finished_without_a_stored_file_or_a_final_failure(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[int, int, int, bool, bool]]
) -> None:
    ledger = Ledger(tmp_path_factory.mktemp("ledger"))
    for index, variant, number, success, final in rows:
        ledger.record(attempt(index, variant=variant, number=number, success=success, final=final))
    last = {(row.idx, row.variant, row.attempt): row for row in ledger.attempts()}.values()
    for index in range(4):
        mine = [row for row in last if row.idx == index]
        lost = any(row.final and not row.success for row in mine)
        stored = {row.variant for row in mine if row.success}
        assert ledger.finished(index, (0, 1, 2)) == ((0, 1, 2) if lost else tuple(sorted(stored)))
    ledger.close()
