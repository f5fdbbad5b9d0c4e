"""The head apart from its balance: tasks in parts, full disks, repeated messages, and nodes without resources."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from nimbus.datagen.errors import InputError, StorageError, StoreAwayError
from nimbus.datagen.store.dataset import Dataset
from nimbus.datagen.store.ledger.ledger import Ledger
from nimbus.datagen.store.ledger.records import Fault
from nimbus.datagen.version import nimbus_version
from nimbus.runner.cluster import admission, head_process
from nimbus.runner.cluster.dataset_entry import DatasetEntry
from nimbus.runner.cluster.demand import NodeBounds
from nimbus.runner.cluster.head_process import HeadServer
from nimbus.runner.cluster.job import ClusterJob
from nimbus.runner.cluster.line_socket import HeadClient
from nimbus.runner.cluster.machine import platform_name
from nimbus.runner.cluster.messages import (
    Answer,
    Beat,
    Beaten,
    Details,
    EpisodeReport,
    Faults,
    Finished,
    Join,
    Joined,
    JoinRefused,
    Leased,
    LeaseRequest,
    Leave,
    NodeReading,
    NoLease,
    Report,
    Reported,
    Request,
    Unknown,
    Vote,
)
from nimbus.runner.monitor.node_details import read_details
from nimbus.runner.monitor.status import Status
from tests.support.cells import make_spec
from tests.support.clusters import job_of
from tests.support.synthetic import failed_attempts


def join(**values: Any) -> Join:
    known = {"version": nimbus_version(), "platform": platform_name(), "host": "h", "pid": 1, "clock": time.time()}
    return Join(**({"node": "n1", "slots": 1} | known | values))


def answers(server: HeadServer, *requests: Request) -> list[Answer]:
    found: list[Answer] = []
    for request in requests:
        server.head.take(request, found.append, 1.0)
    server.head.commit(1.0)
    return found


@pytest.fixture
def server(tmp_path: Path) -> Iterator[HeadServer]:
    """Return a head of one task that is not started."""
    made = HeadServer(job_of(make_spec(tmp_path / "data")), tmp_path / "s")
    yield made
    made._close("interrupted")


def test_many_tasks_are_described_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    tasks = [
        replace(job_of(make_spec(tmp_path / "job" / name)).tasks[0], name=name) for name in ("first", "second", "third")
    ]
    server = HeadServer(ClusterJob(folder=f"{tmp_path}/job", tasks=tuple(tasks)), tmp_path / "s")
    monkeypatch.setattr(admission, "_TASKS_BYTES", 100)
    names, first = [], 0
    while True:
        (answer,) = answers(server, join(first=first))
        assert isinstance(answer, Joined)
        names += [task.group for task in answer.tasks]
        if not (first := answer.next):
            break
    server._close("interrupted")
    assert names == ["first", "second", "third"]


def test_full_disk_delays_what_is_given_up(server: HeadServer, monkeypatch: pytest.MonkeyPatch):
    """A full disk once ended the head."""
    answers(server, join())
    record = Dataset.quarantine

    def full(*_: object, **__: object) -> None:
        raise StorageError("cannot write: no space left")

    monkeypatch.setattr(Dataset, "quarantine", full)
    for node in ("n1", "n2"):
        answers(server, join(node=node), Vote(node=node, group="drive", index=3, evidence="3 deaths"))
    server.head.look(2.0)
    assert server.head._unwritten == [("drive", 3)] and not server.head.is_done
    monkeypatch.setattr(Dataset, "quarantine", record)
    server.head.look(3.0)
    known = server._entries["drive"].dataset.ledger.episode(3)
    assert known and known.state == "QUARANTINED" and not server.head._unwritten


def test_node_that_cannot_even_join_ends_the_run(server: HeadServer):
    """On Ray, the run once waited forever."""
    assert answers(server, Leave(node="n1", why="its offer is not valid", has_failed=True)) == [Unknown()]
    assert server.head.failure == "node n1: its offer is not valid"
    answers(server, join(node="n2"), Leave(node="n2", why="done"))
    assert answers(server, Leave(node="n2", why="done")) == [Unknown()] and not server.head.failure


def test_a_clock_hours_apart_is_one_line(server: HeadServer):
    (answer,) = answers(server, join(clock=time.time() - 7200.0))
    assert isinstance(answer, Joined)
    (told,) = [event.text for event in server.progress.status.events if "clock" in event.text]
    assert told == "node n1: its clock differs by -7200 s; its times in the ledger are off by as much"


def test_the_head_keeps_what_a_node_says_of_its_cell(server: HeadServer):
    answers(server, join(), Details(node="n1", status=Status(task="drive", stored=5)))
    server.head.look(1.0)
    found = read_details(server.progress.folder, "n1")
    assert found and found.stored == 5
    assert answers(server, Details(node="n2", status=Status(task="drive"))) == [Unknown()]


@pytest.mark.parametrize(("shared", "cores"), [(0, 3), (2, 2)])
def test_cores_are_those_of_all_nodes_at_work(tmp_path: Path, shared: int, cores: int):
    """The number once counted only the nodes that were left at the end: none."""
    server = HeadServer(job_of(make_spec(tmp_path / "data")), tmp_path / "s", cores=shared)
    answers(server, join(slots=2), join(node="n2"))
    server.head.look(1.0)
    answers(server, Leave(node="n1", why="done"), Leave(node="n2", why="done"))
    server._close("interrupted")
    assert server.progress.status.cores == cores
    with closing(Ledger(tmp_path / "data", read_only=True)) as ledger:
        assert ledger.runs()[-1].cores == cores


def test_repeated_faults_count_once(server: HeadServer):
    rows = (Fault(time=5.0, run=1, worker="0", kind="sigkill", idx=1),)
    answers(server, join(), *2 * [Faults(node="n1", group="drive", rows=rows)])
    server.head.look(1.0)
    assert server.head.balance.health.faults["n1"] == 1 and server.progress.status.faults == {"sigkill": 1}


def test_parts_of_an_episode_are_counted(server: HeadServer):
    """The head once ended too early if rows of an episode needed two messages."""
    first, last = (replace(failed_attempts(variants=1, index=2)[0], attempt=number) for number in range(2))
    parts = [
        EpisodeReport(group="drive", index=2, lease=1, attempts=(replace(first, final=False),), is_partial=True),
        EpisodeReport(group="drive", index=2, lease=1, attempts=(replace(last, final=True),)),
    ]
    for part in (parts[0], *parts):  # the answer of the first is lost
        assert answers(server, join(), Report(node="n1", episodes=(part,)))[1:] == [Reported()]
    assert server.progress.status.attempts == 2 and server.head.balance.is_settled("drive", 2)


def test_restarted_head_learns_the_loaded_task(server: HeadServer):
    answers(server, join(), Beat(node="n1", held={}, reading=NodeReading(group="drive")))
    assert server.head.balance.nodes["n1"].loaded == "drive"


def test_run_without_a_fit_node_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """On a Ray cluster, only the head can end it."""
    monkeypatch.setattr(head_process, "_ABANDONED", 0.2)
    server = HeadServer(job_of(make_spec(tmp_path / "data")), tmp_path / "s")
    ends = []
    thread = threading.Thread(target=lambda: ends.append(server.run()))
    thread.start()
    assert isinstance(HeadClient(tmp_path / "s").ask(join(version="0.0.1")), JoinRefused)
    thread.join(10)
    assert [end.state for end in ends] == ["failed"] and "Nimbus 0.0.1, the head has" in ends[0].line


def test_restarted_head_waits_for_the_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A restarted head reads the last episodes; an unreachable store once ended the run."""
    errors, recount = [StoreAwayError("the store does not answer")] * 2, Dataset._recover

    def recover(dataset: Dataset) -> None:
        if errors:
            raise errors.pop()
        recount(dataset)

    monkeypatch.setattr(Dataset, "_recover", recover)
    monkeypatch.setattr(head_process, "_AWAY", 0.0)
    head_process.open_server(job_of(make_spec(tmp_path / "data")), tmp_path / "s")._close("interrupted")
    assert not errors


