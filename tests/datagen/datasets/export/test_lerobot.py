from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import av
import h5py
import numpy as np
import pyarrow.parquet as pq
import pytest

from nimbus.datagen.datasets.export.export import export
from nimbus.datagen.datasets.export.parquet import INT, ParquetFile
from nimbus.datagen.datasets.export.shards import Options, pack
from nimbus.datagen.errors import InputError
from nimbus.datagen.stages import Rendered
from tests.support.reading import decode, psnr, tree
from tests.support.synthetic import failure, make_rendered, write_dataset

STEPS = (20, 13, 27, 9)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return four episodes of different lengths and one failure; they are not stored in order of address."""
    folder = tmp_path_factory.mktemp("data") / "data"
    write_dataset(folder, rendered())
    return folder


def rendered() -> list[Rendered]:
    items = [make_rendered(row, steps=steps) for row, steps in enumerate(STEPS)]
    return [items[2], make_rendered(4, outcome=failure()), items[0], items[3], items[1]]


@pytest.fixture(scope="module", params=[Options(), Options(episode_size=2), Options(shard_bytes=30_000)], ids=repr)
def out(data: Path, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    folder = tmp_path_factory.mktemp("out") / "out"
    export(data, folder, options=request.param)
    return folder


def rows(out: Path, place: str) -> list[dict[str, Any]]:
    """Return the rows of all files of a kind, in order."""
    return [row for path in sorted((out / place).rglob("*.parquet")) for row in pq.read_table(path).to_pylist()]


def stored(data: Path) -> list[Any]:
    return [h5py.File(path) for path in sorted((data / "episodes").iterdir())]


def info(out: Path) -> dict[str, Any]:
    return json.loads((out / "meta/info.json").read_text())


def test_row_i_of_the_episodes_is_episode_i_with_its_frames_where_it_says(data: Path, out: Path):
    episodes, frames = rows(out, "meta/episodes"), rows(out, "data")
    assert [row["episode_index"] for row in episodes] == [0, 1, 2, 3]
    assert [row["length"] for row in episodes] == list(STEPS)
    assert [row["index"] for row in frames] == list(range(sum(STEPS)))
    for episode, file in zip(episodes, stored(data), strict=True):
        assert (episode["episode_id"], episode["seed"]) == (file.attrs["episode_id"], file.attrs["seed"])
        assert (episode["success"], episode["reason"]) == (True, "none")
        mine = frames[episode["dataset_from_index"] : episode["dataset_to_index"]]
        assert {row["episode_index"] for row in mine} == {episode["episode_index"]}
        assert [row["frame_index"] for row in mine] == list(range(episode["length"]))
        path = info(out)["data_path"].format(
            chunk_index=episode["data/chunk_index"], file_index=episode["data/file_index"]
        )
        table = pq.read_table(out / path).to_pylist()
        assert [row["index"] for row in table if row["episode_index"] == episode["episode_index"]] == [
            row["index"] for row in mine
        ]


def test_states_and_actions_are_the_stored_ones(data: Path, out: Path):
    frames, start = rows(out, "data"), 0
    for file in stored(data):
        stop = start + len(np.asarray(file["time"]))
        for name, path in (
            ("observation.state", "observations/qpos"),
            ("observation.velocity", "observations/qvel"),
            ("action", "action"),
        ):
            found = np.array([row[name] for row in frames[start:stop]], np.float32)
            assert np.array_equal(found, np.asarray(file[path]).astype(np.float32))
        start = stop


def test_times_lie_on_the_grid_of_frames(out: Path):
    for row in rows(out, "data"):
        assert row["timestamp"] == np.float32(row["frame_index"] / 15)


def test_the_frames_at_an_episodes_times_are_its_own(data: Path, out: Path):
    for episode, file in zip(rows(out, "meta/episodes"), stored(data), strict=True):
        for camera in ("front", "wrist"):
            key = f"videos/observation.images.{camera}"
            start, stop = episode[f"{key}/from_timestamp"], episode[f"{key}/to_timestamp"]
            path = info(out)["video_path"].format(
                video_key=f"observation.images.{camera}",
                chunk_index=episode[f"{key}/chunk_index"],
                file_index=episode[f"{key}/file_index"],
            )
            found, times = decode(out / path, start, stop)
            wanted = np.asarray(file[f"observations/images/{camera}"])
            assert times == [float(start + k / 15) for k in range(len(wanted))] or np.allclose(
                times, start + np.arange(len(wanted)) / 15, atol=1e-9
            )
            own = psnr(found, wanted)
            assert own > 27
            assert own > psnr(found[5:], wanted[:-5]) + 3, "a frame five steps away is another one"


def test_videos_have_a_keyframe_every_ten_frames_and_no_frame_out_of_order(out: Path):
    for path in (out / "videos").rglob("*.mp4"):
        with av.open(str(path)) as container:
            stream = container.streams.video[0]
            assert (stream.codec_context.name, stream.codec_context.pix_fmt) == ("h264", "yuv420p")
            packets = [packet for packet in container.demux(stream) if packet.size]
        assert [packet.pts for packet in packets] == [packet.dts for packet in packets]
        ticks = [packet.pts * packet.time_base * 15 for packet in packets if packet.pts is not None]
        assert ticks == list(range(len(packets)))
        keys = [row for row, packet in enumerate(packets) if packet.is_keyframe] + [len(packets)]
        assert max(np.diff(keys)) <= 10


def test_wordings_are_the_index_of_their_table(data: Path, out: Path):
    table = pq.read_table(out / "meta/tasks.parquet")
    described = json.loads(table.schema.metadata[b"pandas"])
    assert described["index_columns"] == ["task"]
    wordings = {row["task_index"]: row["task"] for row in table.to_pylist()}
    told = [file["instruction"][()].decode() for file in stored(data)]
    episodes, frames = rows(out, "meta/episodes"), rows(out, "data")
    assert [row["tasks"] for row in episodes] == [[text] for text in told]
    assert [wordings[row["task_index"]] for row in frames] == [told[row["episode_index"]] for row in frames]
    assert info(out)["total_tasks"] == len(wordings)


def test_statistics_are_numpys(data: Path, out: Path):
    stats = json.loads((out / "meta/stats.json").read_text())
    files = stored(data)
    everything = np.concatenate([np.asarray(file["action"]).astype(np.float32) for file in files])
    check_stats(stats["action"], everything.astype(np.float64))
    images = np.concatenate([np.asarray(file["observations/images/front"]).reshape(-1, 3) for file in files]) / 255
    front = stats["observation.images.front"]
    assert np.shape(front["mean"]) == (3, 1, 1)
    assert front.pop("count") == [sum(STEPS)]
    check_stats({name: np.reshape(value, 3) for name, value in front.items()}, images)
    for episode, file in zip(rows(out, "meta/episodes"), files, strict=True):
        values = np.asarray(file["observations/qpos"]).astype(np.float32).astype(np.float64)
        names = ("min", "max", "mean", "std", "count", "q01", "q10", "q50", "q90", "q99")
        check_stats({name: episode[f"stats/observation.state/{name}"] for name in names}, values)
        assert np.shape(episode["stats/observation.images.wrist/q50"]) == (3, 1, 1)


def check_stats(found: dict[str, Any], values: np.ndarray[Any, Any]) -> None:
    wanted = {"min": values.min(0), "max": values.max(0), "mean": values.mean(0), "std": values.std(0)}
    wanted |= {name: np.quantile(values, level, axis=0) for name, level in QUANTILES}
    for name, value in wanted.items():
        assert np.allclose(found[name], value, atol=1e-9), name
    assert found.get("count", [len(values)]) == [len(values)]


QUANTILES = (("q01", 0.01), ("q10", 0.1), ("q50", 0.5), ("q90", 0.9), ("q99", 0.99))


def test_the_description_counts_right(out: Path):
    found = info(out)
    assert (found["codebase_version"], found["fps"], found["robot_type"]) == ("v3.0", 15, "panda")
    assert (found["total_episodes"], found["total_frames"], found["splits"]) == (4, sum(STEPS), {"train": "0:4"})
    assert found["features"]["observation.images.front"]["shape"] == [48, 64, 3]
    columns = set(pq.read_schema(next((out / "data").rglob("*.parquet"))).names)
    assert columns == {key for key, value in found["features"].items() if value["dtype"] != "video"}


def test_row_groups_hold_whole_episodes_of_a_thousand_rows_and_more_together(tmp_path: Path):
    lengths = [60] * 40 + [3000, 5]
    with ParquetFile(tmp_path / "rows.parquet") as file:
        for episode, length in enumerate(lengths):
            file.write({"episode_index": (np.full(length, episode), INT)})
    found = pq.ParquetFile(tmp_path / "rows.parquet")
    groups = [found.read_row_group(group)["episode_index"].to_pylist() for group in range(found.num_row_groups)]
    assert [len(group) for group in groups] == [1080, 1080, 3240, 5]
    assert [row for group in groups for row in group] == np.repeat(np.arange(42), lengths).tolist()
    assert all(not set(one) & set(next_one) for one, next_one in pairwise(groups))


def test_another_number_of_processes_makes_the_same_bytes(data: Path, tmp_path: Path):
    export(data, tmp_path / "one", workers=1)
    export(data, tmp_path / "two", workers=2)
    assert tree(tmp_path / "one") == tree(tmp_path / "two")


def test_files_close_before_they_pass_their_bounds():
    assert pack([4, 4, 4, 4], 8, 10) == [0, 0, 1, 1]
    assert pack([4, 9, 1], 8, 10) == [0, 1, 2]
    assert pack([1] * 5, 100, 2) == [0, 0, 1, 1, 2]
    assert pack([], 1, 1) == []


def test_an_odd_camera_is_refused_in_one_line(tmp_path: Path):
    write_dataset(tmp_path / "data", [make_rendered(0, width=63)])
    with pytest.raises(
        InputError, match=r"camera 'front' is 63 x 48: H.264 needs an even width and height; .*size: \[64, 48\]"
    ):
        export(tmp_path / "data", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_stored_videos_are_joined_without_encoding_again(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    write_dataset(tmp_path / "data", rendered(), images="video")
    export(data, tmp_path / "encoded")
    encoder = "nimbus.datagen.store.episode_file.h264.Encoder.write"
    monkeypatch.setattr(encoder, lambda *_: pytest.fail("a frame was encoded"))
    export(tmp_path / "data", tmp_path / "joined", workers=1)
    one, other = (tree(tmp_path / name) for name in ("encoded", "joined"))
    assert one.keys() == other.keys() and sum(name.endswith(".mp4") for name in one) == 2
    assert {name for name in one if one[name] != other[name]} == {"nimbus.json"}, "the same encoder, earlier"
    export(tmp_path / "data", tmp_path / "v21", to="lerobot-v2.1", workers=1)


@pytest.mark.parametrize("to", ["lerobot", "lerobot-v2.1", "aloha", "robomimic"])
def test_a_video_that_is_not_what_was_written_publishes_nothing(tmp_path: Path, to: str):
    write_dataset(tmp_path / "data", rendered(), images="video")
    video = next((tmp_path / "data" / "episodes").glob("*.wrist.mp4"))
    video.write_bytes(video.read_bytes()[:-20] + bytes(20))
    if to.startswith("lerobot"):
        with pytest.raises(InputError, match="is missing or has changed"):
            export(tmp_path / "data", tmp_path / "out", to=to)
    video.write_bytes(video.read_bytes()[:200])
    with pytest.raises(InputError, match="its size differs|not a readable video"):
        export(tmp_path / "data", tmp_path / "out", to=to)
    assert not (tmp_path / "out").exists()
