"""Kept failures of nodes reach the dataset with their rows, whatever happens to the head in between."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from nimbus.datagen.errors import StorageError
from nimbus.datagen.store.dataset import Dataset
from nimbus.datagen.store.ledger.attempt import Attempt, KeptFailure
from nimbus.datagen.store.remote.address import parse_address
from nimbus.datagen.store.remote.spool import open_spool
from nimbus.datagen.store.remote.uploads import Uploads
from nimbus.runner.cluster.delivery import FolderUploader, UploadedEpisode, attempt_key
from nimbus.runner.cluster.head_process import HeadServer
from nimbus.runner.cluster.messages import Answer, EpisodeReport, Report, Reported
from nimbus.runner.cluster.store_delivery import StoreEntry
from tests.runner.cluster.test_head import answers, join
from tests.support.cells import make_spec
from tests.support.clusters import job_of
from tests.support.synthetic import failed_attempts, open_dataset


def failure_of(node: Path, content: bytes) -> Attempt:
    """Return the row of a kept failure, and write its file into the folder of a node."""
    (row,) = failed_attempts(variants=1)
    kept = KeptFailure(path=f"failures/{row.episode_id}.a0.hdf5", byte_count=len(content), sha256="")
    (node / "failures").mkdir(parents=True, exist_ok=True)
    (node / kept.path).write_bytes(content)
    return replace(row, failure=kept)


class Head:
    """A head that can be restarted, and nodes that report the one failure."""

    def __init__(self, folder: Path) -> None:
        self.data, self._folder = folder / "data", folder
        self._job = job_of(make_spec(self.data))
        self.start()

    def start(self) -> None:
        self.server = HeadServer(self._job, self._folder / "s")
        answers(self.server, join(), join(node="n2"))

    def upload(self, node: str, content: bytes = b"data", *, is_partial: bool = False) -> Report:
        """Upload the failure of a node, and return the report for it."""
        row = failure_of(self._folder / node, content)
        staged = {attempt_key(row): FolderUploader(self.data, node).upload(row, self._folder / node).staged}
        values = {"group": "drive", "index": 0, "lease": 1, "attempts": (row,), "staged": staged}
        return Report(node=node, episodes=(EpisodeReport(**values, is_partial=is_partial),))

    def answer(self, report: Report) -> Answer:
        (answer,) = answers(self.server, report)
        return answer

    @property
    def files(self) -> list[bytes]:
        """Contents of the kept failures."""
        return [path.read_bytes() for path in self.data.glob("failures/*")]

    @property
    def rows(self) -> int:
        """Number of rows in the ledger."""
        return self.server._entries["drive"].dataset.ledger.row_count()


@pytest.fixture
def head(tmp_path: Path) -> Iterator[Head]:
    made = Head(tmp_path)
    yield made
    made.server._close("interrupted")


def test_failure_waits_for_its_row(head: Head):
    report = head.upload("n1")
    assert not head.files
    assert head.answer(report) == Reported()
    assert head.files == [b"data"] and head.rows == 1 and not list(head.data.glob("stage/*"))


@pytest.mark.parametrize("is_partial", [False, True])
def test_failure_is_uploaded_again_to_a_restarted_head(head: Head, is_partial: bool):
    """The row once named a missing file, and the node deleted its copy."""
    report = head.upload("n1", is_partial=is_partial)
    head.server._close("interrupted")
    head.start()
    assert head.answer(report) == Reported(missing=(("drive", 0),)) and head.rows == 0
    assert head.answer(head.upload("n1")) == Reported()
    assert head.files == [b"data"] and head.rows == 1


def test_failure_of_a_second_node_replaces_none(head: Head):
    head.answer(head.upload("n1"))
    report = head.upload("n2", b"other")
    assert head.files == [b"data"]
    assert head.answer(report) == Reported()
    assert head.files == [b"data"] and not list(head.data.glob("stage/*"))


def test_failure_stays_while_its_row_cannot_be_written(head: Head, monkeypatch: pytest.MonkeyPatch):
    report, record = head.upload("n1"), Dataset.record

    def full(*_: object) -> None:
        raise StorageError("cannot write: no space left")

    monkeypatch.setattr(Dataset, "record", full)
    assert head.answer(report) == Reported(is_full=True)
    monkeypatch.setattr(Dataset, "record", record)
    assert head.answer(report) == Reported()
    assert head.files == [b"data"] and head.rows == 1


def test_object_of_a_failure_is_noted_before_its_row(address: str, tmp_path: Path):
    """A head that was killed between the two left a row whose object no snapshot named."""
    spool, _, lock = open_spool(parse_address(address))
    row = failure_of(tmp_path / "n1", b"data")
    assert row.failure
    with open_dataset(spool) as dataset, closing(StoreEntry(dataset)) as entry:
        assert entry.keep_failures([UploadedEpisode(attempt=row)]) == {attempt_key(row)}
        assert entry.keep_failures([UploadedEpisode(attempt=row, objects={row.failure.path: 4})]) == set()
    assert Uploads(spool, read_only=True).has(row.failure.path)
    lock.free()
