"""Reports of a node fit into messages, and uploads of a duplicate result use no space."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from nimbus.datagen.store.ledger.attempt import KeptFailure
from nimbus.runner.cluster.delivery import FolderEntry, UploadedEpisode
from nimbus.runner.cluster.messages import MOST_BYTES, Report, to_line
from nimbus.runner.cluster.outbox import CellResult, Outbox
from tests.support.synthetic import failed_attempts, make_rendered, open_dataset, write_dataset


def outbox_of(rows: int) -> Outbox:
    """Return an outbox with one uploaded episode of a number of rows of 9 kB."""
    (row,) = failed_attempts(variants=1)
    attempts = tuple(replace(row, attempt=number, detail="x" * 9000) for number in range(rows))
    outbox = Outbox()
    outbox.add("drive", 1, CellResult(index=0, attempts=attempts), seconds=1.0)
    outbox.waiting_for_upload()[0].is_uploaded = True
    return outbox


def test_episode_with_many_rows_comes_in_parts():
    """The message also contains a description of 28 kB."""
    reports = [episodes for _, episodes in outbox_of(9).reports()]
    assert [episodes[0].is_partial for episodes in reports] == [True] * (len(reports) - 1) + [False]
    assert sum(len(episodes[0].attempts) for episodes in reports) == 9
    assert all(len(to_line(Report(node="n1", episodes=found, info="x" * 28_000))) < MOST_BYTES for found in reports)


def test_part_whose_files_are_missing_ends_the_report():
    """Later parts would settle the episode without these files."""
    reports = outbox_of(9).reports()
    entries, _ = next(reports)
    entries[0].is_uploaded = False
    assert list(reports) == []


def test_second_result_takes_no_room(tmp_path: Path):
    write_dataset(tmp_path / "data", [make_rendered(0)])
    (row,) = failed_attempts(variants=1, index=1)
    kept = KeptFailure(path=f"failures/{row.episode_id}.a0.hdf5", byte_count=4, sha256="")
    failed = replace(row, failure=kept)
    with open_dataset(tmp_path / "data") as dataset:
        (attempt,) = dataset.ledger.stored(0)
        staged = dataset.stage / f"{attempt.episode_id}.n2.tmp"
        staged.write_bytes(b"copy")
        failure = dataset.stage / f"{row.episode_id}.a0.n2.failure.tmp"
        failure.write_bytes(b"copy")
        doubles = [UploadedEpisode(attempt=attempt, staged=staged.name)]
        doubles.append(UploadedEpisode(attempt=failed, staged=failure.name))
        FolderEntry(dataset).discard(doubles)
        assert not staged.exists() and not failure.exists() and dataset.ledger.stored(0) == [attempt]
