"""Conventions of a policy's training data, compared with the task before an evaluation; each difference is one line."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from nimbus.datagen.datasets.export.export import export
from nimbus.datagen.datasets.export.training_source import TrainingSource, read_training_source
from nimbus.datagen.errors import InputError
from nimbus.datagen.policies.signal_view import SignalView
from nimbus.datagen.tasks.task import load_task
from nimbus.runner.cli import main
from tests.support.runs import TINY
from tests.support.synthetic import make_rendered, write_dataset


def source(tmp_path: Path) -> TrainingSource:
    write_dataset(tmp_path / "data", [make_rendered(0, steps=12)])
    return read_training_source(tmp_path / "data", where="--trained-on")


def test_dataset_and_export_state_the_same(tmp_path: Path):
    stored = source(tmp_path)
    export(tmp_path / "data", tmp_path / "out")
    exported = read_training_source(tmp_path / "out", where="--trained-on")
    assert replace(exported, folder=stored.folder) == stored
    assert stored.view == SignalView() and stored.rate and stored.cameras


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"robot": "ur5"}, "has the robot ur5, the task has panda"),
        ({"rate": 7.0}, "has a rate of 7 Hz, the task"),
        ({"cameras": {"ego": (8, 8)}}, "has a camera 'ego', the task"),
        ({"cameras": {"front": (8, 9)}}, "has 'front' with 8 x 9 px, the task"),
    ],
)
def test_other_conventions_are_one_line(changes: dict[str, object], said: str, tmp_path: Path):
    task = load_task(TINY)
    same = {"rate": task.rate, "cameras": {name: camera.size for name, camera in task.cameras.items()}}
    found = replace(source(tmp_path), **same)  # pyright: ignore[reportArgumentType]
    found.compare(task, where="--trained-on")
    with pytest.raises(InputError, match=said):
        replace(found, **changes).compare(task, where="--trained-on")  # pyright: ignore[reportArgumentType]


def test_evaluation_ends_before_the_first_episode(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    words = ["evaluate", "so101_block", "--layouts", "1", "--out", str(tmp_path / "out")]
    (tmp_path / "mine.py").write_text("from types import SimpleNamespace as S\n\ndef make(): return S(act=len)\n")
    words += ["--policy", f"{tmp_path}/mine.py:make", "--trained-on"]
    assert main([*words, str(tmp_path)]) == 2
    source(tmp_path)
    assert main([*words, str(tmp_path / "data")]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert (
        len(lines) == 2
        and "is neither a Nimbus dataset nor an export" in lines[0]
        and "has the robot panda, the task has so101" in lines[1]
    )
    assert not (tmp_path / "out").exists()
