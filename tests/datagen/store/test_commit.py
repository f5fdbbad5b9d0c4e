from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nimbus.datagen.files.codec import to_compact_json
from nimbus.datagen.store.dataset import Dataset
from nimbus.datagen.store.info import read_info
from nimbus.datagen.store.ledger.attempt import Attempt, attempt_of
from nimbus.datagen.store.ledger.records import EpisodeStatus
from nimbus.datagen.store.recovery import clear_stage
from nimbus.datagen.store.verify import verify
from tests.support.staging import small, staged
from tests.support.synthetic import failure, make_rendered, open_dataset, write_dataset


def failed(index: int, *, final: bool = True, attempt: int = 0) -> Attempt:
    item = make_rendered(index, outcome=failure())
    return attempt_of(item.layout, item.trajectory, attempt=attempt, final=final, times={"plan": 1.0}, started=0.0)


def states(dataset: Dataset) -> dict[int, EpisodeStatus]:
    return {state.idx: state.state for state in dataset.ledger.episodes()}


def files(folder: Path) -> list[Path]:
    return sorted(folder.iterdir())


def test_a_group_is_stored_together_and_leaves_no_staged_file(tmp_path: Path) -> None:
    with open_dataset(tmp_path / "data") as dataset:
        group = staged(dataset, 0, 1, 2)
        assert [item.path.name.split(".", 1)[1] for item in group] == [f"0.{os.getpid()}.tmp"] * 3
        assert dataset.commit(group) == [item.attempt for item in group]
        assert states(dataset) == dict.fromkeys(range(3), EpisodeStatus.DONE)
        assert not files(dataset.stage) and len(files(dataset.episodes)) == 3
    assert read_info(tmp_path / "data").episode_count == 3
    assert verify(tmp_path / "data").problems == ()


def test_stage_is_cleared_once_nothing_needs_it(tmp_path: Path) -> None:
    """Nothing is cleared while a run writes, or while the next opening needs a file to complete a commit."""
    with open_dataset(tmp_path / "data") as dataset:
        (item,) = staged(dataset, 0)
        clear_stage(dataset.folder)
        assert files(dataset.stage) == [item.path]
        begun = {"stage": f"stage/{item.path.name}", "detail": to_compact_json(item.attempt)}
        dataset.ledger.record(dataset.ledger.state_of(item.attempt, EpisodeStatus.INTENT, **begun))
    clear_stage(dataset.folder)
    assert files(dataset.stage) == [item.path]
    with open_dataset(tmp_path / "data") as dataset:
        assert dataset.recovered.rolled_forward == 1
        staged(dataset, 1)
    clear_stage(dataset.folder)
    assert not files(dataset.stage) and len(files(dataset.episodes)) == 1


def test_nothing_is_cleared_behind_a_link(tmp_path: Path) -> None:
    with open_dataset(tmp_path / "data") as dataset:
        folder, stage = dataset.folder, dataset.stage
    (tmp_path / "private").mkdir()
    (tmp_path / "private/notes.txt").write_text("precious")
    stage.rmdir()
    stage.symlink_to(tmp_path / "private")
    clear_stage(folder)
    assert (tmp_path / "private/notes.txt").read_text() == "precious"


def test_only_what_was_made_under_the_last_lease_is_taken(tmp_path: Path) -> None:
    with open_dataset(tmp_path / "data") as dataset:
        first = dataset.lease(0, owner="renderer 1")
        (late,) = staged(dataset, 0, lease=first)
        second = dataset.lease(0, owner="renderer 2")
        assert (first, second, dataset.lease_of(0), dataset.lease_of(1)) == (1, 2, 2, 0)
        (good,) = staged(dataset, 0, lease=second)
        assert dataset.commit([late]) == [] and dataset.stale == 1
        assert not late.path.exists() and good.path.exists()
        assert states(dataset) == {0: EpisodeStatus.LEASED}
        assert dataset.commit([good]) == [good.attempt] and dataset.stale == 1
        assert dataset.lease_of(0) == 0
    assert verify(tmp_path / "data").problems == ()