def test_folder_that_stands_for_a_store_elsewhere_is_refused(tmp_path: Path):
    job = job_of(make_spec(tmp_path / "data"))
    job = replace(job, tasks=(replace(job.tasks[0], address="s3://bucket/x"),))
    with pytest.raises(InputError, match="not on the head's machine; the head writes to s3://bucket/x"):
        HeadServer(job, tmp_path / "s")


def test_same_command_has_one_digest(tmp_path: Path):
    """The size of the spool depends on the free disk space."""
    job = job_of(make_spec(tmp_path / "data", spool_bytes=5))
    spec = job.tasks[0].spec
    other = replace(spec, resources=replace(spec.resources, spool_bytes=7))
    assert replace(job, tasks=(replace(job.tasks[0], spec=other),)).digest == job.digest
    assert replace(job, tasks=(replace(job.tasks[0], spec=replace(spec, seed=9)),)).digest != job.digest


def test_demand_for_nodes_follows_the_work(tmp_path: Path):
    """A node without work leaves if fewer nodes are needed; a node with work stays."""
    spec = make_spec(tmp_path / "data", episodes=2000)
    job = replace(job_of(spec), bounds=NodeBounds(least=1, most=40))
    server = HeadServer(job, tmp_path / "s")
    try:
        assert server.head.wanted == 1  # the nodes are still unknown
        answers(server, join(), join(node="n2"))
        server.head.look(1.0)
        assert server.head.wanted == 6  # 20,000 s of work on one slot, in an hour
        server.head.look(1801.0)
        assert server.head.wanted == 12
        assert server.progress.status.cluster and server.progress.status.cluster.wanted_nodes == 12
        server.head.balance.work["drive"].open = server.head.balance.work["drive"].left = 1
        server.head.look(1802.0)
        assert server.head.wanted == 1
        idle = LeaseRequest(node="n1", idle=1, ahead=1)
        leased, busy = answers(server, idle, LeaseRequest(node="n1", idle=0, ahead=1))
        assert isinstance(leased, Leased) and isinstance(busy, NoLease)
        (spare,) = answers(server, LeaseRequest(node="n2", idle=1, ahead=1))
        assert isinstance(spare, Finished) and spare.why == "fewer nodes are wanted" and not spare.has_failed
    finally:
        server._close("interrupted")


