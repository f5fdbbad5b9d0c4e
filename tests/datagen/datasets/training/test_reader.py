"""Equal samples from every format."""

from __future__ import annotations

import copy
import hashlib
import io
import json
import tarfile
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pyarrow.parquet as pq
import pytest

from nimbus.datagen.datasets.export.export import export
from nimbus.datagen.datasets.export.shards import Options
from nimbus.datagen.datasets.training.reader import Reader, collate
from nimbus.datagen.datasets.training.samples import Samples
from nimbus.datagen.datasets.training.sharded import ShardFrames, ShardManifest
from nimbus.datagen.errors import InputError
from nimbus.runner.cli import main
from tests.support.synthetic import make_observations, make_rendered, write_dataset

STEPS = (20, 13, 41)
WINDOWS = {"action": range(-1, 3), "observation.images.front": (-1, 0)}
KINDS = ("lossless", "video", "lossless_shards", "video_shards", "lossless_lerobot", "video_lerobot")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("training")
    for images in ("lossless", "video"):
        items = [make_rendered(row, steps=steps) for row, steps in enumerate(STEPS)]
        write_dataset(folder / images, items, images=images)
        for to in ("shards", "lerobot"):
            export(folder / images, folder / f"{images}_{to}", to=to, options=Options(shard_bytes=400_000))
    return folder


@pytest.mark.parametrize("kind", KINDS)
def test_a_sample_is_the_frame_its_window_and_its_padding(root: Path, kind: str) -> None:
    paths = sorted((root / "lossless" / "episodes").iterdir())
    with Reader(root / kind, windows=WINDOWS) as reader:
        assert len(reader) == sum(STEPS) and reader.frames.fps == 15 and reader.frames.cameras == ("front", "wrist")
        for episode, frame in ((0, 0), (0, 19), (1, 0), (2, 17), (2, 40), (1, 12)):
            sample = reader.sample(episode, frame)
            with h5py.File(paths[episode]) as file:
                action, state = (np.asarray(file[name]).astype(np.float32) for name in ("action", "observations/qpos"))
                images = np.asarray(file["observations/images/front"])
            window = np.arange(frame - 1, frame + 3)
            inside = np.clip(window, 0, STEPS[episode] - 1)
            assert np.array_equal(sample["action"], action[inside])
            assert np.array_equal(sample["action_is_pad"], window != inside)
            assert np.array_equal(sample["observation.state"], state[frame])
            wanted = images[[max(frame - 1, 0), frame]].astype(int)
            error = np.abs(sample["observation.images.front"] - wanted).mean()
            assert error == 0 if kind in ("lossless", "lossless_shards") else error < 4
            assert sample["observation.images.front_is_pad"].tolist() == [frame == 0, False]
            assert sample["observation.images.wrist"].shape == (48, 64, 3)
            assert (sample["episode_index"], sample["frame_index"]) == (episode, frame)
            assert sample["index"] == sum(STEPS[:episode]) + frame and sample["timestamp"] == frame / 15
            assert sample["task"] == "put every piece of trash into its bin, façade included"


@pytest.mark.parametrize("kind", KINDS)
def test_all_formats_iterate_to_the_same_samples_in_the_same_order(root: Path, kind: str) -> None:
    found = list(Samples(Reader(root / kind, windows=WINDOWS), seed=4, block=6, pool=3))
    assert sorted(sample["index"] for sample in found) == list(range(sum(STEPS)))
    first = list(Samples(Reader(root / "video", windows=WINDOWS), seed=4, block=6, pool=3, ahead=0))
    for one, other in zip(found, first, strict=True):
        assert one["index"] == other["index"] and np.array_equal(one["action"], other["action"])
        if not kind.startswith("lossless") or kind == "lossless_lerobot":
            assert np.array_equal(one["observation.images.front"], other["observation.images.front"])


def test_images_between_are_those_of_their_frames_and_samples_share_no_memory(root: Path) -> None:
    wanted = np.concatenate([item.cameras["wrist"].rgb for item in make_observations(STEPS[2], seed=2)])
    with Reader(root / "video", features=("observation.images.wrist", "action")) as reader:
        samples = reader.samples(2, [30, 3, 17])
        for sample, frame in zip(samples, (30, 3, 17), strict=True):
            assert sample["frame_index"] == frame and "observation.state" not in sample
            errors = np.abs(sample["observation.images.wrist"].astype(int) - wanted).mean(axis=(1, 2, 3))
            assert int(np.argmin(errors)) == frame
        samples[0]["action"][:] = 7
        assert not np.array_equal(reader.sample(2, 30)["action"], samples[0]["action"])


