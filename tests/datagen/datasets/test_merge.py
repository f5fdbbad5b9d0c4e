"""Merged parts of a dataset equal the dataset that one machine makes."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from nimbus.datagen.datasets.merge import merge_parts
from nimbus.datagen.errors import InputError
from nimbus.datagen.store.info import INFO_NAME
from nimbus.datagen.store.ledger.ledger import Ledger
from nimbus.datagen.store.verify import dataset_hashes, verify
from nimbus.runner.cli import main
from tests.support import ROOT
from tests.support.synthetic import failure, make_rendered, write_dataset

CUBE = str(ROOT / "docs" / "examples" / "cube_to_goal.yaml")


def write_part(folder: Path, *indices: int) -> Path:
    write_dataset(folder, [make_rendered(index, steps=20 + index) for index in indices])
    return folder


def test_merged_parts_equal_the_whole(tmp_path: Path):
    whole = write_part(tmp_path / "whole", 0, 1, 2, 3)
    parts = [write_part(tmp_path / "one", 0, 2), write_part(tmp_path / "two", 1, 3)]
    made = merge_parts(parts, tmp_path / "out")
    assert (made.episode_count, made.part_count, made.doubled, made.is_new) == (4, 2, 0, True)
    assert not merge_parts(parts, tmp_path / "out").is_new
    assert dataset_hashes(tmp_path / "out") == dataset_hashes(whole)
    assert not verify(tmp_path / "out").problems
    with closing(Ledger(tmp_path / "out", read_only=True)) as ledger:
        assert [state.idx for state in ledger.episodes()] == [0, 1, 2, 3]


def test_doubled_episodes_are_kept_once(tmp_path: Path):
    parts = [write_part(tmp_path / "one", 0, 1), write_part(tmp_path / "two", 1, 2)]
    made = merge_parts(parts, tmp_path / "out")
    assert (made.episode_count, made.doubled) == (3, 1)
    assert not verify(tmp_path / "out").problems


def test_stored_episode_comes_before_a_failed_one(tmp_path: Path):
    write_dataset(tmp_path / "one", [make_rendered(0), make_rendered(1, outcome=failure())])
    parts = [tmp_path / "one", write_part(tmp_path / "two", 1)]
    assert merge_parts(parts, tmp_path / "out").episode_count == 2


def test_parts_that_differ_are_refused(tmp_path: Path):
    one = write_part(tmp_path / "one", 0, 1)
    write_dataset(tmp_path / "two", [make_rendered(1, steps=40)])
    with pytest.raises(InputError, match=r"the content differs from .*; run 'nimbus verify' on both parts"):
        merge_parts([one, tmp_path / "two"], tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            '"task": "sort_trash"',
            '"task": "pour"',
            "the part has task 'pour' and seed 0, the first part has task 'sort_trash'",
        ),
        ('"inputs": {}', '"inputs": {"mujoco": "9"}', "made with another mujoco"),
    ],
)
def test_parts_of_other_origin_are_refused(tmp_path: Path, old: str, new: str, message: str):
    one, two = write_part(tmp_path / "one", 0), write_part(tmp_path / "two", 1)
    text = (two / INFO_NAME).read_text()
    assert old in text
    (two / INFO_NAME).write_text(text.replace(old, new))
    with pytest.raises(InputError, match=message):
        merge_parts([one, two], tmp_path / "out")


def test_missing_files_are_refused(tmp_path: Path):
    one, two = write_part(tmp_path / "one", 0), write_part(tmp_path / "two", 1)
    next((two / "episodes").glob("*.hdf5")).unlink()
    with pytest.raises(InputError, match="is missing, or its size differs"):
        merge_parts([one, two], tmp_path / "out")


@pytest.mark.slow
def test_run_in_parts_makes_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    words = ["run", "--task", CUBE, "--episodes", "2", "--images", "none", "--serial", "--out"]
    parts = [str(tmp_path / "one"), str(tmp_path / "two")]
    for number, part in enumerate(parts, 1):
        assert main([*words, part, "--part", f"{number}/2"]) == 0
    assert main([*words, parts[0], "--part", "2/2"]) == 2
    assert "holds episode 0, which is not in part 2 of 2; give each part its own --out" in capsys.readouterr().err
    assert main(["merge", *parts, "--out", str(tmp_path / "out")]) == 0
    assert main([*words, str(tmp_path / "whole")]) == main([*words, str(tmp_path / "out")]) == 0
    assert dataset_hashes(tmp_path / "out") == dataset_hashes(tmp_path / "whole")