def test_demand_outlives_the_first_node(tmp_path: Path):
    """The demand once rose to the largest number of nodes when the size of a node was forgotten after it left."""
    spec = make_spec(tmp_path / "data", episodes=2000)
    server = HeadServer(replace(job_of(spec), bounds=NodeBounds(least=1, most=40)), tmp_path / "s")
    try:
        server.head.look(1.0)
        assert server.head.wanted == 1
        answers(server, join(slots=8))
        server.head.look(2.0)
        assert server.head.wanted == 1  # 20,000 s of work on eight slots
        answers(server, Leave(node="n1", why="no disk", has_failed=True))
        server.head.look(3.0)
        assert server.head.wanted == 1 and server.head.failure == "node n1: no disk"
        answers(server, join(node="n2", slots=8))
        assert not server.head.failure
    finally:
        server._close("interrupted")


def test_node_that_fails_everything_leaves_as_failed(server: HeadServer):
    """Such a node once left like a node without work, and was not replaced."""
    answers(server, join(), join(node="n2"))
    server.head._drained["n1"] = "12 faults"
    beat, lease = answers(server, Beat(node="n1", held={}), LeaseRequest(node="n1", idle=1, ahead=1))
    assert beat == Beaten(drain="12 faults", has_failed=True) and lease == Finished(why="12 faults", has_failed=True)


def test_unstorable_report_ends_its_connection_only(server: HeadServer, monkeypatch: pytest.MonkeyPatch):
    """Such a report once ended the head. The reports that are committed together with it are stored."""
    answers(server, join(), join(node="n2"))
    enter = DatasetEntry.enter

    def enter_most(self: DatasetEntry, reports: Sequence[tuple[str, EpisodeReport]], *rest: Any) -> None:
        if any(node == "n1" for node, _ in reports):
            raise OverflowError("too large")
        enter(self, reports, *rest)

    monkeypatch.setattr(DatasetEntry, "enter", enter_most)
    found: list[Answer] = []
    refused: list[str] = []
    for number, node in enumerate(("n1", "n2")):
        rows = failed_attempts(variants=1, index=number)
        episode = EpisodeReport(group="drive", index=number, lease=1, attempts=rows)
        report = Report(node=node, episodes=(episode,))
        server.head.take(report, found.append, 1.0, refuse=lambda node=node: refused.append(node))
    server.head.commit(1.0)
    assert found == [Reported()] and refused == ["n1"]
    assert [row.idx for row in server._entries["drive"].dataset.ledger.attempts()] == [1]
    assert any("a report cannot be stored: too large" in event.text for event in server.progress.status.events)
