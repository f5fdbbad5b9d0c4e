"""Datasets on disks that do not support hard links, locks or the syncing of folders."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from nimbus.datagen.datasets.export.publication import staging
from nimbus.datagen.errors import InputError, StorageError
from nimbus.datagen.files.folder_lock import LOCK_NAME, Holder, is_locked, lock_folder
from nimbus.datagen.store import commit
from nimbus.datagen.store.ledger.records import EpisodeStatus
from nimbus.datagen.store.verify import dataset_hashes, verify
from tests.datagen.store.test_failpoints import COUNT, GROUP, WRITE, finish, stored
from tests.support.forked import run_forked
from tests.support.poor_disk import LACKING, impoverish
from tests.support.staging import small, staged
from tests.support.synthetic import open_dataset, write_dataset

POOR = f"from tests.support.poor_disk import impoverish\nimpoverish{LACKING}\n"
PLACES = (
    "before_intent:2",
    "after_intent:1",
    "after_link:2",
    "after_directory_sync:1",
    "after_done:1",
    "after_unlink:2",
)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("clean") / "data"
    write_dataset(folder, [small(index) for index in range(COUNT)])
    return dataset_hashes(folder)


@pytest.mark.parametrize("lacking", [*LACKING, "all"])
def test_a_poor_disk_holds_the_same_dataset(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lacking: str, undisturbed: dict[str, str]
) -> None:
    impoverish(*(LACKING if lacking == "all" else (lacking,)), put=monkeypatch.setattr)
    folder = tmp_path / "data"
    with open_dataset(folder) as dataset:
        for attempt in dataset.commit(staged(dataset, 0, 1, 2)):
            assert (folder / attempt.path).is_file()
        assert not list(dataset.stage.iterdir())
    finish(folder)
    assert verify(folder).problems == () and dataset_hashes(folder) == undisturbed
    assert not list(folder.glob(".*"))


def test_a_name_that_is_taken_is_kept_without_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    impoverish("links", put=monkeypatch.setattr)
    with open_dataset(tmp_path / "data") as dataset:
        (one,) = staged(dataset, 0)
        taken = dataset.folder / one.attempt.path
        taken.write_text("another")
        assert dataset.commit([one]) == [one.attempt]
        assert [path.read_text() for path in dataset.orphans] == ["another"]
    assert verify(tmp_path / "data").problems == ()


def test_a_commit_that_fails_is_undone_without_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    impoverish("links", put=monkeypatch.setattr)

    def full(_: Path) -> None:
        raise OSError(28, "No space left on device")

    with open_dataset(tmp_path / "data") as dataset:
        group = staged(dataset, 0, 1)
        with monkeypatch.context() as patch:
            patch.setattr(commit, "sync_folder", full)
            with pytest.raises(StorageError):
                dataset.commit(group)
        assert all(item.path.exists() for item in group) and not list(dataset.episodes.iterdir())
        assert dataset.commit(group) == [item.attempt for item in group]
        assert {state.state for state in dataset.ledger.episodes()} == {EpisodeStatus.DONE}


@pytest.mark.parametrize("place", PLACES)
def test_a_commit_that_dies_without_links_is_taken_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, undisturbed: dict[str, str]
) -> None:
    folder = tmp_path / "data"
    done = run_forked(POOR + WRITE, folder, COUNT, GROUP, NIMBUS_FAILPOINT=place)
    assert done.returncode == -signal.SIGKILL, done.stderr
    impoverish(*LACKING, put=monkeypatch.setattr)
    with open_dataset(folder) as dataset:
        assert dataset.orphans == () and not list(dataset.stage.iterdir())
    assert stored(folder) >= set(done.stdout.split()) and verify(folder).problems == ()
    finish(folder)
    assert len(stored(folder)) == COUNT and dataset_hashes(folder) == undisturbed


def test_a_second_writer_is_refused_without_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    impoverish("locks", put=monkeypatch.setattr)
    assert not is_locked(tmp_path)
    lock = lock_folder(tmp_path)
    assert is_locked(tmp_path)
    with pytest.raises(InputError, match="another run writes into this folder"):
        lock_folder(tmp_path)
    lock.release()
    assert not is_locked(tmp_path)
    lock_folder(tmp_path).release()


def test_the_lock_of_a_dead_process_is_taken_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = f"""
{POOR}
import os, sys; from pathlib import Path; from nimbus.datagen.files.folder_lock import lock_folder
lock_folder(Path(sys.argv[1])); os._exit(0)
"""
    subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)],
        check=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert (tmp_path / LOCK_NAME).exists()
    impoverish("locks", put=monkeypatch.setattr)
    assert not is_locked(tmp_path)
    lock_folder(tmp_path).release()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("change", "what"), [("machine", "on another machine"), ("text", "not a lock file of Nimbus")])
def test_a_lock_that_cannot_be_judged_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str, what: str
) -> None:
    impoverish("locks", put=monkeypatch.setattr)
    lock_folder(tmp_path)
    file = tmp_path / LOCK_NAME
    machine = Holder.this_process().machine
    file.write_text(file.read_text().replace(machine, "elsewhere") if change == "machine" else "{")
    with pytest.raises(InputError, match=what) as error:
        lock_folder(tmp_path)
    assert "delete this file" in str(error.value)


def test_a_disk_without_any_locks_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    impoverish("locks", "ranges", put=monkeypatch.setattr)
    with pytest.raises(InputError, match="no file locks, which the ledger needs") as error:
        open_dataset(tmp_path / "data")
    assert "on a local disk" in str(error.value)
    assert not list((tmp_path / "data").iterdir())


def test_an_export_keeps_its_lock_while_it_clears(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    impoverish("locks", put=monkeypatch.setattr)
    with staging(tmp_path / "out", settings="a"), pytest.raises(InputError, match="another run"):
        with staging(tmp_path / "out", settings="a"):
            pass
