"""Planted defects are found by the right check, and valid datasets have no findings."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import av
import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nimbus.datagen.datasets.export.export import export
from nimbus.datagen.datasets.quality import checks, pictures
from nimbus.datagen.datasets.quality.checks import check
from nimbus.datagen.datasets.quality.lerobot import check_sums
from nimbus.datagen.datasets.quality.thresholds import Thresholds
from nimbus.datagen.datasets.quality.view import open_view
from nimbus.datagen.errors import Diagnostic, InputError, Severity
from nimbus.runner.cli import main
from tests.support.synthetic import make_rendered, write_dataset

STEPS = (40, 33, 47)
FIRST_DATA = {"lerobot": "data/chunk-000/file-000.parquet", "lerobot-v2.1": "data/chunk-000/episode_000000.parquet"}


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the same episodes in every format that can be checked."""
    folder = tmp_path_factory.mktemp("sound")
    write_dataset(folder / "nimbus", [make_rendered(row, steps=steps) for row, steps in enumerate(STEPS)])
    for to in FIRST_DATA:
        export(folder / "nimbus", folder / to, to=to)
    return folder


def faults(folder: Path) -> list[Diagnostic]:
    return [finding for finding in check(open_view(folder)) if finding.severity is Severity.FAIL]


@pytest.mark.parametrize("kind", ["nimbus", *FIRST_DATA])
def test_a_sound_dataset_has_no_fault(sound: Path, kind: str):
    assert check(open_view(sound / kind)) == []


def edit_rows(name: str, row: int, value: Any) -> Callable[[Path, str], None]:
    """Set one entry of the first data file."""

    def plant(folder: Path, kind: str) -> None:
        path = folder / FIRST_DATA[kind]
        table = pq.read_table(path)
        rows = table.to_pylist()
        rows[row][name] = value(rows[row][name]) if callable(value) else value
        pq.write_table(pa.Table.from_pylist(rows, schema=table.schema), path)

    return plant


def edit_json(name: str, value: Any) -> Callable[[Path, str], None]:
    def plant(folder: Path, kind: str) -> None:
        path = folder / "meta/info.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | {name: value}))

    return plant


def cut(pattern: str) -> Callable[[Path, str], None]:
    """Truncate a file to half of its size."""

    def plant(folder: Path, kind: str) -> None:
        path = sorted(folder.glob(pattern))[0]
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])

    return plant


def remove(pattern: str) -> Callable[[Path, str], None]:
    return lambda folder, kind: sorted(folder.glob(pattern))[0].unlink()


def edit_video(change: Callable[[list[Any]], list[Any]]) -> Callable[[Path, str], None]:
    """Encode the first video again with other images."""

    def plant(folder: Path, kind: str) -> None:
        path = sorted(folder.glob("videos/**/*.mp4"))[0]
        with av.open(str(path)) as container:
            pictures = [frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)]
        with av.open(str(path), "w") as container:
            stream: Any = container.add_stream("libx264", rate=15)
            stream.height, stream.width, stream.pix_fmt = *pictures[0].shape[:2], "yuv420p"
            stream.options = {"bf": "0"}
            for picture in change(pictures):
                container.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
            container.mux(stream.encode())

    return plant


def blacken(pictures: list[Any]) -> list[Any]:
    return [np.zeros_like(picture) if row == 7 else picture for row, picture in enumerate(pictures)]


def freeze(pictures: list[Any]) -> list[Any]:
    return [pictures[5] if 5 <= row < 25 else picture for row, picture in enumerate(pictures)]


def swap_episodes(folder: Path, kind: str) -> None:
    if kind == "lerobot":
        path = folder / "meta/episodes/chunk-000/file-000.parquet"
        table = pq.read_table(path)
        pq.write_table(table.take([1, 0, 2]), path)
    else:
        path = folder / "meta/episodes.jsonl"
        lines = path.read_text().splitlines()
        path.write_text("\n".join([lines[1], lines[0], lines[2]]) + "\n")


def drop_pandas(folder: Path, kind: str) -> None:
    path = folder / "meta/tasks.parquet"
    pq.write_table(pq.read_table(path).replace_schema_metadata(None), path)


def edit_stats(folder: Path, kind: str) -> None:
    path = folder / "meta/stats.json"
    stats = json.loads(path.read_text())
    stats["action"]["mean"][2] += 0.5
    path.write_text(json.dumps(stats))


def bump(values: list[float]) -> list[float]:
    return [values[0] + 2.0, *values[1:]]


