"""Results of several nodes and tasks in one commit of the head."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from nimbus.datagen.errors import StorageError
from nimbus.datagen.files.codec import to_json
from nimbus.datagen.store.dataset import Dataset
from nimbus.datagen.store.info import DatasetInfo, read_info
from nimbus.datagen.store.ledger.attempt import Attempt
from nimbus.datagen.store.ledger.ledger import Ledger
from nimbus.datagen.store.ledger.records import Fault
from nimbus.datagen.version import nimbus_version
from nimbus.runner.cluster.dataset_entry import DatasetEntry
from nimbus.runner.cluster.delivery import FolderUploader
from nimbus.runner.cluster.head_process import HeadServer
from nimbus.runner.cluster.job import ClusterJob
from nimbus.runner.cluster.machine import platform_name
from nimbus.runner.cluster.messages import Answer, Description, Done, EpisodeReport, Join, Report, Reported
from tests.support.cells import make_spec
from tests.support.clusters import job_of
from tests.support.synthetic import make_rendered, write_dataset

TASKS = ("first", "second")


class Nodes:
    """Two nodes that have made the same episode in two variants, and the head of a job of two tasks.

    Args:
        folder: Folder for all files.
    """

    def __init__(self, folder: Path) -> None:
        self._made = folder / "made"
        write_dataset(self._made, [make_rendered(0), make_rendered(0, variant=1)])
        with closing(Ledger(self._made, read_only=True)) as ledger:
            self.rows = tuple(ledger.stored())
        self.info = read_info(self._made)
        (task,) = job_of(make_spec(folder / "job" / TASKS[0], variants=2)).tasks
        specs = {name: replace(task.spec, folder=str(folder / "job" / name)) for name in TASKS}
        tasks = tuple(replace(task, name=name, spec=spec) for name, spec in specs.items())
        self.server = HeadServer(ClusterJob(folder=str(folder / "job"), tasks=tasks), folder / "s")
        self._folders = {name: Path(spec.folder) for name, spec in specs.items()}
        self._answers: list[Answer] = []
        for node in ("n1", "n2"):
            known = {"version": nimbus_version(), "platform": platform_name(), "host": "h", "pid": 1, "clock": 0.0}
            self.server.head.take(Join(node=node, slots=1, **known), self._answers.append, 1.0)

    def upload(self, node: str, *, group: str = TASKS[0]) -> None:
        """Upload the files of the episode."""
        for row in self.rows:
            FolderUploader(self._folders[group], node).upload(row, self._made)

    def report(
        self,
        node: str,
        *,
        group: str = TASKS[0],
        rows: tuple[Attempt, ...] = (),
        info: DatasetInfo | None = None,
        is_partial: bool = False,
    ) -> None:
        """Send a report, which waits for the next commit."""
        rows = rows or self.rows
        staged = {f"{row.episode_id}.a{row.attempt}": f"{row.episode_id}.{node}.tmp" for row in rows}
        episode = EpisodeReport(group=group, index=0, lease=1, attempts=rows, staged=staged, is_partial=is_partial)
        text = to_json(info) if info else ""
        self.server.head.take(Report(node=node, episodes=(episode,), info=text), self._answers.append, 1.0)

    def commit(self) -> list[Answer]:
        """Commit the waiting reports; return the answers."""
        self._answers.clear()
        self.server.head.commit(1.0)
        return list(self._answers)

    def dataset(self, group: str = TASKS[0]) -> Dataset:
        """Return the dataset of a task."""
        return self.server._entries[group].dataset

    @property
    def doubled(self) -> int:
        """Number of duplicate results."""
        return sum(entry.doubled for entry in self.server._entries.values())


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[Nodes]:
    """Return nodes and a head that is not started."""
    made = Nodes(tmp_path)
    yield made
    made.server._close("interrupted")


def test_each_task_keeps_its_own_description(nodes: Nodes):
    """A dataset once got the cameras of another task whose reports were in the same commit."""
    for node, group, width in (("n1", "first", 32), ("n2", "second", 64)):
        nodes.upload(node, group=group)
        cameras = {group: (width, width)}
        nodes.report(node, group=group, info=replace(nodes.info, cameras=cameras, rate=float(width)))
    assert nodes.commit() == [Reported()] * 2
    assert nodes.dataset("first").info.cameras == {"first": (32, 32)} and nodes.dataset("first").info.rate == 32.0
    assert nodes.dataset("second").info.cameras == {"second": (64, 64)} and nodes.dataset("second").info.rate == 64.0


def test_descriptions_of_all_nodes_are_merged(nodes: Nodes):
    """The second description in a commit was once acknowledged, but ignored."""
    for node, row in zip(("n1", "n2"), nodes.rows, strict=True):
        nodes.upload(node)
        info = replace(nodes.info, instance_names=(f"thing of {node}",))
        nodes.report(node, rows=(row,), info=info, is_partial=True)
    assert nodes.commit() == [Reported()] * 2
    assert nodes.dataset().info.instance_names == ("thing of n1", "thing of n2")


def test_last_description_of_a_node_needs_no_episode(nodes: Nodes):
    """A node's ``dataset.json`` follows its rows; names of its last episodes were once lost."""
    nodes.upload("n1")
    nodes.report("n1", info=nodes.info)
    nodes.commit()
    last = replace(nodes.info, instance_names=("thing of the last episode",))
    answers: list[Answer] = []
    nodes.server.head.take(Description(node="n1", group=TASKS[0], info=to_json(last)), answers.append, 1.0)
    assert answers == [Done()] and "thing of the last episode" in nodes.dataset().info.instance_names
    assert nodes.dataset().info.episode_count == 2


