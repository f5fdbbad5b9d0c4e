"""Results that a node cannot deliver as a whole: the head keeps what is stored, and the node goes on."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import wait
from dataclasses import replace
from pathlib import Path

import pytest

from nimbus.datagen.errors import InputError
from nimbus.datagen.store.ledger.attempt import Attempt
from nimbus.datagen.store.ledger.ledger import Ledger
from nimbus.datagen.store.ledger.records import Fault
from nimbus.runner.cluster import outbox
from nimbus.runner.cluster.delivery import FolderUploader
from nimbus.runner.cluster.head_process import HeadServer
from nimbus.runner.cluster.messages import Answer, EpisodeReport, Joined, Report, Reported, Request, Vote
from nimbus.runner.cluster.node_cell import NodeCell
from nimbus.runner.cluster.node_delivery import NodeDelivery
from nimbus.runner.cluster.outbox import CellResult
from nimbus.runner.monitor.status import FILE_NAME as STATUS
from tests.runner.cluster.test_head import answers, join
from tests.support.cells import make_spec
from tests.support.clusters import job_of
from tests.support.synthetic import failed_attempts, make_rendered, write_dataset


@pytest.fixture
def server(tmp_path: Path) -> Iterator[HeadServer]:
    """Return a head of one task with two variants."""
    made = HeadServer(job_of(make_spec(tmp_path / "data", variants=2)), tmp_path / "s")
    yield made
    made._close("interrupted")


def deliver(server: HeadServer, folder: Path, attempts: tuple[Attempt, ...], *, place: str, evidence: str = "") -> None:
    """Deliver the result of a node's cell to the head."""
    (joined,) = answers(server, join(node=folder.name))
    assert isinstance(joined, Joined)
    cell = NodeCell(joined.tasks[0], folder, slots=1)

    def ask(request: Request) -> Answer:
        return answers(server, request)[0]

    delivery = NodeDelivery(folder.name, 1, ask, {"drive": cell}, lambda group: place, lambda *_: "")
    delivery.add("drive", 1, CellResult(index=0, attempts=attempts, evidence=evidence), 0.0)
    for _ in range(20):
        delivery.go_on(0.0)
        wait([entry.upload for entry in delivery._outbox.waiting_for_upload() if entry.upload])
        wait([waiting.places for waiting in delivery._faults])
    delivery.close()
    assert not delivery.failure and delivery.is_empty


def stored_by(folder: Path) -> tuple[Attempt, ...]:
    """Store an episode in the cell of a node."""
    write_dataset(folder / "drive", [make_rendered(0)])
    ledger = Ledger(folder / "drive", read_only=True)
    attempts = tuple(ledger.stored(0))
    ledger.close()
    return attempts


def states(server: HeadServer) -> list[str]:
    ledger = server._entries["drive"].dataset.ledger
    return [state.state.value if (state := ledger.episode(0, variant)) else "" for variant in (0, 1)]


def fault_kinds(server: HeadServer) -> list[str]:
    dataset = server._entries["drive"].dataset
    dataset.flush()
    return [fault.kind for fault in dataset.ledger.faults()]


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE faults SET incident = '{private}'",
        "UPDATE faults SET incident = 'incidents/../../../private'",
        "UPDATE attempts SET episode_id = '../../mine'",
        "UPDATE attempts SET episode_id = 'other-s0-000007-v0-00000000'",
    ],
)
def test_rows_of_another_user_are_no_paths(server: HeadServer, tmp_path: Path, change: str):
    """A dataset of another user may contain the folder of a node. Its paths led to files that were copied into the
    dataset, and replaced others.
    """
    (tmp_path / "private").mkdir()
    (tmp_path / "private" / "key").write_text("mine")
    attempts = stored_by(tmp_path / "n1")
    path = tmp_path / "n1" / "drive"
    (path / STATUS).write_text("{}")
    ledger = Ledger(path)
    ledger.record(Fault(time=1.0, run=1, worker="0", kind="hang", incident="incidents/1-hang"))
    ledger._connection.execute(change.format(private=tmp_path / "private"))
    ledger.close()
    (joined,) = answers(server, join(node="n1"))
    assert isinstance(joined, Joined)
    cell = NodeCell(joined.tasks[0], tmp_path / "n1", slots=1)
    cell._spec = replace(cell._spec, variants=1)
    with pytest.raises(InputError, match=f"{tmp_path}/n1/drive"):
        list(cell.results([0, 1]))
        cell.faults()
    object.__setattr__(attempts[0], "episode_id", "../../mine")  # a row of which nothing was checked
    with pytest.raises(InputError, match="not a path in this folder"):
        FolderUploader(tmp_path / "data", "n1").upload(attempts[0], path)


