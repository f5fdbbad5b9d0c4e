from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from nimbus.datagen.store.ledger.ledger import Ledger
from nimbus.datagen.store.ledger.records import EpisodeStatus
from nimbus.datagen.store.recovery import RecoveryReport
from nimbus.datagen.store.verify import dataset_hashes, verify
from tests.support.forked import run_forked
from tests.support.staging import small
from tests.support.synthetic import open_dataset, write_dataset

COUNT, GROUP = 6, 3
WRITE = """
import sys
from pathlib import Path
from tests.support.forked import run_forked
from tests.support.staging import staged
from tests.support.synthetic import open_dataset
with open_dataset(Path(sys.argv[1])) as dataset:
    missing = [index for index in range(int(sys.argv[2])) if not dataset.ledger.finished(index)]
    for start in range(0, len(missing), int(sys.argv[3])):
        group = missing[start : start + int(sys.argv[3])]
        leases = [dataset.lease(index) for index in group]
        made = [item for index, lease in zip(group, leases) for item in staged(dataset, index, lease=lease)]
        for attempt in dataset.commit(made):
            print(attempt.episode_id, flush=True)
"""
OPEN = """
import sys; from pathlib import Path
from tests.support.synthetic import open_dataset
open_dataset(Path(sys.argv[1])).close()
"""

# Expected state at the next opening of a group of three that died at the n-th pass, in its first or second group.
CASES = {
    ("before_intent", 1): RecoveryReport(cleared=3),
    ("before_intent", 2): RecoveryReport(cleared=3),
    ("after_intent", 1): RecoveryReport(rolled_forward=3),
    ("after_intent", 2): RecoveryReport(rolled_forward=3),
    ("after_link", 1): RecoveryReport(rolled_forward=3),
    ("after_link", 3): RecoveryReport(rolled_forward=3),
    ("after_link", 5): RecoveryReport(rolled_forward=3),
    ("after_directory_sync", 1): RecoveryReport(rolled_forward=3),
    ("after_directory_sync", 2): RecoveryReport(rolled_forward=3),
    ("after_done", 1): RecoveryReport(cleared=3),
    ("after_done", 2): RecoveryReport(cleared=3),
    ("after_unlink", 1): RecoveryReport(cleared=2),
    ("after_unlink", 2): RecoveryReport(cleared=1),
    ("after_unlink", 6): RecoveryReport(),
}
GROUPS_DONE = {("before_intent", 2): 1, ("after_intent", 2): 1, ("after_link", 5): 1, ("after_directory_sync", 2): 1}
GROUPS_DONE |= {("after_done", 1): 1, ("after_done", 2): 2, ("after_unlink", 1): 1, ("after_unlink", 2): 1}
GROUPS_DONE |= {("after_unlink", 6): 2}
ALIKE = {(place, 2) for place in ("before_intent", "after_intent", "after_directory_sync", "after_done")}
ALIKE |= {("after_link", 3)}
"""Cases that differ from the previous one only by the group or file at which the process dies."""


def die(script: str, *arguments: object, failpoint: str) -> list[str]:
    """Run until the process is killed at a failpoint; return the acknowledged episodes."""
    done = run_forked(script, *arguments, NIMBUS_FAILPOINT=failpoint)
    assert done.returncode == -signal.SIGKILL, done.stderr
    return done.stdout.split()


def stored(folder: Path) -> set[str]:
    ledger = Ledger(folder, read_only=True)
    try:
        return {state.episode_id for state in ledger.episodes(EpisodeStatus.DONE)}
    finally:
        ledger.close()


def finish(folder: Path) -> None:
    """Make the missing episodes, without groups and leases."""
    with open_dataset(folder) as dataset:
        missing = [index for index in range(COUNT) if not dataset.ledger.finished(index)]
    if missing:
        write_dataset(folder, [small(index) for index in missing])


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("clean") / "data"
    write_dataset(folder, [small(index) for index in range(COUNT)])
    return dataset_hashes(folder)


