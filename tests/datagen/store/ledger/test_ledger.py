from __future__ import annotations

import sqlite3
import struct
import threading
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nimbus.datagen.errors import InputError
from nimbus.datagen.store.ledger.attempt import Attempt
from nimbus.datagen.store.ledger.ledger import Ledger
from nimbus.datagen.store.ledger.records import EpisodeState, EpisodeStatus, Fault, Run, TimeSpan
from nimbus.datagen.store.ledger.sqlite import limited_steps


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
    assert (ledger.touched(episodes=3), ledger.touched(episodes=4)) == ([], [3])
    counts = {(3, 3): 0, (4, 1): 1, (4, 2): 1, (4, 3): 2}
    assert {key: ledger.stored_count(episodes=key[0], variants=key[1]) for key in counts} == counts
    ledger.close()


def test_a_plan_that_failed_for_good_finishes_all_variants_and_one_that_may_be_tried_again_none(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    ledger.record(attempt(5, success=False, final=False))
    assert ledger.finished(5, (0, 1)) == () and ledger.touched(episodes=9) == []
    ledger.record(attempt(5, success=False, number=1))
    assert ledger.finished(5, (0, 1)) == (0, 1) and ledger.touched(episodes=9) == [5]
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
        ("UPDATE attempts SET objects = '7'", "objects: Expected `array`, got `int`"),
        ("UPDATE attempts SET path = '../../../etc/passwd'", "'../../../etc/passwd' is not the path of an episode"),
        ("UPDATE attempts SET path = 'episodes/../../other.hdf5'", "is not the path of an episode"),
        ("UPDATE attempts SET idx = 'first'", "idx: Expected `int`, got `str`"),
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


@settings(max_examples=30)
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


def fault(time: float = 1.5, *, detail: str = "") -> Fault:
    return Fault(time=time, run=1, worker="renderer 2", kind="hang", phase="render", idx=3, lease=2, detail=detail)


def span(begin: float) -> TimeSpan:
    return TimeSpan(run=1, worker="planner 1", stage="plan", idx=3, begin=begin, end=begin + 1)


def test_states_faults_spans_and_runs_come_back_as_they_were_recorded(tmp_path: Path) -> None:
    state = EpisodeState(idx=3, variant=1, state=EpisodeStatus.INTENT, episode_id="e", lease=2, owner="w", byte_count=7)
    ledger = Ledger(tmp_path)
    begun = ledger.start_run(mode="cell", cores=2, workers="1x1", settings={"device": "cpu", "stack": None})
    ledger.record(state, fault(2.0), fault(1.0), span(5.0), span(4.0))
    ledger.end_run(begun, state="done", wall_seconds=3.5, startup_seconds=0.5)
    again = ledger.start_run(mode="serial")
    ledger.close()
    reader = Ledger(tmp_path, read_only=True)
    assert (
        reader.episodes() == reader.episodes(EpisodeStatus.INTENT) == [state]
        and reader.episodes(EpisodeStatus.DONE) == []
    )
    assert (reader.episode(3, 1), reader.episode(3)) == (state, None)
    assert reader.faults() == [fault(1.0), fault(2.0)]
    assert reader.spans() == reader.spans(1) == [span(4.0), span(5.0)] and reader.spans(2) == []
    first, second = reader.runs()
    assert first == replace(begun, ended=first.ended, state="done", wall_seconds=3.5, startup_seconds=0.5)
    assert (first.id, first.settings) == (1, {"device": "cpu", "stack": None}) and first.ended >= first.started
    assert (second, second.id, second.state) == (again, 2, "running") and isinstance(again, Run)
    reader.close()


def test_a_batch_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    ledger, reader = Ledger(tmp_path), Ledger(tmp_path, read_only=True)
    with ledger.batch():
        ledger.record(attempt(0), fault())
        with ledger.batch():
            ledger.record(attempt(1))
        assert reader.attempts() == []
    assert len(reader.attempts()) == 2 and len(reader.faults()) == 1
    with pytest.raises(RuntimeError, match="in the middle"), ledger.batch():
        ledger.record(attempt(2), fault())
        raise RuntimeError("in the middle")
    assert len(ledger.attempts()) == 2 and len(ledger.faults()) == 1
    ledger.record(attempt(3))
    assert len(reader.attempts()) == 3
    reader.close()
    ledger.close()


def test_what_is_deferred_goes_with_the_next_batch_and_waits_when_that_fails(tmp_path: Path) -> None:
    ledger, reader = Ledger(tmp_path), Ledger(tmp_path, read_only=True)
    leased = EpisodeState(idx=0, variant=0, state=EpisodeStatus.LEASED, lease=1)
    ledger.defer(fault(), leased)
    assert ledger.episode(0) == leased and reader.episode(0) is None and reader.faults() == []
    with pytest.raises(RuntimeError), ledger.batch():
        assert ledger.episode(0) == leased
        raise RuntimeError
    assert ledger.episode(0) == leased and reader.faults() == []
    ledger.record(attempt(0))
    assert reader.episode(0) == leased and reader.faults() == [fault()]
    ledger.defer(replace(leased, lease=2), span(1.0))
    with ledger.batch():
        ledger.record(replace(leased, state=EpisodeStatus.DONE, lease=2))
    assert reader.episode(0) == replace(leased, state=EpisodeStatus.DONE, lease=2) and reader.spans() == [span(1.0)]
    ledger.flush()
    ledger.defer(fault(9.0))
    ledger.flush()
    assert [row.time for row in reader.faults()] == [1.5, 9.0]
    reader.close()
    ledger.close()


def test_two_threads_write_one_after_the_other(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    inside, others = threading.Event(), []

    def other() -> None:
        inside.wait()
        others.append(len(ledger.attempts()))
        ledger.record(attempt(9))

    thread = threading.Thread(target=other)
    thread.start()
    with ledger.batch():
        ledger.record(attempt(0))
        inside.set()
        thread.join(0.05)
        assert thread.is_alive() and not others
        ledger.record(attempt(1))
    thread.join()
    assert others == [2] and len(ledger.attempts()) == 3
    ledger.close()


def test_a_snapshot_is_of_one_moment(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    ledger.record(attempt(0))
    reader = Ledger(tmp_path, read_only=True)
    with reader.snapshot():
        assert len(reader.attempts()) == 1
        ledger.record(attempt(1), fault())
        assert len(reader.attempts()) == 1 and reader.faults() == []
    assert len(reader.attempts()) == 2 and reader.faults() == [fault()]
    reader.close()
    ledger.close()


@pytest.mark.parametrize("table", ["attempts", "spans"])
def test_a_broken_page_in_the_middle_is_one_line(tmp_path: Path, table: str) -> None:
    ledger = Ledger(tmp_path)
    with ledger.batch():
        for index in range(400):
            ledger.record(attempt(index), span(float(index)))
    ledger.close()
    path = tmp_path / "ledger.sqlite"
    with sqlite3.connect(path) as connection:
        pages = "SELECT pageno FROM dbstat WHERE name = ? AND pagetype = 'leaf' ORDER BY pageno"
        try:
            found = [row[0] for row in connection.execute(pages, (table,))]
        except sqlite3.OperationalError:
            pytest.skip("this SQLite does not tell where its pages are")
    connection.close()
    content = bytearray(path.read_bytes())
    begin = (found[len(found) // 2] - 1) * 4096
    content[begin : begin + 4096] = b"\xa5" * 4096
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"not a ledger: .*; restore this file from a copy") as caught:
        Ledger(tmp_path)
    assert "\n" not in str(caught.value)
    with pytest.raises(InputError, match=r"not a ledger: .*; restore this file from a copy"):
        Ledger(tmp_path, read_only=True)


def test_pages_that_name_one_page_many_times_are_refused(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    ledger.record(fault())
    ledger.close()
    _repeat_rows(tmp_path / "ledger.sqlite", "faults", levels=6)
    for read_only in (True, False):
        with pytest.raises(InputError, match="not a ledger"):
            Ledger(tmp_path, read_only=read_only)


def test_a_schema_that_never_ends_is_interrupted(tmp_path: Path) -> None:
    endless = "WITH RECURSIVE row(x) AS (SELECT 1 UNION ALL SELECT x FROM row) SELECT COUNT(*) FROM row"
    with closing(sqlite3.connect(tmp_path / "ledger.sqlite")) as connection:
        with limited_steps(connection, tmp_path / "ledger.sqlite"), pytest.raises(sqlite3.OperationalError):
            connection.execute(endless)
        assert connection.execute("SELECT 1").fetchone() == (1,)


def _repeat_rows(path: Path, table: str, *, levels: int) -> None:
    """Put a table's rows below interior pages that name one child in all their cells, so that they repeat endlessly.

    Format: https://sqlite.org/fileformat2.html
    """
    size, cells = 4096, 200
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
        (root,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,)).fetchone()
    content = bytearray(path.read_bytes())
    begin = (root - 1) * size
    content += content[begin : begin + size]
    for level in range(levels):
        child = len(content) // size
        page = bytearray(size)
        struct.pack_into(">BHHHBI", page, 0, 0x05, 0, cells, size - 5 * cells, 0, child)
        for cell in range(cells):
            place = size - 5 * (cell + 1)
            struct.pack_into(">H", page, 12 + 2 * cell, place)
            struct.pack_into(">IB", page, place, child, min(cell, 100) + 1)
        if level < levels - 1:
            content += page
        else:
            content[begin : begin + size] = page
    struct.pack_into(">I", content, 28, len(content) // size)
    content[92:96] = content[24:28]
    path.write_bytes(content)


@settings(max_examples=15)
@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 1), st.sampled_from(["record", "defer", "reopen"])), max_size=8
    )
)
def test_an_episode_stands_where_was_last_said_also_when_the_ledger_is_opened_again(
    tmp_path_factory: pytest.TempPathFactory, said: list[tuple[int, int, str]]
) -> None:
    folder = tmp_path_factory.mktemp("ledger")
    ledger, expected = Ledger(folder), {}
    for lease, (index, variant, how) in enumerate(said):
        if how == "reopen":
            ledger.flush()
            ledger.close()
            ledger = Ledger(folder)
            continue
        state = EpisodeStatus.DONE if lease % 3 == 0 else EpisodeStatus.LEASED
        row = expected[index, variant] = EpisodeState(idx=index, variant=variant, state=state, lease=lease)
        ledger.record(row) if how == "record" else ledger.defer(row)
    assert all(ledger.episode(*key) == expected.get(key) for key in [(i, v) for i in range(5) for v in range(2)])
    ledger.close()


def test_an_index_stands_for_the_ledgers_task(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path, task="pour")
    ledger.record(replace(attempt(3), task="pour"), replace(attempt(4), task="stack", episode_id="other"))
    ledger.defer(EpisodeState(task="pour", idx=5, variant=0, state=EpisodeStatus.LEASED, lease=1))
    ledger.record(EpisodeState(task="stack", idx=6, variant=0, state=EpisodeStatus.QUARANTINED))
    assert [row.task for row in ledger.attempts()] == ["pour", "stack"]
    assert (ledger.finished(3), ledger.finished(4), ledger.finished(6)) == ((0,), (), ())
    assert (ledger.touched(episodes=9), ledger.known(0, 9)) == ([3], {3, 5})
    assert (ledger.stored_count(episodes=9, variants=1), ledger.episode(6)) == (1, None)
    assert ledger.episode(5) == EpisodeState(task="pour", idx=5, variant=0, state=EpisodeStatus.LEASED, lease=1)
    ledger.close()