def test_given_up_episode_keeps_stored_variants(server: HeadServer, tmp_path: Path):
    """A single cell keeps the stored variants, too."""
    attempts = stored_by(tmp_path / "n1")
    place = str(tmp_path / "data")
    deliver(server, tmp_path / "n1", attempts, place=place, evidence="3 deaths")
    assert states(server) == ["DONE", ""] and not server.head.balance.given_up
    deliver(server, tmp_path / "n2", stored_by(tmp_path / "n2"), place=place, evidence="4 deaths")
    assert states(server) == ["DONE", "QUARANTINED"]
    assert server._entries["drive"].dataset.ledger.stored(0) == list(attempts)
    status = server.progress.status
    assert (status.stored, status.quarantined) == (1, 1)


def test_variants_of_two_nodes_settle_an_episode(server: HeadServer, tmp_path: Path):
    (row,) = stored_by(tmp_path / "n1")
    deliver(server, tmp_path / "n1", (row,), place=str(tmp_path / "data"), evidence="3 deaths")
    (other,) = failed_attempts(variants=2)[1:]
    report = EpisodeReport(group="drive", index=0, lease=1, attempts=(row, other))
    assert answers(server, join(node="n2"), Report(node="n2", episodes=(report,)))[1] == Reported()
    assert states(server) == ["DONE", "REJECTED"] and server.head.balance.is_settled("drive", 0)
    late = Vote(node="n1", group="drive", index=0, evidence="3 deaths")
    answers(server, late)
    assert not server.head.balance.given_up


def test_differing_object_is_a_fault_of_its_episode(server: HeadServer, tmp_path: Path):
    """The node that uploaded the object died before its report, so no row describes the object."""
    store = tmp_path / "store"
    (row,) = stored_by(tmp_path / "n1")
    (store / "episodes").mkdir(parents=True)
    (store / row.path).write_bytes(b"other")
    for node in ("n1", "n2"):
        deliver(server, tmp_path / node, stored_by(tmp_path / node), place=f"file://{store}")
    dataset = server._entries["drive"].dataset
    assert dataset.ledger.stored(0) == [] and (store / row.path).read_bytes() == b"other"
    assert states(server) == ["QUARANTINED", "QUARANTINED"]
    assert fault_kinds(server) == ["differs", "differs"]
    assert "object of other content" in dataset.ledger.faults()[0].detail


def test_object_of_the_stored_row_stays(server: HeadServer, tmp_path: Path):
    """A late copy with other content is a fault, and nothing else."""
    (row,) = stored_by(tmp_path / "n1")
    server.head.balance.settled("n0", 1, "drive", 0, 1.0)
    (tmp_path / "store" / "episodes").mkdir(parents=True)
    (tmp_path / "store" / row.path).write_bytes(b"other")
    deliver(server, tmp_path / "n1", (row,), place=f"file://{tmp_path}/store")
    assert fault_kinds(server) == ["differs"] and not server.head.balance.given_up


def test_too_large_row_is_given_up(server: HeadServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(outbox, "_MOST_ROW", 2000)
    (row,) = failed_attempts(variants=1)
    large = replace(row, detail="x" * 3000)
    for node in ("n1", "n2"):
        deliver(server, tmp_path / node, (large,), place=str(tmp_path / "data"))
    (evidence,) = server.head.balance.given_up.values()
    assert "too many for a message to the head; the limit is 2000" in evidence[0]
    assert fault_kinds(server) == ["too_large", "too_large"]