@pytest.mark.parametrize(
    "case",
    [pytest.param(case, marks=(pytest.mark.slow, pytest.mark.long) if case in ALIKE else ()) for case in CASES],
    ids=lambda case: f"{case[0]}-{case[1]}",
)
def test_a_commit_that_dies_anywhere_is_finished_or_undone_exactly(
    tmp_path: Path, case: tuple[str, int], undisturbed: dict[str, str]
) -> None:
    folder, expected = tmp_path / "data", CASES[case]
    acknowledged = die(WRITE, folder, COUNT, GROUP, failpoint=f"{case[0]}:{case[1]}")
    assert len(stored(folder)) == GROUP * GROUPS_DONE.get(case, 0)
    assert len(acknowledged) == GROUP * (GROUPS_DONE.get(case, 0) - case[0].startswith(("after_done", "after_unlink")))
    with open_dataset(folder) as dataset:
        assert dataset.recovered == expected
        assert dataset.orphans == () and not list(dataset.stage.iterdir())
        assert {state.state for state in dataset.ledger.episodes()} <= {EpisodeStatus.DONE, EpisodeStatus.PENDING}
    assert stored(folder) >= set(acknowledged)
    assert len(stored(folder)) == GROUP * GROUPS_DONE.get(case, 0) + expected.rolled_forward
    assert verify(folder).problems == ()
    with open_dataset(folder) as dataset:
        assert dataset.recovered == RecoveryReport()
    finish(folder)
    assert len(stored(folder)) == COUNT and verify(folder).problems == ()
    assert dataset_hashes(folder) == undisturbed


@pytest.mark.parametrize("place", ["after_link:2", "after_directory_sync", "after_done", "after_unlink:2"])
def test_a_recovery_that_dies_too_is_taken_up_by_the_next_one(
    tmp_path: Path, place: str, undisturbed: dict[str, str]
) -> None:
    folder = tmp_path / "data"
    die(WRITE, folder, COUNT, COUNT, failpoint="after_intent")
    assert any("its commit is unfinished" in problem for problem in verify(folder).problems)
    die(OPEN, folder, failpoint=place)
    with open_dataset(folder) as dataset:
        is_done = place.startswith(("after_done", "after_unlink"))
        left = COUNT - (int(place[-1]) if place.startswith("after_unlink") else 0)
        assert dataset.recovered == (RecoveryReport(cleared=left) if is_done else RecoveryReport(rolled_forward=COUNT))
    assert len(stored(folder)) == COUNT and verify(folder).problems == ()
    assert dataset_hashes(folder) == undisturbed


def test_an_intent_whose_file_is_not_whole_is_undone_and_made_again(
    tmp_path: Path, undisturbed: dict[str, str]
) -> None:
    folder = tmp_path / "data"
    die(WRITE, folder, COUNT, COUNT, failpoint="after_link:3")
    paths = sorted((folder / "stage").iterdir())
    paths[-1].unlink()
    os.truncate(paths[-2], 5000)
    scribbled = bytearray(paths[-3].read_bytes())
    scribbled[len(scribbled) // 2 :] = bytes(len(scribbled) - len(scribbled) // 2)
    paths[-3].write_bytes(scribbled)
    with open_dataset(folder) as dataset:
        assert dataset.recovered == RecoveryReport(rolled_forward=COUNT - 3, rolled_back=3)
        assert not list(dataset.stage.iterdir())
        assert {state.idx for state in dataset.ledger.episodes(EpisodeStatus.PENDING)} == {3, 4, 5}
    assert verify(folder).problems == () and len(stored(folder)) == COUNT - 3
    finish(folder)
    assert dataset_hashes(folder) == undisturbed


def test_a_final_file_that_broke_before_the_end_of_its_commit_is_put_aside_for_the_staged_one(
    tmp_path: Path, undisturbed: dict[str, str]
) -> None:
    folder = tmp_path / "data"
    die(WRITE, folder, COUNT, COUNT, failpoint="after_directory_sync")
    final = sorted((folder / "episodes").iterdir())[0]
    final.unlink()
    final.write_bytes(b"half")
    with open_dataset(folder) as dataset:
        assert dataset.recovered == RecoveryReport(rolled_forward=COUNT)
        assert [path.read_bytes() for path in dataset.orphans] == [b"half"]
    assert dataset_hashes(folder) == undisturbed and verify(folder).problems == ()


def test_without_a_failpoint_nothing_dies(tmp_path: Path) -> None:
    done = run_forked(WRITE, tmp_path / "data", 2, 2, NIMBUS_FAILPOINT="")
    assert done.returncode == 0 and len(done.stdout.split()) == 2
    assert run_forked(WRITE, tmp_path / "data", 2, 2, NIMBUS_FAILPOINT="no_such_place").returncode == 0
