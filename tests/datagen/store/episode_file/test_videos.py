"""Images as video: one MP4 per camera, committed with the episode."""

from __future__ import annotations

import hashlib
import json
import signal
import sqlite3
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import av
import h5py
import numpy as np
import pytest
from av.error import FFmpegError
from hypothesis import given, settings
from hypothesis import strategies as st

from nimbus.datagen.errors import InputError
from nimbus.datagen.store.episode_file import decode, open_decoders
from nimbus.datagen.store.episode_file.decode import VideoReader, limit_pixels
from nimbus.datagen.store.episode_file.h264 import FRAGMENTED, GROUP, Encoder
from nimbus.datagen.store.episode_file.open_video import QUICK
from nimbus.datagen.store.episode_file.read import EpisodeFile
from nimbus.datagen.store.ledger.ledger import Ledger
from nimbus.datagen.store.ledger.records import EpisodeStatus
from nimbus.datagen.store.recovery import RecoveryReport
from nimbus.datagen.store.verify import dataset_hashes, verify
from nimbus.datagen.store.writer import Hdf5Writer
from tests.support.forked import run_forked
from tests.support.synthetic import make_observations, make_rendered, open_dataset, write_dataset

STEPS = 23
COMMIT = """
import sys
from pathlib import Path
from nimbus.datagen.store.writer import Hdf5Writer
from tests.support.staging import small
from tests.support.synthetic import open_dataset
with open_dataset(Path(sys.argv[1])) as dataset:
    writer = Hdf5Writer(dataset, images="video")
    for index in range(2):
        list(writer.process(small(index)))
    writer.close()
"""


def rendered_images(camera: str, *, seed: int = 0) -> Any:
    return np.concatenate([item.cameras[camera].rgb for item in make_observations(STEPS, seed=seed)])


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("video") / "data"
    write_dataset(folder, [make_rendered(row, steps=STEPS) for row in range(2)], images="video")
    return folder


def psnr(found: Any, wanted: Any) -> float:
    """Return the peak signal-to-noise ratio over all pixels [dB]."""
    return float(10 * np.log10(255**2 / np.mean((found.astype(float) - wanted) ** 2)))


def episode_of(folder: Path, row: int = 0) -> Path:
    return sorted((folder / "episodes").glob("*.hdf5"))[row]


def test_each_camera_has_an_mp4_beside_the_episode_and_nothing_else_changes(written: Path, tmp_path: Path) -> None:
    names = [
        path.name for path in sorted((written / "episodes").iterdir()) if path.name.startswith("sort_trash-s0-000000")
    ]
    stem = episode_of(written).stem
    assert names == [f"{stem}.front.mp4", f"{stem}.hdf5", f"{stem}.wrist.mp4"]
    assert not list((written / "stage").iterdir())
    assert verify(written).problems == ()
    write_dataset(tmp_path / "lossless", [make_rendered(row, steps=STEPS) for row in range(2)])
    assert dataset_hashes(written)["D0"] == dataset_hashes(tmp_path / "lossless")["D0"]
    with EpisodeFile(episode_of(written)) as one, EpisodeFile(episode_of(tmp_path / "lossless")) as other:
        assert one.cameras == other.cameras == ("front", "wrist")
        assert np.array_equal(one.frames("front", 3, 9).depth, other.frames("front", 3, 9).depth), (
            "depth stays lossless"
        )
        assert {*other.paths()} - {*one.paths()} == {"observations/images/front", "observations/images/wrist"}


def test_the_frames_are_those_that_were_rendered_in_any_order_and_in_any_slice(written: Path) -> None:
    wanted = rendered_images("wrist")
    with EpisodeFile(episode_of(written)) as episode:
        everything = episode.rows("observations/images/wrist", slice(None))
        assert everything.shape == episode.shape("observations/images/wrist") == wanted.shape
        assert psnr(everything, wanted) > 27
        assert psnr(everything, wanted) > psnr(everything[5:], wanted[:-5]) + 3
        for which in (slice(7, 12), slice(-3, None), slice(2, 20, 6), slice(9, 9), 0, -1, 11):
            assert np.array_equal(episode.rows("observations/images/wrist", which), everything[which])
        with pytest.raises(IndexError):
            episode.rows("observations/images/wrist", STEPS)