def test_an_episode_is_never_stored_twice(tmp_path: Path) -> None:
    with open_dataset(tmp_path / "data") as dataset:
        (one,) = staged(dataset, 0)
        copy = replace(one, path=one.path.with_suffix(".copy"))
        copy.path.write_bytes(one.path.read_bytes())
        assert dataset.commit([one, copy]) == [one.attempt]
        (again,) = staged(dataset, 0)
        assert dataset.commit([again]) == []
        assert dataset.stale == 2 and dataset.info.episode_count == 1
        assert not files(dataset.stage) and len(files(dataset.episodes)) == 1
        with pytest.raises(ValueError, match="is stored already"):
            dataset.lease(0)
    assert verify(tmp_path / "data").problems == ()


def test_a_staged_file_that_is_gone_or_cut_is_refused(tmp_path: Path) -> None:
    with open_dataset(tmp_path / "data") as dataset:
        gone, cut, good = staged(dataset, 0, 1, 2)
        gone.path.unlink()
        os.truncate(cut.path, 1000)
        assert dataset.commit([gone, cut, good]) == [good.attempt]
        assert dataset.stale == 2
    assert verify(tmp_path / "data").problems == ()


def test_a_staged_name_of_a_folder_or_link_is_refused(tmp_path: Path) -> None:
    with open_dataset(tmp_path / "data") as dataset:
        folder, link = staged(dataset, 0, 1)
        dataset.stage.joinpath("link").symlink_to(link.path)
        above = dataset.stage / ".."  # a node reports it
        size = above.stat().st_size
        named = replace(folder, path=above, attempt=replace(folder.attempt, byte_count=size))
        assert dataset.commit([named, replace(link, path=dataset.stage / "link")]) == []


def test_a_file_of_the_same_content_under_the_final_name_will_do(tmp_path: Path) -> None:
    with open_dataset(tmp_path / "data") as dataset:
        (one,) = staged(dataset, 0)
        final = dataset.folder / one.attempt.path
        final.write_bytes(one.path.read_bytes())
        inode = final.stat().st_ino
        assert dataset.commit([one]) == [one.attempt]
        assert final.stat().st_ino == inode and dataset.orphans == ()
    assert verify(tmp_path / "data").problems == ()