def test_failed_commit_settles_no_duplicate(nodes: Nodes, monkeypatch: pytest.MonkeyPatch):
    """The second report of an episode in a commit once settled it, although no row was written."""

    def full(*_: object, **__: object) -> None:
        raise StorageError("cannot write: no space left")

    for node in ("n1", "n2"):
        nodes.upload(node)
        nodes.report(node)
    with monkeypatch.context() as patched:
        patched.setattr(Dataset, "commit", full)
        assert nodes.commit() == [Reported(is_full=True)] * 2
    assert not nodes.server.head.balance.is_settled("first", 0) and not nodes.doubled
    for node in ("n1", "n2"):
        nodes.report(node)
    assert nodes.commit() == [Reported()] * 2
    assert [row.variant for row in nodes.dataset().ledger.stored()] == [0, 1] and nodes.doubled == 1
    assert not list(nodes.dataset().stage.iterdir())


def test_missing_files_settle_no_duplicate(nodes: Nodes):
    for node in ("n1", "n2"):
        nodes.report(node)
    assert nodes.commit() == [Reported(missing=(("first", 0),))] * 2
    assert not nodes.server.head.balance.is_settled("first", 0) and not nodes.doubled


def test_second_node_replaces_missing_files(nodes: Nodes):
    nodes.report("n1")
    nodes.upload("n2")
    nodes.report("n2")
    assert nodes.commit() == [Reported()] * 2
    assert len(nodes.dataset().ledger.stored()) == 2 and nodes.server.head.balance.is_settled("first", 0)


def test_refused_rows_are_not_counted(nodes: Nodes):
    """Refused rows were once counted, so a run with too few episodes ended as complete."""
    nodes.upload("n1")
    nodes.report("n1", rows=nodes.rows[:1], is_partial=True)
    nodes.commit()
    nodes.report("n1")
    assert nodes.commit() == [Reported()]
    assert nodes.server.progress.status.stored == 2 and nodes.server.head.balance.is_settled("first", 0)


def test_faults_are_known_after_a_restart(tmp_path: Path):
    """A restarted agent repeats its faults, also to a restarted head."""
    row = Fault(time=1.0, run=1, worker="planner-0", kind="exit", idx=0, detail="killed")
    (task,) = job_of(make_spec(tmp_path / "job")).tasks
    for new in ([row], []):
        entry = DatasetEntry(task)
        assert entry.record_faults("n1", [row]) == new
        entry.flush()
        assert len(entry.dataset.ledger.faults()) == 1
        entry.close("interrupted")
