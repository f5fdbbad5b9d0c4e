"""A cell that receives indices while it runs makes the same dataset as one with all of them from the start."""

from __future__ import annotations

from pathlib import Path

import pytest

from nimbus.datagen.store.ledger.attempt import Attempt
from nimbus.datagen.store.ledger.ledger import Ledger
from nimbus.runner.cell.feed import Feed, write_feed
from nimbus.runner.cell.transport.spec import CellSpec
from tests.support.cells import Run, count, events, finish_here, make_spec, sound, until


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "feed.json"


def make_feed(path: Path) -> Feed:
    return Feed(Ledger(path.parent), CellSpec(folder=str(path.parent), feed=str(path)))


def drawn(feed: Feed, most: int = 5) -> list[int | None]:
    return [request and request.index for request, _ in zip(feed, range(most), strict=False)]


def test_indices_come_in_the_order_of_the_file(path: Path):
    write_feed(path, (7, 3, 5))
    feed = make_feed(path)
    assert drawn(feed) == [7, 3, 5, None, None] and feed.total == 3
    write_feed(path, (5, 1), closed=True)
    assert feed.look() and not feed.look()
    assert drawn(feed) == [1] and feed.total == 4


def test_no_file_or_a_torn_one_is_an_empty_feed(path: Path):
    feed = make_feed(path)
    assert drawn(feed, 1) == [None]
    path.write_text('{"indices": [3')
    assert not feed.look() and not feed.is_closed
    write_feed(path, (3,))
    assert feed.look() and drawn(feed, 1) == [3]


def test_settled_episode_whose_file_is_gone_is_due_again(path: Path):
    values = {"task": "", "seed": 0, "variant": 0, "attempt": 0, "final": True}
    rows = [Attempt(episode_id=f"{index}", idx=index, success=index != 2, **values) for index in (1, 2)]
    with_file = [Attempt(**{**vars(row), "path": f"episodes/{row.idx}.hdf5"}) if row.success else row for row in rows]
    ledger = Ledger(path.parent)
    ledger.record(*with_file)
    write_feed(path, (1, 2))
    feed = Feed(ledger, CellSpec(folder=str(path.parent), feed=str(path)))
    assert drawn(feed, 2) == [1, None] and ledger.stored(1) == []


def test_fed_cell_makes_what_one_process_makes(tmp_path: Path):
    """The cell starts no worker before it receives indices, and makes no episode twice."""
    alone = finish_here(make_spec(tmp_path / "alone" / "data", episodes=6))
    path = tmp_path / "fed" / "feed.json"
    spec = make_spec(tmp_path / "fed" / "data", episodes=6, feed=str(path))
    run = Run(spec)
    assert until(lambda: (status := run.status()) and "load" in status.phases)
    assert not events(spec, "plan") and not run.status().workers  # type: ignore[union-attr]
    write_feed(path, (5, 0, 3))
    run.wait_for("render", count=3)
    assert until(lambda: (status := run.status()) and status.stored == 3 and status.target == 3)
    write_feed(path, (4, 2, 1), closed=True)
    run.end(0)
    assert sound(spec) == alone
    assert set(count(spec, "plan").values()) == {1} and len(count(spec, "plan")) == 6
