from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import pytest

from nimbus.datagen.episode.trajectory import Outcome, Reason
from nimbus.datagen.store.episode_file.read import EpisodeFile
from nimbus.datagen.store.failures import sentence
from nimbus.datagen.store.ledger.ledger import Ledger
from nimbus.datagen.store.verify import dataset_hashes, verify
from tests.support.synthetic import (
    failure,
    make_labels,
    make_layout,
    make_observations,
    make_rendered,
    open_dataset,
    write_dataset,
)


def failed(index: int, **options: Any):
    """Return a failed attempt that was rendered."""
    shown = make_observations(20)
    return make_rendered(index, outcome=failure(Reason.NO_IK), labels=make_labels(), observations=shown, **options)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with an episode that was stored after a kept failed attempt, and one that was given up."""
    target = tmp_path / "data"
    items = [failed(0, attempt=0, final=False), make_rendered(0, attempt=1), failed(1)]
    write_dataset(target, items, keep_failures=True)
    return target


def test_kept_failures_are_labelled_files_of_their_own_and_no_episodes(folder: Path) -> None:
    ledger = Ledger(folder, read_only=True)
    attempts = ledger.attempts()
    ledger.close()
    kept = [attempt for attempt in attempts if attempt.failure]
    assert [(one.idx, one.attempt, one.path) for one in kept] == [(0, 0, ""), (1, 0, "")]
    assert sorted(path.name for path in (folder / "failures").iterdir()) == sorted(
        one.failure.path.removeprefix("failures/") for one in kept if one.failure
    )
    found = verify(folder)
    assert (found.problems, found.episode_count, found.failed_count, found.kept_count) == ((), 1, 2, 2)
    assert found.info.episode_count == 1 and not list((folder / "stage").iterdir())


def test_a_kept_failure_reads_like_an_episode_with_its_images_phase_reason_and_words(folder: Path) -> None:
    path = next((folder / "failures").glob("*-000001-*.a0.hdf5"))
    with EpisodeFile(path) as episode:
        assert episode.outcome == failure(Reason.NO_IK)
        assert episode.rows("observations/images/front", 19).shape == (48, 64, 3)
        assert episode.labels and episode.trajectory().step_count == 20
    with h5py.File(path) as file:
        words = str(file.attrs["failure"])
    assert "no ik" in words and "closest 3 cm short" in words and "items_0 is a can" in words


def test_the_hash_of_a_dataset_is_the_same_with_and_without_its_failures(folder: Path, tmp_path: Path) -> None:
    write_dataset(tmp_path / "plain", [failed(0, final=False), make_rendered(0, attempt=1), failed(1)])
    assert not (tmp_path / "plain" / "failures").exists()
    assert dataset_hashes(folder) == dataset_hashes(tmp_path / "plain")


def test_verify_finds_a_failure_that_is_changed_missing_or_unknown(folder: Path) -> None:
    first, second = sorted((folder / "failures").iterdir())
    with h5py.File(first, "r+") as file:
        file["action"][0, 0] = 9.0  # type: ignore[index]
    second.rename(second.with_name("stray.hdf5"))
    problems = "\n".join(verify(folder).problems)
    assert f"{first.name}: the content differs" in problems
    assert f"{second.name}: missing" in problems and "stray.hdf5: not in the ledger" in problems


def test_what_a_killed_run_left_between_file_and_row_is_removed_by_the_next(folder: Path) -> None:
    stray = folder / "failures" / "stray.hdf5"
    stray.write_bytes(b"half")
    with open_dataset(folder):
        assert not stray.exists()
    assert verify(folder).problems == ()


def test_an_attempt_that_never_moved_is_not_kept(tmp_path: Path) -> None:
    write_dataset(tmp_path / "data", [make_rendered(0, outcome=failure(), steps=0)], keep_failures=True)
    assert not (tmp_path / "data" / "failures").exists() and verify(tmp_path / "data").kept_count == 0


def test_a_failure_is_told_in_a_sentence() -> None:
    outcome = Outcome(success=False, phase="pick items_1 grasp", reason=Reason.MISSED_GRASP, detail="beside items_1")
    words = sentence(outcome, make_layout())
    assert words.startswith('With the instruction "put every piece of trash') and words.endswith("(items_1 is a can).")
    assert "failed in 'pick items_1 grasp': missed grasp: beside items_1" in words
