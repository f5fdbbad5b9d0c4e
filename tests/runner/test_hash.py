from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest
from synthetic import write_dataset

from nimbus.datagen.errors import InputError
from nimbus.datagen.store.verify import dataset_hashes
from nimbus.runner.hash import command


def test_each_line_names_the_level_that_it_compares(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_dataset(tmp_path / "data")
    assert command(argparse.Namespace(folder=tmp_path / "data", json=False)) == 0
    expected = dataset_hashes(tmp_path / "data")
    assert capsys.readouterr().out.splitlines() == [
        f"{expected['D0']}  D0: layouts and plans",
        f"{expected['D1']}  D1: layouts, plans and pixels",
    ]
    assert len(expected["D1"]) == 64


def test_json_maps_levels_to_hashes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_dataset(tmp_path / "data")
    command(argparse.Namespace(folder=tmp_path / "data", json=True))
    assert json.loads(capsys.readouterr().out) == dataset_hashes(tmp_path / "data")


def test_an_episode_that_cannot_be_read_is_bad_input(tmp_path: Path) -> None:
    write_dataset(tmp_path / "data")
    sorted((tmp_path / "data" / "episodes").iterdir())[0].unlink()
    with pytest.raises(InputError, match="no such file"):
        command(argparse.Namespace(folder=tmp_path / "data", json=False))