BOTH: list[tuple[str, Callable[[Path, str], None]]] = [
    ("finite", edit_rows("action", 3, lambda values: [float("nan"), *values[1:]])),
    ("jumps", edit_rows("observation.state", 9, bump)),
    ("timestamps", edit_rows("timestamp", 11, 0.9)),
    ("row_index", edit_rows("frame_index", 4, 17)),
    ("row_index", edit_rows("index", 4, 17)),
    ("tasks", edit_rows("task_index", 2, 99)),
    ("counts", edit_json("total_frames", 7)),
    ("counts", edit_json("total_episodes", 4)),
    ("files", cut("data/**/*.parquet")),
    ("files", cut("videos/**/*.mp4")),
    ("files", remove("videos/**/*.mp4")),
    ("black", edit_video(blacken)),
    ("frozen", edit_video(freeze)),
    ("video_frames", edit_video(lambda pictures: pictures[:-2])),
    ("episode_index", swap_episodes),
]


def drop_offsets(folder: Path, kind: str) -> None:
    path = folder / "meta/episodes/chunk-000/file-000.parquet"
    pq.write_table(pq.read_table(path).drop_columns(["dataset_from_index"]), path)


def drop_places(folder: Path, kind: str) -> None:
    path = folder / "meta/episodes/chunk-000/file-000.parquet"
    pq.write_table(pq.read_table(path).drop_columns(["data/file_index"]), path)


PLANTED = [(kind, name, plant) for kind in FIRST_DATA for name, plant in BOTH]
PLANTED += [("lerobot", "tasks", drop_pandas), ("lerobot", "stats", edit_stats)]
PLANTED += [("lerobot", "files", drop_offsets), ("lerobot", "files", drop_places)]


@pytest.mark.parametrize(("kind", "name", "plant"), PLANTED, ids=lambda value: value if isinstance(value, str) else "")
def test_a_planted_defect_is_found_by_the_right_check(
    sound: Path, tmp_path: Path, kind: str, name: str, plant: Callable[[Path, str], None]
):
    folder = shutil.copytree(sound / kind, tmp_path / "data")
    (folder / "nimbus.json").unlink()  # as if another program had written it
    plant(folder, kind)
    assert name in {finding.check for finding in faults(folder)}


@pytest.mark.parametrize("kind", sorted(FIRST_DATA))
def test_a_flipped_bit_of_an_export_is_found(sound: Path, tmp_path: Path, kind: str):
    folder = shutil.copytree(sound / kind, tmp_path / "data")
    for victim in sorted(path for path in folder.rglob("*.*") if path.is_file() and path.name != "nimbus.json"):
        whole = victim.read_bytes()
        victim.write_bytes(whole[:40] + bytes([whole[40] ^ 1]) + whole[41:])
        found = [finding.where for finding in check_sums(folder)]
        assert found == [victim.relative_to(folder).as_posix()]
        victim.write_bytes(whole)


@pytest.mark.parametrize("name", ["../private", "/etc/hostname", "./data", "a//b"])
def test_a_checksum_of_a_file_outside_of_the_export_is_refused(sound: Path, tmp_path: Path, name: str):
    folder = shutil.copytree(sound / "lerobot", tmp_path / "data")
    (tmp_path / "private").write_text("secret")
    manifest = json.loads((folder / "nimbus.json").read_text())
    manifest["files"] = {name: [6, hashlib.sha256(b"secret").hexdigest()]}
    (folder / "nimbus.json").write_text(json.dumps(manifest))
    assert [finding.what for finding in check_sums(folder)] == [
        f"nimbus.json: '{name}' is not the name of a file in this folder"
    ]


def test_a_checksum_of_a_link_out_of_the_export_is_refused(sound: Path, tmp_path: Path):
    folder = shutil.copytree(sound / "lerobot", tmp_path / "data")
    info = folder / "meta/info.json"
    info.rename(tmp_path / "info.json")
    info.symlink_to(tmp_path / "info.json")
    assert [finding.what for finding in check_sums(folder)] == ["'meta/info.json' leads out of the dataset"]


def test_a_checksum_of_a_sparse_file_is_refused_at_once(sound: Path, tmp_path: Path):
    folder = shutil.copytree(sound / "lerobot", tmp_path / "data")
    manifest = json.loads((folder / "nimbus.json").read_text())
    for name in ("sparse", "missing"):
        manifest["files"][name] = [1 << 40, "0" * 64]
    (folder / "nimbus.json").write_text(json.dumps(manifest))
    with (folder / "sparse").open("wb") as file:
        file.truncate(1 << 40)
    found = {finding.where: finding.what for finding in check_sums(folder)}
    assert found == {"sparse": "the file cannot be hashed", "missing": "the file is missing"}