def test_the_file_is_h264_with_a_keyframe_every_ten_frames_on_whole_ticks(written: Path) -> None:
    with av.open(str(episode_of(written).with_suffix(".front.mp4"))) as container:
        stream = container.streams.video[0]
        packets = [packet for packet in container.demux(stream) if packet.size]
        assert (stream.codec_context.name, stream.codec_context.pix_fmt) == ("h264", "yuv420p")
        assert stream.codec_context.has_b_frames == 0
        assert [packet.is_keyframe for packet in packets] == [row % GROUP == 0 for row in range(STEPS)]
        assert stream.time_base is not None
        assert [packet.pts * stream.time_base * 15 for packet in packets if packet.pts is not None] == list(
            range(STEPS)
        )


def test_the_record_tells_the_files_hash_and_that_of_the_rendered_pictures(written: Path) -> None:
    path = episode_of(written)
    with EpisodeFile(path) as episode, h5py.File(path) as file:
        record = episode.videos["front"]
        content = episode.video_file("front").read_bytes()
        assert (record.byte_count, record.sha256) == (len(content), hashlib.sha256(content).hexdigest())
        assert record.rendered_sha256 == hashlib.sha256(rendered_images("front").tobytes()).hexdigest()
        assert json.loads(bytes(np.asarray(file["observations/video/front"])[()]))["frame_count"] == STEPS
        counts = np.asarray(file["observations/histogram/front"])
        assert counts.shape == (3, 256) and len(set(counts.sum(axis=1))) == 1
    ledger = Ledger(written, read_only=True)
    stored = ledger.stored()[0]
    ledger.close()
    assert {video.path for video in stored.videos} == {
        f"episodes/{path.stem}.{name}.mp4" for name in ("front", "wrist")
    }
    assert stored.stored_bytes == sum(size.stat().st_size for size in path.parent.glob(f"{path.stem}.*"))


def test_the_same_pictures_give_the_same_bytes(written: Path, tmp_path: Path) -> None:
    write_dataset(tmp_path / "again", [make_rendered(row, steps=STEPS) for row in (1, 0)], images="video")
    assert dataset_hashes(tmp_path / "again") == dataset_hashes(written)
    with open_dataset(tmp_path / "other") as dataset:
        writer = Hdf5Writer(dataset, images="video", synchronous=True)
        list(writer(iter([make_rendered(row, steps=STEPS) for row in range(2)])))
        writer.close()
    assert dataset_hashes(tmp_path / "other") == dataset_hashes(written)


def test_both_keeps_the_pictures_bit_for_bit_beside_the_video(tmp_path: Path) -> None:
    write_dataset(tmp_path / "data", [make_rendered(steps=STEPS)], images="both")
    with EpisodeFile(episode_of(tmp_path / "data")) as episode:
        assert np.array_equal(episode.rows("observations/images/front", slice(None)), rendered_images("front"))
        assert episode.video_file("front").is_file() and "front" in episode.videos
    assert verify(tmp_path / "data").problems == ()


@pytest.mark.parametrize(
    ("harm", "told"),
    [
        (lambda path: path.unlink(), "is missing"),
        (lambda path: path.write_bytes(path.read_bytes()[:-1] + b"x"), "differs from what was written"),
        (lambda path: path.write_bytes(path.read_bytes()[:-9]), "differs from what was written"),
    ],
    ids=["gone", "changed", "cut"],
)
def test_verify_and_hash_tell_of_a_video_that_is_gone_or_changed(tmp_path: Path, harm: Any, told: str) -> None:
    write_dataset(tmp_path / "data", [make_rendered(steps=STEPS)], images="video")
    path = episode_of(tmp_path / "data")
    harm(path.with_suffix(".wrist.mp4"))
    (problem,) = verify(tmp_path / "data").problems
    assert problem.startswith(f"episodes/{path.name}: its video {path.stem}.wrist.mp4 {told}")
    with pytest.raises(InputError, match=told):
        dataset_hashes(tmp_path / "data")


