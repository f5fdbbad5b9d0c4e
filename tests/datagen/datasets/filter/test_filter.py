"""Selected episodes become a separate dataset of the same kind."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from nimbus.datagen.datasets.convert.convert import convert
from nimbus.datagen.datasets.export.export import export
from nimbus.datagen.datasets.filter.expression import Condition
from nimbus.datagen.datasets.filter.lerobot import filter_lerobot
from nimbus.datagen.datasets.filter.native import filter_native
from nimbus.datagen.datasets.quality.checks import check
from nimbus.datagen.datasets.quality.view import open_view
from nimbus.datagen.errors import InputError, Severity
from nimbus.datagen.store.episode_file.read import EpisodeFile
from nimbus.datagen.store.info import read_info
from nimbus.datagen.store.ledger.ledger import Ledger
from nimbus.datagen.store.verify import dataset_hashes, verify
from nimbus.runner.cli import main
from tests.support.foreign import CAMERAS, numbers, write_v21
from tests.support.reading import decode
from tests.support.synthetic import failure, make_labels, make_observations, make_rendered, write_dataset

LENGTHS = (20, 13, 27, 16, 22)
KEPT = (0, 2, 4)


@pytest.fixture(scope="module")
def foreign(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("foreign")
    write_v21(folder / "v2.1", LENGTHS)
    convert(folder / "v2.1", folder / "v3.0")
    return {version: folder / version for version in ("v2.1", "v3.0")}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    items = [make_rendered(row, steps=steps) for row, steps in enumerate((20, 60, 33))]
    write_dataset(tmp_path / "data", [*items, make_rendered(3, outcome=failure())])
    return tmp_path / "data"


def test_another_choice_does_not_replace_the_first(foreign: dict[str, Path], tmp_path: Path):
    source, out = foreign["v2.1"], tmp_path / "out"
    filter_lerobot(source, out, Condition("index == 1"))
    assert not filter_lerobot(source, out, Condition("index == 1")).is_new
    with pytest.raises(InputError, match="contains another subset of episodes; choose another --out"):
        filter_lerobot(source, out, Condition("index == 2"))


@pytest.mark.parametrize("version", ["v2.1", "v3.0"])
def test_episodes_of_a_lerobot_dataset_are_numbered_anew(foreign: dict[str, Path], tmp_path: Path, version: str):
    words = ["filter", str(foreign[version]), "--where", "success and length >= 20", "--out", str(tmp_path / "out")]
    assert main(words) == 0
    info = json.loads((tmp_path / "out/meta/info.json").read_text())
    assert (info["codebase_version"], info["total_episodes"], info["total_tasks"]) == (version, 3, 1)
    assert info["splits"] == {"train": "0:2", "val": "2:3"}
    rows = [
        row
        for path in sorted((tmp_path / "out/data").rglob("*.parquet"))
        for row in pq.ParquetFile(path).read().to_pylist()
    ]
    wanted = np.concatenate([numbers(episode, LENGTHS[episode])["action"] for episode in KEPT])
    assert np.array_equal(np.array([row["action"] for row in rows], np.float32), wanted)
    assert [row["index"] for row in rows] == list(range(len(wanted)))
    assert {row["task_index"] for row in rows} == {0}
    for camera in CAMERAS:
        paths = sorted(path for path in (tmp_path / "out/videos").rglob("*.mp4") if camera in path.parts)
        found = np.concatenate([decode(path)[0] for path in paths])
        parts = [foreign["v2.1"] / f"videos/chunk-{row // 3:03d}/{camera}/episode_{row:06d}.mp4" for row in KEPT]
        assert np.array_equal(found, np.concatenate([decode(path)[0] for path in parts]))
    found = check(open_view(tmp_path / "out"))
    assert [finding for finding in found if finding.severity is Severity.FAIL] == []


def test_an_export_of_nimbus_is_filtered_by_its_own_columns(data: Path, tmp_path: Path):
    export(data, tmp_path / "v3")
    assert main(["filter", str(tmp_path / "v3"), "--where", "index_in_run > 0", "--out", str(tmp_path / "out")]) == 0
    assert json.loads((tmp_path / "out/meta/info.json").read_text())["total_episodes"] == 2
    assert main(["qa", str(tmp_path / "out")]) == 0


def test_a_dataset_of_nimbus_keeps_ids_contents_and_what_failed_is_gone(data: Path, tmp_path: Path):
    words = ["filter", str(data), "--where", "length > 30 and 'can' in kinds", "--out", str(tmp_path / "out")]
    assert main(words) == 0
    found = verify(tmp_path / "out")
    assert (found.problems, found.episode_count, found.failed_count) == ((), 1, 0)
    names = sorted(path.name for path in (tmp_path / "out/episodes").glob("*.hdf5"))
    for name in names:
        with EpisodeFile(data / "episodes" / name) as one, EpisodeFile(tmp_path / "out/episodes" / name) as other:
            assert one.step_count > 30 and np.array_equal(one.array("action"), other.array("action"))
    before = dataset_hashes(tmp_path / "out")
    assert main(words) == 0
    assert dataset_hashes(tmp_path / "out") == before


def test_a_filtered_dataset_is_of_another_origin(data: Path, tmp_path: Path):
    assert main(["filter", str(data), "--where", "length > 30", "--out", str(tmp_path / "out")]) == 0
    assert read_info(tmp_path / "out").inputs["filter"].startswith("length > 30 (")
    assert main(["filter", str(data), "--where", "length > 50", "--out", str(tmp_path / "out")]) == 2


def test_the_instruction_can_be_asked_for(data: Path, tmp_path: Path):
    words = ["filter", str(data), "--where", "'trash' in instruction", "--out", str(tmp_path / "out"), "--json"]
    assert main(words) == 0


@pytest.mark.parametrize(
    ("where", "line"),
    [
        ("length > 1000", "none of the 3 episodes meets 'length > 1000'"),
        ("lenght > 10", "did you mean 'length'"),
        ("length >", "is not a condition"),
    ],
)
def test_what_cannot_be_filtered_is_one_line(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], where: str, line: str
):
    assert main(["filter", str(data), "--where", where, "--out", str(tmp_path / "out")]) == 2
    told = capsys.readouterr().err
    assert line in told and told.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_an_episode_that_does_not_begin_with_a_whole_picture_is_not_cut_out(tmp_path: Path):
    folder = write_v21(tmp_path / "data", (20, 13, 27))
    convert(folder, tmp_path / "v3")
    path = tmp_path / "v3/meta/episodes/chunk-000/file-000.parquet"
    table = pq.read_table(path)
    name = f"videos/{CAMERAS[0]}/from_timestamp"
    moved = [value + 5 / 15 if row == 1 else value for row, value in enumerate(table.column(name).to_pylist())]
    pq.write_table(table.set_column(table.column_names.index(name), name, [moved]), path)
    with pytest.raises(InputError, match="cannot be cut without encoding"):
        convert(tmp_path / "v3", tmp_path / "out")


def test_a_missing_file_is_one_line(data: Path, tmp_path: Path):
    shutil.move(next((data / "episodes").glob("*.hdf5")), tmp_path / "gone.hdf5")
    assert main(["filter", str(data), "--where", "success", "--out", str(tmp_path / "out")]) == 2
    assert not (tmp_path / "out").exists()


def test_no_row_copies_a_file_from_elsewhere(data: Path, tmp_path: Path):
    """A second row of an episode does not meet the condition, and names a link to a private file."""
    (tmp_path / "private").write_text("mine")
    (data / "episodes/other.hdf5").symlink_to(tmp_path / "private")
    ledger = Ledger(data)
    row = ledger.stored()[0]
    other = {"path": "episodes/other.hdf5", "byte_count": 4, "step_count": 0}
    ledger.record(replace(row, attempt=row.attempt + 1, success=False, **other))
    ledger.close()
    assert main(["filter", str(data), "--where", "success", "--out", str(tmp_path / "out")]) == 2
    assert not (tmp_path / "out").exists()


def test_a_video_that_is_cut_short_is_not_passed_on(foreign: dict[str, Path], tmp_path: Path):
    folder = shutil.copytree(foreign["v2.1"], tmp_path / "data")
    path = next((folder / "videos").rglob("*_000002.mp4"))
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    words = ["filter", str(folder), "--where", "length > 1", "--out", str(tmp_path / "out")]
    assert main(words) == 2
    assert not (tmp_path / "out").exists()
    assert main([*words[:3], "length != 27", *words[4:]]) == 0


@pytest.fixture
def with_failure(tmp_path: Path) -> Path:
    """Return a dataset with episode 0 after a kept failed attempt, and episode 1."""
    shown = {"labels": make_labels(), "observations": make_observations(20)}
    items = [make_rendered(0, outcome=failure(), final=False, **shown), make_rendered(0, attempt=1), make_rendered(1)]
    write_dataset(tmp_path / "data", items, keep_failures=True)
    return tmp_path / "data"


def test_kept_failures_of_the_episodes_come_along(with_failure: Path, tmp_path: Path):
    assert main(["filter", str(with_failure), "--where", "index == 0", "--out", str(tmp_path / "out")]) == 0
    found = verify(tmp_path / "out")
    assert (found.problems, found.episode_count, found.kept_count) == ((), 1, 1)


def test_a_kept_failure_that_is_not_as_it_was_is_not_passed_on(
    with_failure: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    words = ["filter", str(with_failure), "--out", str(tmp_path / "out"), "--where"]
    path = next((with_failure / "failures").iterdir())
    path.write_bytes(path.read_bytes()[:-1])
    assert main([*words, "index == 0"]) == 2
    assert f"{path}: the file is missing, or its size differs from the ledger" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    assert main([*words, "index == 1"]) == 0


def test_what_has_lost_a_file_since_does_not_stand_there_already(data: Path, tmp_path: Path):
    made = filter_native(data, tmp_path / "out", Condition("success"))
    assert made.is_new and not filter_native(data, tmp_path / "out", Condition("success")).is_new
    next((tmp_path / "out/episodes").glob("*.hdf5")).unlink()
    with pytest.raises(InputError, match="is not empty"):
        filter_native(data, tmp_path / "out", Condition("success"))
