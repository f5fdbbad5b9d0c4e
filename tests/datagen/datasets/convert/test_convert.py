"""Foreign datasets are converted to LeRobot v3.0 and back: rows and images are equal, and a conversion is either
complete or absent."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nimbus.datagen.datasets.convert.convert import convert
from nimbus.datagen.datasets.export.publication import CARD_MARK
from nimbus.datagen.datasets.export.shards import Options
from nimbus.datagen.datasets.quality.checks import check
from nimbus.datagen.datasets.quality.tables import wordings_of
from nimbus.datagen.datasets.quality.view import open_view
from nimbus.datagen.errors import InputError, Severity
from nimbus.runner.cli import main
from tests.support.foreign import CAMERAS, FPS, TEXTS, numbers, pictures, write_v21, write_video
from tests.support.reading import decode, tree
from tests.support.runs import RUNNER

LENGTHS = (20, 13, 27, 16)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_v21(tmp_path_factory.mktemp("source") / "data", LENGTHS)


@pytest.fixture(scope="module")
def out(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("out") / "v3"
    convert(source, folder, options=Options(episode_size=3))
    return folder


def episodes_of(folder: Path) -> list[dict[str, Any]]:
    return [
        row for path in sorted((folder / "meta/episodes").rglob("*.parquet")) for row in pq.read_table(path).to_pylist()
    ]


def video_of(folder: Path, row: dict[str, Any], camera: str) -> np.ndarray:
    """Return the frames of an episode as a v3.0 reader does, at ``from_timestamp + k / fps``."""
    info, key = json.loads((folder / "meta/info.json").read_text()), f"videos/{camera}"
    spot = {name: row[f"{key}/{name}"] for name in ("chunk_index", "file_index")}
    begin, end = row[f"{key}/from_timestamp"], row[f"{key}/to_timestamp"]
    images, times = decode(folder / info["video_path"].format(video_key=camera, **spot), begin, end)
    assert np.allclose(np.array(times) - begin, np.arange(row["length"]) / FPS, atol=1e-6)
    return images


def test_rows_and_pictures_are_those_of_the_source(source: Path, out: Path):
    rows = episodes_of(out)
    assert [row["length"] for row in rows] == list(LENGTHS)
    assert [row["success"] for row in rows] == [True, False, True, True]
    start = 0
    for episode, row in enumerate(rows):
        spot = {name: row[f"data/{name}"] for name in ("chunk_index", "file_index")}
        table = pq.ParquetFile(out / "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet".format(**spot)).read()
        mine = [line for line in table.to_pylist() if line["episode_index"] == episode]
        for name, values in numbers(episode, row["length"]).items():
            assert np.array_equal(np.array([line[name] for line in mine], np.float32), values)
        assert [line["index"] for line in mine] == list(range(start, start + row["length"]))
        assert {line["task_index"] for line in mine} == {episode % 2}
        for camera in CAMERAS:
            path = source / f"videos/chunk-{episode // 3:03d}/{camera}/episode_{episode:06d}.mp4"
            assert np.array_equal(video_of(out, row, camera), decode(path)[0])
        start += row["length"]


def test_the_tables_are_complete_and_qa_finds_nothing(out: Path):
    info = json.loads((out / "meta/info.json").read_text())
    assert (info["codebase_version"], info["total_episodes"], info["total_frames"]) == ("v3.0", 4, sum(LENGTHS))
    assert info["splits"] == {"train": "0:3", "val": "3:4"}
    assert "total_videos" not in info
    assert wordings_of(out / "meta/tasks.parquet") == dict(enumerate(TEXTS))
    stats = json.loads((out / "meta/stats.json").read_text())
    every = np.concatenate([numbers(episode, length)["action"] for episode, length in enumerate(LENGTHS)])
    assert np.allclose(stats["action"]["mean"], every.mean(0)) and np.allclose(stats["action"]["std"], every.std(0))
    assert np.allclose(stats["action"]["q50"], np.median(every, axis=0))
    images = np.concatenate([pictures(episode, 1, length) for episode, length in enumerate(LENGTHS)]) / 255
    assert np.allclose(np.ravel(stats[CAMERAS[1]]["std"]), images.reshape(-1, 3).std(0))
    assert np.shape(episodes_of(out)[0][f"stats/{CAMERAS[0]}/mean"]) == (3, 1, 1)
    assert [finding for finding in check(open_view(out)) if finding.severity is Severity.FAIL] == []


def test_extra_files_come_along(out: Path):
    assert (out / "README.md").read_text() == "# mine\n"
    assert (out / "meta/modality.json").read_text() == '{"state": {}}'
    assert not (out / "meta/episodes.jsonl").exists()


def test_a_card_that_tells_of_the_source_stays_there(source: Path, tmp_path: Path):
    folder = shutil.copytree(source, tmp_path / "data")
    (folder / "README.md").write_text(f"{CARD_MARK}\n# data\n")
    (folder / "card.png").write_bytes(b"picture")
    convert(folder, tmp_path / "out")
    assert not list((tmp_path / "out").glob("README.md")) + list((tmp_path / "out").glob("card.png"))


def test_back_again_the_rows_and_pictures_are_the_same(source: Path, out: Path, tmp_path: Path):
    convert(out, tmp_path / "back", to="lerobot-v2.1", options=Options(episode_size=3))
    for episode, length in enumerate(LENGTHS):
        name = f"data/chunk-{episode // 3:03d}/episode_{episode:06d}.parquet"
        assert pq.read_table(tmp_path / "back" / name).equals(pq.read_table(source / name))
        for camera in CAMERAS:
            name = f"videos/chunk-{episode // 3:03d}/{camera}/episode_{episode:06d}.mp4"
            images, times = decode(tmp_path / "back" / name)
            assert np.array_equal(images, decode(source / name)[0])
            assert np.allclose(times, np.arange(length) / FPS, atol=1e-6)
    found = check(open_view(tmp_path / "back"))
    assert [finding for finding in found if finding.severity is Severity.FAIL] == []


def test_without_out_the_new_dataset_lies_beside_the_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    write_v21(tmp_path / "mine", (5, 4))
    monkeypatch.chdir(tmp_path / "mine")
    assert main(["convert", ".", "--to", "lerobot", "--episode-size", "1000", "--shard-size", "1GB"]) == 0
    assert f"dataset: {tmp_path / 'mine_lerobot'}" in capsys.readouterr().out
    assert [row["length"] for row in episodes_of(tmp_path / "mine_lerobot")] == [5, 4]


def test_another_encoder_begins_a_new_file(tmp_path: Path):
    folder = write_v21(tmp_path / "data", (9, 8, 7))
    path = folder / f"videos/chunk-000/{CAMERAS[0]}/episode_000001.mp4"
    write_video(path, pictures(1, 0, 8), profile="baseline", bf="0")
    convert(folder, tmp_path / "out")
    rows = episodes_of(tmp_path / "out")
    assert [row[f"videos/{CAMERAS[0]}/file_index"] for row in rows] == [0, 1, 2]
    assert [row[f"videos/{CAMERAS[1]}/file_index"] for row in rows] == [0, 0, 0]
    for episode, row in enumerate(rows):
        wanted = decode(folder / f"videos/chunk-000/{CAMERAS[0]}/episode_{episode:06d}.mp4")[0]
        assert np.array_equal(video_of(tmp_path / "out", row, CAMERAS[0]), wanted)


def test_again_makes_nothing_and_any_number_of_processes_the_same_bytes(source: Path, tmp_path: Path):
    assert convert(source, tmp_path / "a", options=Options(episode_size=2), workers=1).is_new
    before = tree(tmp_path / "a")
    assert not convert(source, tmp_path / "a", options=Options(episode_size=2)).is_new
    convert(source, tmp_path / "b", options=Options(episode_size=2), workers=2)
    assert before == tree(tmp_path / "a") == tree(tmp_path / "b")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]


def cut_in_half(name: str) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_bytes(
        (folder / name).read_bytes()[: (folder / name).stat().st_size // 2]
    )


def edit_info(**values: Any) -> Callable[[Path], object]:
    def plant(folder: Path) -> None:
        path = folder / "meta/info.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | values))

    return plant


def edit_line(name: str, number: int, **values: Any) -> Callable[[Path], object]:
    def plant(folder: Path) -> None:
        path = folder / name
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        lines[number] |= values
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))

    return plant


def link_out(folder: Path) -> None:
    path = folder / "data/chunk-000/episode_000001.parquet"
    shutil.move(path, folder.parent / "elsewhere.parquet")
    path.symlink_to(folder.parent / "elsewhere.parquet")


def as_pipe(name: str) -> Callable[[Path], object]:
    def plant(folder: Path) -> None:
        (folder / name).unlink()
        os.mkfifo(folder / name)

    return plant


def drop_column(folder: Path) -> None:
    path = folder / "data/chunk-000/episode_000002.parquet"
    pq.write_table(pq.read_table(path).drop_columns(["timestamp"]), path)


def wrong_task(folder: Path) -> None:
    path = folder / "data/chunk-000/episode_000001.parquet"
    table = pq.read_table(path)
    pq.write_table(table.set_column(6, "task_index", pa.array(np.full(len(table), 7))), path)


VIDEO = f"videos/chunk-000/{CAMERAS[0]}/episode_000001.mp4"
BAD: list[tuple[str, Callable[[Path], object], str]] = [
    ("a cut table", cut_in_half("data/chunk-000/episode_000001.parquet"), "episode_000001.parquet: cannot be read"),
    ("a cut video", cut_in_half(VIDEO), "episode_000001.mp4, episode 1: cannot be read"),
    (
        "a short video",
        lambda folder: write_video(folder / VIDEO, pictures(1, 0, 11)),
        "there are 11 images, but 13 rows",
    ),
    ("a missing video", lambda folder: (folder / VIDEO).unlink(), "episode_000001.mp4 is missing"),
    ("an old version", edit_info(codebase_version="v2.0"), "codebase_version 'v2.0'"),
    ("half a rate", edit_info(fps=12.5), "fps is 12.5"),
    ("features of nothing", edit_info(features=[1]), "features is missing, or not of type dict"),
    ("a path to elsewhere", edit_info(data_path="../{episode_index}.parquet"), "leads out of the dataset"),
    ("a path of tricks", edit_info(data_path="{episode_index.__class__}"), "is missing"),
    ("no tasks", lambda folder: (folder / "meta/tasks.jsonl").unlink(), "tasks.jsonl: cannot be read"),
    (
        "a task that is not there",
        edit_line("meta/episodes.jsonl", 0, tasks=["fly"]),
        "task 'fly' of an episode is missing",
    ),
    (
        "a hole",
        edit_line("meta/episodes.jsonl", 2, episode_index=7),
        "row 2 is episode 3: a number is missing",
    ),
    ("one twice", edit_line("meta/episodes.jsonl", 2, episode_index=1), "row 2 is episode 1: a number occurs twice"),
    ("a length of letters", edit_line("meta/episodes.jsonl", 2, length="9"), "line 3 has no length"),
    ("another length", edit_line("meta/episodes.jsonl", 0, length=19), "20 rows, expected 19"),
    ("another count", edit_info(total_episodes=9), "total_episodes is 9, but there are 4"),
    ("a link to elsewhere", link_out, "leads out of the dataset"),
    ("no times", drop_column, "column timestamp is missing"),
    ("rows of another task", wrong_task, "a row has task 7, which no remaining episode has"),
    ("splits of nothing", edit_info(splits=5), "splits is not an object"),
    ("half a letter", edit_info(robot_type="\ud800"), "info.json: cannot be read"),
    ("a pipe", as_pipe("meta/episodes.jsonl"), "is not a regular file"),
    ("a pipe for all", as_pipe("meta/info.json"), "is not a regular file"),
    ("no json", lambda folder: (folder / "meta/info.json").write_text("{"), "info.json: cannot be read"),
]


@pytest.mark.parametrize(("plant", "line"), [row[1:] for row in BAD], ids=[row[0] for row in BAD])
def test_what_cannot_be_converted_is_one_line_and_publishes_nothing(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], plant: Callable[[Path], object], line: str
):
    folder = shutil.copytree(source, tmp_path / "data")
    plant(folder)
    assert main(["convert", str(folder), "--out", str(tmp_path / "out")]) == 2
    told = capsys.readouterr().err
    assert line in told and told.count("\n") == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("to", ["lerobot", "lerobot-v2.1"])
def test_a_camera_whose_name_leads_elsewhere_is_refused(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], to: str
):
    """The video exists under a harmless name, but would be copied to a folder outside of the output."""
    folder = shutil.copytree(source, tmp_path / "data")
    info = json.loads((folder / "meta/info.json").read_text())
    features = {name: told for name, told in info["features"].items() if name not in CAMERAS}
    features["../../../../mine"] = info["features"][CAMERAS[0]]
    edit_info(features=features, video_path=info["video_path"].replace("{video_key}", CAMERAS[0]))(folder)
    assert main(["convert", str(folder), "--to", to, "--out", str(tmp_path / "some/out")]) == 2
    line = "meta/info.json: features: the video feature '../../../../mine' cannot be the name of a folder; rename it in"
    assert line in capsys.readouterr().err
    assert not list(tmp_path.rglob("mine"))


def test_a_column_with_cells_that_are_empty_in_some_row_groups_only_is_one_line(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    folder = shutil.copytree(source, tmp_path / "data")
    for episode, length in enumerate(LENGTHS):
        path = folder / f"data/chunk-{episode // 3:03d}/episode_{episode:06d}.parquet"
        cells = pa.array([None if episode == 2 and row == 5 else 0.5 for row in range(length)], pa.float32())
        pq.write_table(pq.read_table(path).append_column("reward", cells), path)
    convert(folder, tmp_path / "one_group")
    assert "reward" not in json.loads((tmp_path / "one_group/meta/stats.json").read_text())
    monkeypatch.setattr("nimbus.datagen.datasets.convert.jobs.GROUP_ROWS", 1)
    with pytest.raises(InputError, match="column reward has empty cells, or cells of another size, in episodes 2 to 2"):
        convert(folder, tmp_path / "many_groups", workers=1)
    assert not (tmp_path / "many_groups").exists()


def test_a_column_with_cells_that_are_empty_in_some_files_only_is_one_line(source: Path, tmp_path: Path):
    folder = shutil.copytree(source, tmp_path / "data")
    for episode, length in enumerate(LENGTHS):
        path = folder / f"data/chunk-{episode // 3:03d}/episode_{episode:06d}.parquet"
        cells = pa.array([None if episode == 2 and row == 5 else 0.5 for row in range(length)], pa.float32())
        pq.write_table(pq.read_table(path).append_column("reward", cells), path)
    with pytest.raises(InputError, match="column reward has empty cells, or cells of another size, in episodes 2 to 2"):
        convert(folder, tmp_path / "out", options=Options(episode_size=1))
    assert not (tmp_path / "out").exists()


def test_an_output_in_the_source_is_refused(source: Path, tmp_path: Path):
    with pytest.raises(InputError, match="must not contain each other"):
        convert(source, source / "v3")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/thesis.txt").write_text("")
    with pytest.raises(InputError, match="not an export"):
        convert(source, tmp_path / "mine")


def test_tables_and_videos_that_no_episode_names_are_left_out_and_told(source: Path, tmp_path: Path):
    folder = shutil.copytree(source, tmp_path / "data")
    shutil.copy(folder / "data/chunk-000/episode_000000.parquet", folder / "data/chunk-000/episode_000099.parquet")
    made = convert(folder, tmp_path / "out")
    assert made.left_out == ("data/chunk-000/episode_000099.parquet",)
    assert made.extra == ("README.md", "meta/modality.json")


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("unshare"), reason="mounting a small disk needs root")
def test_a_full_disk_is_one_line_and_publishes_nothing(source: Path, tmp_path: Path):
    small = tmp_path / "small"
    small.mkdir()
    line = (
        f"mount -t tmpfs -o size=24k none {small} && {sys.executable} {RUNNER} convert {source} --out {small / 'out'}"
    )
    done = subprocess.run(["unshare", "-m", "sh", "-c", f"{line}; echo $?; ls {small}"], capture_output=True, text=True)
    if "mount" in done.stderr and "cannot write" not in done.stderr:
        pytest.skip("this machine lets nobody mount")
    assert "No space left on device" in done.stderr and done.stderr.count("\n") == 1, done.stderr
    assert done.stdout.split() == ["1"]