def test_an_episode_whose_video_is_gone_is_made_again_and_strays_are_put_aside(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    write_dataset(folder, [make_rendered(row, steps=STEPS) for row in range(2)], images="video")
    before = dataset_hashes(folder)
    gone = episode_of(folder).with_suffix(".front.mp4")
    gone.unlink()
    (folder / "episodes" / "stray.mp4").write_bytes(b"somebody's")
    with open_dataset(folder) as dataset:
        assert dataset.outdated == (gone,) and dataset.info.episode_count == 1
        stem = gone.name.removesuffix(".front.mp4")
        assert sorted(path.name for path in dataset.orphans) == [f"{stem}.hdf5", f"{stem}.wrist.mp4", "stray.mp4"]
    write_dataset(folder, [make_rendered(0, steps=STEPS)], images="video")
    assert verify(folder).problems == () and dataset_hashes(folder) == before


@pytest.mark.parametrize("place", ["before_intent", *(f"after_link:{row}" for row in (1, 2, 3, 4)), "after_unlink:2"])
def test_an_episode_and_its_videos_are_stored_together_or_not_at_all(tmp_path: Path, place: str) -> None:
    folder = tmp_path / "data"
    died = run_forked(COMMIT, folder, NIMBUS_FAILPOINT=place)
    assert died.returncode == -signal.SIGKILL, died.stderr
    with open_dataset(folder) as dataset:
        assert dataset.recovered.rolled_back == 0 and dataset.orphans == () and not list(dataset.stage.iterdir())
        done = {state.episode_id for state in dataset.ledger.episodes(EpisodeStatus.DONE)}
    assert verify(folder).problems == ()
    assert len(list((folder / "episodes").iterdir())) == 3 * len(done)
    if place.startswith("after_link"):
        assert len(done) == (1 if place < "after_link:4" else 2), "what was begun is finished"


def test_a_commit_of_which_a_video_is_lost_is_undone(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    run_forked(COMMIT, folder, NIMBUS_FAILPOINT="after_intent")
    (video,) = (folder / "stage").glob("*.wrist.*.tmp")
    video.write_bytes(video.read_bytes()[:100])
    with open_dataset(folder) as dataset:
        assert dataset.recovered == RecoveryReport(rolled_back=1)
        assert not list(dataset.episodes.iterdir()) and not list(dataset.stage.iterdir())


def test_an_attempt_that_breaks_off_leaves_no_file(tmp_path: Path) -> None:
    def broken() -> Any:
        yield next(make_observations(STEPS))
        raise ValueError("the renderer broke")

    with open_dataset(tmp_path / "data") as dataset:
        writer = Hdf5Writer(dataset, images="video")
        with pytest.raises(ValueError, match="broke"):
            list(writer.process(make_rendered(steps=STEPS, observations=broken())))
        assert not list(dataset.stage.iterdir()) and not list(dataset.episodes.iterdir())
        writer.close()


@pytest.mark.parametrize(
    ("size", "rate", "told"), [((63, 48), 15.0, "even width and height"), ((64, 48), 12.5, "whole number of frames")]
)
def test_what_h264_cannot_hold_is_said_in_one_line(
    tmp_path: Path, size: tuple[int, int], rate: float, told: str
) -> None:
    item = make_rendered(steps=4, width=size[0], height=size[1])
    item = replace(item, trajectory=replace(item.trajectory, rate=rate))
    with open_dataset(tmp_path / "data") as dataset, pytest.raises(InputError, match=told):
        writer = Hdf5Writer(dataset, images="video")
        try:
            list(writer.process(item))
        finally:
            writer.close()


def test_a_ledger_of_before_there_were_videos_is_read_and_continued(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    write_dataset(folder, [make_rendered()])
    with sqlite3.connect(folder / "ledger.sqlite") as connection:
        connection.execute("ALTER TABLE attempts DROP COLUMN videos")
    ledger = Ledger(folder, read_only=True)
    assert [attempt.videos for attempt in ledger.stored()] == [()]
    ledger.close()
    assert verify(folder).problems == ()
    write_dataset(folder, [make_rendered(1)])
    assert verify(folder).problems == () and verify(folder).episode_count == 2


@settings(max_examples=20)
@given(ranges=st.lists(st.tuples(st.integers(0, 36), st.integers(0, 36)).map(sorted), min_size=1, max_size=6))
def test_a_reader_gives_the_same_frames_in_whatever_order_they_are_asked_for(
    ranges: list[list[int]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "numbers.mp4"
    pictures = np.stack([np.full((16, 32, 3), 6 * row, np.uint8) for row in range(37)])
    if not path.exists():
        encoder = Encoder(path, fps=15, size=(32, 16), flags=FRAGMENTED)
        encoder.write(pictures)
        encoder.finish()
    reader = VideoReader(path, fps=15)
    for start, stop in ranges:
        found = reader.read(start, stop).mean(axis=(1, 2, 3))
        assert np.array_equal(np.rint(found / 6), np.arange(start, stop))
    reader.close()


def test_a_cut_video_and_one_that_is_none_are_one_line(written: Path, tmp_path: Path) -> None:
    whole = episode_of(written).with_suffix(".front.mp4").read_bytes()
    for name, content in (("cut.mp4", whole[: len(whole) // 2]), ("none.mp4", b"not a video"), ("empty.mp4", b"")):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InputError, match=f"{name}: not a readable video"):
            VideoReader(tmp_path / name, fps=15).read(0, STEPS)
    with pytest.raises(InputError, match="no such file"):
        VideoReader(tmp_path / "gone.mp4", fps=15)


def test_list_of_other_files_is_no_video(tmp_path: Path) -> None:
    """FFmpeg interprets a text in this form as a list of videos, and opens them, wherever they are."""
    with open_dataset(tmp_path / "data") as dataset:
        list(Hdf5Writer(dataset, images="video").process(make_rendered(steps=STEPS)))
    mine = next((tmp_path / "data" / "episodes").glob("*.mp4"))
    (listed := tmp_path / "theirs.mp4").write_text(f"ffconcat version 1.0\nfile '{mine}'\n")
    assert VideoReader(mine, fps=15).frame(0).ndim == 3
    with pytest.raises(InputError):
        VideoReader(listed, fps=15).frame(0)


def write_blank(path: Path, *, pixels: str) -> Path:
    """Write a video of one blank image of 320 x 240, in a pixel format of FFmpeg."""
    with av.open(str(path), "w") as container:
        stream: Any = container.add_stream("libx264", rate=10)
        stream.width, stream.height, stream.pix_fmt = 320, 240, pixels
        for packet in (*stream.encode(av.VideoFrame(320, 240, pixels)), *stream.encode()):
            container.mux(packet)
    return path


def test_images_larger_than_declared_are_refused(tmp_path: Path) -> None:
    """A decoder keeps up to 17 images of the size in the stream, whatever the container declares."""
    path = write_blank(tmp_path / "a.mp4", pixels="yuv420p")
    with av.open(str(path), format="mp4", options=QUICK) as container:
        stream: Any = container.streams.video[0]
        limit_pixels(SimpleNamespace(codec_context=stream.codec_context, width=8, height=8))
        with pytest.raises(FFmpegError):
            next(container.decode(stream))


def test_images_of_too_many_pixels_are_refused(written: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decode, "_MOST_PIXELS", 100)
    path = next((written / "episodes").glob("*.mp4"))
    with pytest.raises(InputError, match="not a readable video: images of"):
        VideoReader(path, fps=15.0)


def test_decoders_together_have_a_limit(written: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader whose decoder was closed reads on, and returns the same images."""
    path = next((written / "episodes").glob("*.mp4"))
    first, second, third = (VideoReader(path, fps=15.0) for _ in range(3))
    images = first.read(0, 3)
    assert first._container and second._container
    monkeypatch.setattr(open_decoders, "_MOST_BYTES", 1)
    np.testing.assert_array_equal(second.read(0, 3), images)
    assert second._container and not first._container
    with third._turn:  # in use by another thread
        first.read(0, 1)
        second.read(0, 1)
        assert third._container and not first._container
    np.testing.assert_array_equal(first.read(0, 3), images)
    assert first._container and not second._container
    for reader in (first, second, third):
        reader.close()
    assert not any(held() in (first, second, third) for held in open_decoders._known._sizes)


def test_images_of_more_bytes_count_as_such(tmp_path: Path) -> None:
    reader = VideoReader(write_blank(tmp_path / "a.mp4", pixels="yuv444p10le"), fps=10.0)
    reader.frame(0)
    assert reader._image_bytes >= 6 * 320 * 240
    reader.close()
