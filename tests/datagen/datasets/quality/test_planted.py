"""Defects of signals, images and whole datasets, planted into valid foreign datasets: the right check names each."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nimbus.datagen.datasets.convert.convert import convert
from nimbus.datagen.datasets.quality.checks import check, examine
from nimbus.datagen.datasets.quality.thresholds import Thresholds, with_settings
from nimbus.datagen.datasets.quality.view import open_view
from nimbus.datagen.errors import InputError
from nimbus.runner.cli import main
from tests.support.foreign import CAMERAS, pictures, write_v21, write_video
from tests.support.synthetic import make_rendered, write_dataset

LENGTHS = (40, 44, 48, 42, 44, 41)
VERSIONS = ("v2.1", "v3.0")
Plant = Callable[[Path], object]


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("sound")
    write_v21(folder / "v2.1", LENGTHS)
    convert(folder / "v2.1", folder / "v3.0")
    return {version: folder / version for version in VERSIONS}


@pytest.mark.parametrize("version", VERSIONS)
def test_sound_sets_of_others_have_no_finding(sound: dict[str, Path], version: str):
    assert check(open_view(sound[version])) == []


def edit_episode(number: int, change: Callable[[dict[str, Any]], Any]) -> Plant:
    """Changes columns of an episode, given as arrays."""

    def plant(folder: Path) -> None:
        path = folder / f"data/chunk-{number // 3:03d}/episode_{number:06d}.parquet"
        table = pq.read_table(path)
        columns: dict[str, Any] = {name: np.array(table.column(name).to_pylist()) for name in table.column_names}
        change(columns)
        for name, values in columns.items():
            place = table.schema.get_field_index(name)
            kind = table.schema.field(place).type
            flat = pa.array(values.reshape(-1).astype(np.float32 if values.ndim > 1 else kind.to_pandas_dtype()))
            made = pa.FixedSizeListArray.from_arrays(flat, values.shape[1]) if values.ndim > 1 else flat
            table = table.set_column(place, name, made)
        pq.write_table(table, path)

    return plant


def video(number: int, camera: int = 0) -> str:
    return f"videos/chunk-{number // 3:03d}/{CAMERAS[camera]}/episode_{number:06d}.mp4"


def edit_video(number: int, change: Callable[[Any], Any], camera: int = 0) -> Plant:
    return lambda folder: write_video(folder / video(number, camera), change(pictures(number, camera, LENGTHS[number])))


def exchange(rows: Any) -> Any:
    rows = rows.copy()
    rows[[6, 16]] = rows[[16, 6]]
    return rows


def exchange_cameras(folder: Path) -> None:
    one, other = folder / video(2, 0), folder / video(2, 1)
    one.rename(folder / "kept.mp4")
    other.rename(one)
    (folder / "kept.mp4").rename(other)


def edit_table(change: Callable[[Any], Any]) -> Plant:
    def plant(folder: Path) -> None:
        path = folder / "data/chunk-000/episode_000002.parquet"
        pq.write_table(change(pq.read_table(path)), path)

    return plant


def wider(rows: Any) -> Any:
    values = [[*row, 0.0] for row in rows.column("action").to_pylist()]
    return rows.set_column(rows.schema.get_field_index("action"), "action", pa.array(values, pa.list_(pa.float32())))


def copy_motion(folder: Path) -> None:
    """Copy the motion of episode 1 to episode 3, which is in another split."""
    rows = pq.read_table(folder / "data/chunk-000/episode_000001.parquet")
    length = LENGTHS[1]
    write_video_of(folder, 3, length)
    columns = {"episode_index": np.full(length, 3), "index": np.arange(length) + sum(LENGTHS[:3])}
    for name, values in columns.items():
        rows = rows.set_column(rows.schema.get_field_index(name), name, pa.array(values))
    pq.write_table(rows, folder / "data/chunk-001/episode_000003.parquet")
    for name in ("episodes", "episodes_stats"):
        path = folder / f"meta/{name}.jsonl"
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        if name == "episodes":
            lines[3]["length"] = length
        else:
            lines[3]["stats"] = lines[1]["stats"]
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    renumber(folder)


def write_video_of(folder: Path, number: int, length: int) -> None:
    for camera in range(2):
        write_video(folder / video(number, camera), pictures(number, camera, length))


def renumber(folder: Path) -> None:
    lengths = [json.loads(line)["length"] for line in (folder / "meta/episodes.jsonl").read_text().splitlines()]
    for number, start in enumerate(np.cumsum([0, *lengths[:-1]]).tolist()):
        edit_episode(number, lambda columns, start=start: columns.update(index=columns["frame_index"] + start))(folder)
    edit_info(total_frames=sum(lengths))(folder)


def edit_info(**values: Any) -> Plant:
    def plant(folder: Path) -> None:
        path = folder / "meta/info.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | values))

    return plant


def leak(folder: Path) -> None:
    copy_motion(folder)
    edit_info(splits={"train": "0:3", "val": "3:6"})(folder)


def edit_stats(feature: str, key: str) -> Plant:
    def plant(folder: Path) -> None:
        path = folder / "meta/episodes_stats.jsonl"
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        lines[2]["stats"][feature][key][0] += 0.25
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))

    return plant


def still(columns: dict[str, Any]) -> None:
    columns["observation.state"][8:] = columns["observation.state"][8]
    columns["action"][8:] = columns["observation.state"][8]


def set_columns(**change: Callable[[Any], Any]) -> Callable[[dict[str, Any]], None]:
    names = {"state": "observation.state", "action": "action"}

    def apply(columns: dict[str, Any]) -> None:
        for name, turn in change.items():
            columns[names[name]] = turn(columns[names[name]])

    return apply


PLANTED: list[tuple[str, str, Plant]] = [
    ("picture_order", "two pictures exchanged", edit_video(1, exchange)),
    ("repeated", "every second picture twice", edit_video(1, lambda rows: rows[np.arange(len(rows)) // 2 * 2])),
    ("colors", "red and blue exchanged", edit_video(3, lambda rows: rows[..., ::-1])),
    ("cameras", "cameras exchanged", exchange_cameras),
    ("same_pictures", "the video of another episode", lambda folder: shutil.copy(folder / video(1), folder / video(4))),
    ("frozen", "a camera that stops", edit_video(2, lambda rows: rows[np.minimum(np.arange(len(rows)), 15)])),
    (
        "black",
        "a camera that dies",
        edit_video(2, lambda rows: np.where(np.arange(len(rows))[:, None, None, None] < 30, rows, 0)),
    ),
    (
        "action_lag",
        "actions that come late",
        edit_episode(2, set_columns(action=lambda rows: np.roll(rows, 6, axis=0))),
    ),
    ("still", "a robot that stops", edit_episode(2, still)),
    ("duplicates", "the same episode twice", copy_motion),
    ("leakage", "one motion in two splits", leak),
    ("stats", "statistics of another episode", edit_stats("action", "mean")),
    (
        "jumps",
        "a joint elsewhere for a row",
        edit_episode(5, lambda columns: columns["observation.state"].__setitem__((9, 2), 6.0)),
    ),
    ("files", "a column that is lost", edit_table(lambda rows: rows.drop_columns(["action"]))),
    ("files", "a row with a value more", edit_table(wider)),
    ("files", "a line that is none", lambda folder: (folder / "meta/tasks.jsonl").open("a").write("3\n")),
    ("files", "statistics of nothing", lambda folder: (folder / "meta/stats.json").write_text("[]")),
    (
        "balance",
        "a task without episodes",
        lambda folder: (folder / "meta/tasks.jsonl").open("a").write('{"task_index": 2, "task": "fly"}\n'),
    ),
]


CASES = [("v2.1", *row) for row in PLANTED]
CASES += [
    ("v3.0", *row) for row in PLANTED if row[0] in ("colors", "cameras", "same_pictures", "action_lag", "leakage")
]


@pytest.mark.parametrize(
    ("version", "name", "plant"),
    [(row[0], row[1], row[3]) for row in CASES],
    ids=[f"{row[0]} {row[2]}" for row in CASES],
)
def test_a_planted_defect_is_named(sound: dict[str, Path], tmp_path: Path, version: str, name: str, plant: Plant):
    folder = shutil.copytree(sound["v2.1"], tmp_path / "data")
    plant(folder)
    if version == "v3.0":
        convert(folder, tmp_path / "v3")
        folder = tmp_path / "v3"
    found = check(open_view(folder), Thresholds(few=6))
    assert name in {finding.check for finding in found}, found


@pytest.mark.parametrize(
    ("name", "row"), [("limits", (9, slice(0, 3), 4.0)), ("limits", (slice(None), 3, 1.2))], ids=["beyond", "all along"]
)
def test_joints_beyond_the_limits_of_a_known_robot_are_named(tmp_path: Path, name: str, row: Any):
    from dataclasses import replace

    items = []
    for number in range(3):
        item = make_rendered(number, steps=40)
        names = (*(f"panda_joint{joint}" for joint in range(1, 8)), "panda_finger_joint1", "panda_finger_joint2")
        state = np.zeros((40, 9))
        state[:, 3], state[:, :3] = -1.5, item.trajectory.joint_positions[:, :3] * 0.2
        if number == 1:
            state[row[0], row[1]] = row[2]
        trajectory = replace(item.trajectory, joint_names=names, joint_positions=state)
        items.append(replace(item, trajectory=trajectory))
    write_dataset(tmp_path / "data", items)
    found = [finding for finding in check(open_view(tmp_path / "data")) if finding.check == name]
    assert [finding.where for finding in found][:1] == ["episode 1"]


def test_starts_that_are_never_drawn_are_named(tmp_path: Path):
    from dataclasses import replace

    items = []
    for number in range(12):
        item = make_rendered(number, steps=6)
        objects = tuple(replace(placed, position=(0.5, 0.1, 0.03)) for placed in item.layout.physical.objects)
        physical = replace(item.layout.physical, objects=objects)
        items.append(replace(item, layout=replace(item.layout, physical=physical)))
    write_dataset(tmp_path / "data", items)
    found = {finding.check for finding in check(open_view(tmp_path / "data"))}
    assert "coverage" in found


def test_variants_of_one_plan_are_no_twins(tmp_path: Path):
    items = [make_rendered(0), make_rendered(0, variant=1), make_rendered(1)]
    write_dataset(tmp_path / "data", items)
    assert "duplicates" not in {finding.check for finding in check(open_view(tmp_path / "data"))}


def test_large_sets_are_looked_at_in_windows(sound: dict[str, Path]):
    found = examine(open_view(sound["v3.0"]), Thresholds(pictures=120))
    assert found.is_fit and 80 <= found.pictures_looked_at <= 200 < found.picture_count


def test_thresholds_are_set_by_name():
    assert with_settings(Thresholds(), ["jump=12", "pictures=7"]) == Thresholds(jump=12.0, pictures=7)
    with pytest.raises(InputError, match="no threshold 'jmp'; did you mean 'jump'"):
        with_settings(Thresholds(), ["jmp=1"])
    with pytest.raises(InputError, match="'far' is not a value for jump; write jump=1.0"):
        with_settings(Thresholds(), ["jump=far"])


def test_an_episode_of_nimbus_without_its_states_is_told(tmp_path: Path):
    write_dataset(tmp_path / "data", [make_rendered(0)])
    path = next((tmp_path / "data/episodes").glob("*.hdf5"))
    with h5py.File(path, "r+") as file:
        del file["observations/qpos"]
    assert "files" in {finding.check for finding in check(open_view(tmp_path / "data"))}


@pytest.mark.parametrize("name", ["data/chunk-000/episode_000001.parquet", "meta/tasks.jsonl", f"{CAMERAS[0]}"])
def test_links_out_of_a_dataset_are_one_line(
    sound: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
):
    folder = shutil.copytree(sound["v2.1"], tmp_path / "data")
    path = folder / name if "/" in name else folder / "videos/chunk-000" / name
    shutil.move(path, tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    for command in ("qa", "convert", "filter"):
        words = {
            "convert": ["--out", str(tmp_path / "out")],
            "filter": ["--out", str(tmp_path / "out"), "--where", "success"],
        }
        assert main([command, str(folder), *words.get(command, [])]) == 2
        told = capsys.readouterr().err
        assert "leads out of the dataset" in told and told.count("\n") == 1
        assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("values", [{"features": [1]}, {"fps": "15"}, {"chunks_size": 0, "fps": 0}, {"video_path": 5}])
def test_a_description_of_wrong_types_is_one_line(
    sound: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str], values: dict[str, Any]
):
    folder = shutil.copytree(sound["v3.0"], tmp_path / "data")
    edit_info(**values)(folder)
    assert main(["qa", str(folder)]) == 2
    assert capsys.readouterr().err.count("\n") == 1