def test_only_a_few_files_stay_open(root: Path) -> None:
    with Reader(root / "video_shards", open_files=2) as reader:
        for row in (0, 30, 60, 1, 31, 61):
            assert reader[row]["index"] == row
        frames = reader.frames
        assert isinstance(frames, ShardFrames) and len(frames._open) == 2


def test_a_batch_is_stacked(root: Path) -> None:
    with Reader(root / "video", windows=WINDOWS) as reader:
        batch = collate([reader[0], reader[-1]])
    assert np.shape(batch["action"]) == (2, 4, 8) and np.shape(batch["observation.images.front"]) == (2, 2, 48, 64, 3)
    assert batch["index"].tolist() == [0, 73]  # pyright: ignore[reportAttributeAccessIssue]
    assert len(batch["task"]) == 2


def test_a_reader_goes_to_another_process_as_its_folder_and_its_options(root: Path) -> None:
    samples = Samples(Reader(root / "video_lerobot", windows=WINDOWS), seed=2)
    other = copy.deepcopy(samples)  # by way of __reduce__, as to a worker
    assert [one["index"] for one in other] == [one["index"] for one in samples]


def test_what_was_read_ahead_and_not_given_is_not_in_the_state(root: Path) -> None:
    samples = Samples(Reader(root / "video"), block=4, pool=2, ahead=3)
    iterator = iter(samples)
    given = [next(iterator)["index"] for _ in range(5)]
    state = json.loads(json.dumps(samples.state_dict()))
    iterator.close()  # pyright: ignore[reportAttributeAccessIssue]
    resumed = Samples(Reader(root / "video"))
    resumed.load_state_dict(state)
    rest = [sample["index"] for sample in resumed]
    assert sorted(given + rest) == list(range(sum(STEPS))) and samples.wait_seconds > 0


def test_shards_are_tar_files_in_which_the_manifest_finds_every_byte(root: Path) -> None:
    out = root / "video_shards"
    table = pq.read_table(out / "manifest.parquet").to_pylist()
    shards = sorted((out / "shards").iterdir())
    assert len(shards) > 1 and [row["length"] for row in table] == list(STEPS)
    for row in table:
        path = shards[row["shard"]]
        content = path.read_bytes()
        with tarfile.open(path) as tar:
            for part, suffix in (("hdf5", "hdf5"), ("video/front", "front.mp4"), ("video/wrist", "wrist.mp4")):
                name = f"{row['episode_id']}.{suffix}"
                found = content[row[f"{part}/offset"] :][: row[f"{part}/bytes"]]
                member = tar.extractfile(name)
                assert member and member.read() == found == (root / "video" / "episodes" / name).read_bytes()
                assert hashlib.sha256(found).hexdigest() == row[f"{part}/sha256"]
        with h5py.File(io.BytesIO(content[row["hdf5/offset"] :][: row["hdf5/bytes"]])) as file:
            assert file.attrs["episode_id"] == row["episode_id"]


def test_a_manifest_is_filtered_before_anything_else_is_read(root: Path) -> None:
    with pytest.raises(InputError, match="no column 'lenght'; did you mean 'length'"):
        ShardManifest(root / "video_shards", where=[("lenght", ">", 15)])
    manifest = ShardManifest(root / "video_shards", where=[("length", ">", 15), ("success", "=", True)])
    assert manifest.column("length").tolist() == [20, 41]
    frames = ShardFrames(root / "video_shards", where=[("index", "=", 2)])
    with Reader(frames) as reader:
        assert len(reader) == 41 and reader[3]["frame_index"] == 3
        with pytest.raises(ValueError, match="give the folder"):
            reader.again()


def _link_shard(out: Path) -> None:
    shard = out / "shards/000000.tar"
    shard.symlink_to(shard.rename(out.parent / "private.tar"))