def test_a_file_of_the_same_size_and_another_content_is_put_aside(tmp_path: Path) -> None:
    with open_dataset(tmp_path / "data") as dataset:
        (one,) = staged(dataset, 0)
        content = bytearray(one.path.read_bytes())
        content[len(content) // 2 :] = bytes(len(content) - len(content) // 2)
        (dataset.folder / one.attempt.path).write_bytes(content)
        assert dataset.commit([one]) == [one.attempt]
        assert [path.read_bytes() for path in dataset.orphans] == [content]
    assert verify(tmp_path / "data").problems == ()


def test_the_last_failed_attempt_rejects_an_episode_and_one_before_it_does_not(tmp_path: Path) -> None:
    with open_dataset(tmp_path / "data") as dataset:
        dataset.lease(0)
        dataset.record([failed(0, final=False)])
        assert states(dataset) == {0: EpisodeStatus.LEASED}
        dataset.record([failed(0, attempt=1), failed(1)])
        assert [(row.idx, row.state, row.detail) for row in dataset.ledger.episodes()] == [
            (0, EpisodeStatus.REJECTED, "no_ik"),
            (1, EpisodeStatus.REJECTED, "no_ik"),
        ]
        assert len(dataset.ledger.attempts()) == 3
        (late,) = staged(dataset, 1)
        assert dataset.commit([late]) == [] and dataset.stale == 1
    assert verify(tmp_path / "data").failed_count == 3 and not verify(tmp_path / "data").problems


def test_what_is_stored_is_neither_rejected_nor_quarantined_afterwards(tmp_path: Path) -> None:
    with open_dataset(tmp_path / "data") as dataset:
        dataset.commit(staged(dataset, 0))
        dataset.record([failed(0, attempt=1)])
        dataset.quarantine(0, evidence={"deaths": 3})
        assert states(dataset) == {0: EpisodeStatus.DONE}


def test_a_quarantined_episode_needs_no_more_work_and_its_evidence_is_told(tmp_path: Path) -> None:
    with open_dataset(tmp_path / "data") as dataset:
        lease = dataset.lease(0, (0, 1))
        dataset.quarantine(0, (0, 1), evidence={"deaths": 3, "workers": [1, 2]})
        assert dataset.ledger.finished(0, (0, 1, 2)) == (0, 1)
        assert dataset.commit(staged(dataset, 0, lease=lease)) == []
    assert verify(tmp_path / "data").quarantined == {
        f"episode 0, variant {variant}": '{"deaths": 3, "workers": [1, 2]}' for variant in (0, 1)
    }


def test_dataset_json_follows_at_once_then_every_few_seconds_and_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "data"
    with open_dataset(folder) as dataset:
        for index in range(3):
            dataset.commit(staged(dataset, index))
            assert dataset.info.episode_count == index + 1
        assert read_info(folder).episode_count == 1 and read_info(folder).features
        assert verify(folder).problems == ()  # a run is active and will commit it
        dataset.flush()
        assert read_info(folder).episode_count == 1
        monkeypatch.setattr("nimbus.datagen.store.dataset._INFO_PERIOD", 0.0)
        dataset.flush()
        assert read_info(folder).episode_count == 3
        dataset.commit(staged(dataset, 3))
    assert read_info(folder).episode_count == 4


def test_new_names_are_written_at_once(tmp_path: Path) -> None:
    """A node of a cluster reports an episode soon after its row, with the content of ``dataset.json`` at that time."""
    with open_dataset(tmp_path / "data") as dataset:
        dataset.commit(staged(dataset, 0))
        (item,) = staged(dataset, 1)
        dataset.commit([replace(item, learned=replace(dataset.info, instance_names=("new",)))])
        assert "new" in read_info(dataset.folder).instance_names


def test_leases_count_on_after_a_folder_is_opened_again(tmp_path: Path) -> None:
    with open_dataset(tmp_path / "data") as dataset:
        assert [dataset.lease(0), dataset.lease(0), dataset.lease(7, lease=40)] == [1, 2, 40]
    with open_dataset(tmp_path / "data") as dataset:
        assert states(dataset) == {0: EpisodeStatus.PENDING, 7: EpisodeStatus.PENDING}
        assert dataset.lease_of(0) == 0
        (late,) = staged(dataset, 0, lease=2)
        assert dataset.commit([late]) == []
        assert [dataset.lease(0), dataset.lease(7)] == [3, 41]
        assert dataset.commit(staged(dataset, 0, lease=3))


def test_a_run_without_leases_takes_up_what_was_leased_before(tmp_path: Path) -> None:
    with open_dataset(tmp_path / "data") as dataset:
        dataset.lease(0)
    write_dataset(tmp_path / "data", [small(0)])
    assert verify(tmp_path / "data").episode_count == 1


MOVES = st.lists(
    st.tuples(st.sampled_from(["lease", "commit", "stale", "reject", "quarantine", "reopen"]), st.integers(0, 2)),
    max_size=14,
)


@settings(max_examples=12)
@given(moves=MOVES)
def test_whatever_happens_in_whatever_order_an_episode_settles_once_and_all_is_well(
    tmp_path_factory: pytest.TempPathFactory, moves: list[tuple[str, int]]
) -> None:
    folder = tmp_path_factory.mktemp("data") / "data"
    dataset = open_dataset(folder)
    settled: dict[int, EpisodeStatus] = {}
    for move, index in moves:
        lease, before = dataset.lease_of(index), dataset.stale
        if move == "lease" and index not in settled:
            assert dataset.lease(index) > lease
        elif move == "commit":
            taken = dataset.commit(staged(dataset, index, lease=lease))
            assert bool(taken) == (index not in settled)
            settled.setdefault(index, EpisodeStatus.DONE)
        elif move == "stale" and lease:
            assert not dataset.commit(staged(dataset, index, lease=lease - 1)) and dataset.stale == before + 1
        elif move == "reject" and index not in settled:
            dataset.record([failed(index)])
            settled[index] = EpisodeStatus.REJECTED
        elif move == "quarantine":
            dataset.quarantine(index, evidence={})
            settled.setdefault(index, EpisodeStatus.QUARANTINED)
        elif move == "reopen":
            dataset.close()
            dataset = open_dataset(folder)
        assert settled.items() <= states(dataset).items()
        assert not files(dataset.stage)
        assert {path.stem for path in files(dataset.episodes)} == {
            state.episode_id for state in dataset.ledger.episodes(EpisodeStatus.DONE)
        }
    dataset.close()
    assert verify(folder).problems == ()
