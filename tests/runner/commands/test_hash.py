from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import pytest

from nimbus.datagen.errors import InputError
from nimbus.datagen.store import dataset, verify
from nimbus.datagen.store.episode_file import schema
from nimbus.datagen.store.episode_file.schema import FIELD_SCHEMA
from nimbus.datagen.store.info import read_info
from nimbus.datagen.store.verify import dataset_hashes
from nimbus.runner.cli import main
from nimbus.runner.commands.hash import command
from tests.support.described import describe
from tests.support.synthetic import write_dataset


def test_each_line_names_the_level_that_it_compares(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_dataset(tmp_path / "data")
    assert command(tmp_path / "data") == 0
    expected = dataset_hashes(tmp_path / "data")
    assert capsys.readouterr().out.splitlines() == [
        f"{expected['D0']}  D0: layouts and plans",
        f"{expected['D1']}  D1: layouts, plans and pixels",
    ]
    assert len(expected["D1"]) == 64


def test_json_maps_levels_to_hashes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_dataset(tmp_path / "data")
    command(tmp_path / "data", as_json=True)
    assert json.loads(capsys.readouterr().out) == dataset_hashes(tmp_path / "data")


def test_fields_added_later_leave_earlier_schema_comparable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test pretends that ``action`` was added by the next field schema."""
    later = FIELD_SCHEMA + 1
    monkeypatch.setitem(schema._BY_PATH, "action", replace(schema._BY_PATH["action"], since=later))
    for module in (dataset, verify):
        monkeypatch.setattr(module, "FIELD_SCHEMA", later)
    one, other = tmp_path / "one", tmp_path / "other"
    write_dataset(one)
    shutil.copytree(one, other)
    with h5py.File(min(other.glob("episodes/*")), "r+") as file:
        action: Any = file["action"]
        action[...] += 1.0
    assert dataset_hashes(one, fields=1) == dataset_hashes(other, fields=1)
    assert dataset_hashes(one)["D0"] != dataset_hashes(other)["D0"]
    assert dataset_hashes(one, fields=later) == dataset_hashes(one)


def test_unknown_field_schema_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_dataset(tmp_path / "data")
    unknown, known = FIELD_SCHEMA + 1, FIELD_SCHEMA
    assert main(["hash", str(tmp_path / "data"), f"--fields={unknown}"]) == 2
    line = f"--fields {unknown}: the dataset has no field schema {unknown}; write 1 to {known}\n"
    assert capsys.readouterr().err == line


def test_newer_field_schema_must_be_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_dataset(tmp_path / "data")
    before = dataset_hashes(tmp_path / "data")
    describe(tmp_path / "data", field_schema=FIELD_SCHEMA + 4)
    assert main(["hash", str(tmp_path / "data")]) == 2
    line = f"its field schema is {FIELD_SCHEMA + 4}; this version of Nimbus reads 1 to {FIELD_SCHEMA}"
    assert f"{line}; write --fields {FIELD_SCHEMA}" in capsys.readouterr().err
    assert dataset_hashes(tmp_path / "data", fields=FIELD_SCHEMA) == before


def test_dataset_without_field_schema_has_the_first(tmp_path: Path) -> None:
    write_dataset(tmp_path / "data")
    before = dataset_hashes(tmp_path / "data", fields=1)
    described = json.loads((tmp_path / "data" / "dataset.json").read_text())
    del described["field_schema"]
    (tmp_path / "data" / "dataset.json").write_text(json.dumps(described))
    assert read_info(tmp_path / "data").field_schema == 1
    assert dataset_hashes(tmp_path / "data") == before


def test_an_episode_that_cannot_be_read_is_bad_input(tmp_path: Path) -> None:
    write_dataset(tmp_path / "data")
    sorted((tmp_path / "data" / "episodes").iterdir())[0].unlink()
    with pytest.raises(InputError, match="no such file"):
        command(tmp_path / "data")