def _write(path: str, row: int, value: Any) -> Callable[[h5py.File], None]:
    def plant(file: Any) -> None:
        file[path][row] = value

    return plant


def _freeze(file: Any) -> None:
    file["observations/images/front"][5:25] = file["observations/images/front"][5]


@pytest.mark.parametrize(
    ("name", "plant"),
    [
        ("finite", _write("action", 3, np.nan)),
        ("jumps", _write("observations/qpos", 9, 9.0)),
        ("timestamps", _write("time", 11, 0.9)),
        ("black", _write("observations/images/wrist", 3, 0)),
        ("frozen", _freeze),
    ],
)
def test_a_defect_in_an_episode_of_nimbus_is_found(
    sound: Path, tmp_path: Path, name: str, plant: Callable[[h5py.File], None]
):
    folder = shutil.copytree(sound / "nimbus", tmp_path / "data")
    with h5py.File(sorted((folder / "episodes").iterdir())[0], "r+") as file:
        plant(file)
    assert name in {finding.check for finding in faults(folder)}


def test_a_robot_that_a_dataset_names_by_its_path_is_not_opened(
    sound: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    asked: list[str] = []
    monkeypatch.setattr(checks, "find_joint_limits", lambda robot, _: asked.append(robot))
    folder = shutil.copytree(sound / "lerobot", tmp_path / "data")
    edit_json("robot_type", "../private.yaml")(folder, "lerobot")
    checks.examine(open_view(folder))
    checks.examine(open_view(folder), robot="mine.yaml")
    assert asked == ["", "mine.yaml"]


def test_the_command_says_it_and_exits_with_one(sound: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["qa", str(sound / "lerobot")]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[-1] == "lerobot v3.0: fit to train on"
    folder = shutil.copytree(sound / "lerobot", tmp_path / "data")
    (folder / "nimbus.json").unlink()
    edit_json("total_frames", 7)(folder, "lerobot")
    assert main(["qa", str(folder)]) == 1
    assert "fail  counts: meta/info.json: total_frames is 7, found 120\n" in capsys.readouterr().out
    assert main(["qa", str(folder), "--json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert (report["fit"], report["findings"][0]["check"]) == (False, "counts")


def test_what_was_checked_is_listed_with_figures(sound: Path, capsys: pytest.CaptureFixture[str]):
    view = open_view(sound / "lerobot")
    assert main(["qa", str(sound / "lerobot")]) == 0
    said = capsys.readouterr().out
    rows = " ".join(said.split())
    assert f"episodes {view.episode_count} frames {view.frame_count} pictures" in rows and "all examined" in rows
    assert "observation.state" in rows and "checked checksums, files, counts, offsets" in rows
    assert "not checked limits: the joint limits are not known" in rows
    assert main(["qa", str(sound / "lerobot"), "--json"]) == 0
    assert "limits" in json.loads(capsys.readouterr().out)["unchecked"]


def test_what_cannot_be_checked_is_one_line(sound: Path, tmp_path: Path):
    with pytest.raises(InputError, match="neither a Nimbus nor a LeRobot dataset"):
        open_view(tmp_path)
    folder = shutil.copytree(sound / "lerobot", tmp_path / "data")
    edit_json("codebase_version", "v1.6")(folder, "lerobot")
    with pytest.raises(
        InputError, match="codebase_version 'v1.6' is not supported; use a dataset of version v2.1 or v3.0"
    ):
        open_view(folder)
    (folder / "meta/info.json").write_text("{")
    with pytest.raises(InputError, match="cannot be read"):
        open_view(folder)


def test_a_window_without_pictures_has_no_findings() -> None:
    """A damaged video may contain no images, whatever its header declares."""
    assert not list(pictures._FrameWindow(0).findings("1, front", np.zeros((4, 7)), Thresholds()))


def test_a_state_of_plain_numbers_is_compared_with_pictures() -> None:
    """A foreign column may hold one number per row, whatever info.json declares."""
    window = pictures._FrameWindow(0)
    for _ in range(30):
        window.add(np.full((8, 8, 3), 200, np.uint8), Thresholds())
    assert [one.check for one in window.findings("1, front", np.arange(30.0), Thresholds())] == ["frozen"]