@pytest.mark.parametrize(
    ("harm", "told"),
    [
        (lambda out: (out / "manifest.parquet").write_bytes(b"PAR1 no"), "not a manifest of shards"),
        (lambda out: next((out / "shards").iterdir()).unlink(), "000000.tar: the file is missing"),
        (lambda out: next((out / "shards").iterdir()).write_bytes(b""), "but the file has 0"),
        (_link_shard, "'shards/000000.tar' leads out of the dataset"),
    ],
)
def test_damaged_shards_are_one_line(root: Path, tmp_path: Path, harm: Any, told: str) -> None:
    export(root / "video", tmp_path / "out", to="shards")
    harm(tmp_path / "out")
    with pytest.raises(InputError, match=told):
        Reader(tmp_path / "out")[0]


def test_verify_reads_every_byte_of_shards(root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    export(root / "video", out, to="shards", options=Options(shard_bytes=400_000))
    assert main(["verify", str(out)]) == 0
    assert "shards, 3 episodes: all is well" in capsys.readouterr().out
    row = pq.read_table(out / "manifest.parquet").to_pylist()[0]
    content = bytearray((out / "shards/000000.tar").read_bytes())
    content[row["video/wrist/offset"] + 40] ^= 1
    (out / "shards/000000.tar").write_bytes(content)
    (out / "shards/000001.tar").unlink()
    (out / "shards/000009.tar").write_bytes(b"")
    assert main(["verify", str(out), "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["problems"] == [
        "shards/000009.tar: not in the manifest",
        "shards/000001.tar: missing",
        f"shards/000000.tar: {row['episode_id']}/video/wrist: the content has changed (SHA-256)",
    ]


def test_what_is_no_dataset_or_another_version_is_one_line(root: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="neither a Nimbus dataset, nor shards, nor a LeRobot dataset"):
        Reader(tmp_path)
    export(root / "video", tmp_path / "old", to="lerobot-v2.1")
    with pytest.raises(InputError, match="is LeRobot v2.1, expected v3.0"):
        Reader(tmp_path / "old")
    export(root / "video", tmp_path / "out")
    info = tmp_path / "out/meta/info.json"
    info.write_text(info.read_text().replace("videos/{video_key}", "../../{video_key}"))
    with pytest.raises(InputError, match="leads out of the dataset"):
        Reader(tmp_path / "out")[0]
    info.write_text("{}")
    with pytest.raises(
        InputError, match="codebase_version None is not supported; use a dataset of version v2.1 or v3.0"
    ):
        Reader(tmp_path / "out")


def test_a_hole_a_cut_table_and_a_cut_video_are_one_line(root: Path, tmp_path: Path) -> None:
    def spoiled(place: str, spoil: Any) -> Path:
        out = tmp_path / place.replace("/", "_")
        export(root / "video", out)
        path = out / place
        pq.write_table(spoil(pq.read_table(path)), path)
        return out

    with pytest.raises(InputError, match="row i of the table of episodes is not episode i"):
        Reader(spoiled("meta/episodes/chunk-000/file-000.parquet", lambda table: table.take([0, 2])))
    short = Reader(spoiled("data/chunk-000/file-000.parquet", lambda table: table.slice(0, 70)))
    assert short[32]["index"] == 32
    with pytest.raises(InputError, match=r"file-000.parquet: the table has too few rows for episode 2"):
        list(Samples(short))
    export(root / "video", tmp_path / "cut")
    video = next((tmp_path / "cut").rglob("*wrist/**/*.mp4"))
    video.write_bytes(video.read_bytes()[:-20_000])
    with pytest.raises(InputError, match="not a readable video"):
        list(Samples(Reader(tmp_path / "cut"), ahead=2))


def test_unknown_features_and_empty_windows_are_refused(root: Path) -> None:
    with pytest.raises(ValueError, match=r"no feature 'acton'; did you mean 'action'"):
        Reader(root / "video", features=["acton"])
    with pytest.raises(ValueError, match="has no offsets"):
        Reader(root / "video", windows={"action": []})
    with Reader(root / "video") as reader, pytest.raises(IndexError, match="episode -1 of"):
        reader.sample(-1, 0)
    with Reader(root / "video") as reader, pytest.raises(IndexError):
        reader.sample(0, 20)
