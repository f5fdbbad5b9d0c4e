from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from nimbus.datagen.episode.observation import Observation
from nimbus.datagen.episode.trajectory import StartState, Trajectory
from nimbus.datagen.errors import InputError
from nimbus.datagen.registry import lookup
from nimbus.datagen.store.background import Background
from nimbus.datagen.store.commit import StagedEpisode
from nimbus.datagen.store.episode_file.encode import EpisodeEncoder, millimetres
from nimbus.datagen.store.episode_file.read import EpisodeFile
from nimbus.datagen.store.ledger.attempt import Attempt
from nimbus.datagen.store.ledger.ledger import Ledger
from nimbus.datagen.store.verify import dataset_hashes, verify
from nimbus.datagen.store.writer import Hdf5Writer
from tests.support.staging import staged
from tests.support.synthetic import (
    failure,
    make_labels,
    make_layout,
    make_observations,
    make_rendered,
    make_trajectory,
    open_dataset,
    write_dataset,
)


def assert_equal(left: Any, right: Any) -> None:
    """Check that all nested values have equal types and are equal, arrays bit by bit."""
    assert type(left) is type(right)
    if is_dataclass(left):
        for item in fields(left):
            assert_equal(getattr(left, item.name), getattr(right, item.name))
    elif isinstance(left, np.ndarray):
        assert left.dtype == right.dtype and left.shape == right.shape and left.tobytes() == right.tobytes()
    elif isinstance(left, dict):
        assert left.keys() == right.keys()
        for key in left:
            assert_equal(left[key], right[key])
    elif isinstance(left, tuple):
        assert len(left) == len(right)
        for one, other in zip(left, right, strict=True):
            assert_equal(one, other)
    else:
        assert left == right


def test_an_episode_comes_back_exactly_as_it_was_written(tmp_path: Path) -> None:
    item = make_rendered()
    (stored,) = write_dataset(tmp_path / "data", [item])
    with EpisodeFile(tmp_path / "data" / stored.path) as episode:
        assert_equal(episode.trajectory(), item.trajectory)
        assert_equal(episode.layout(), item.layout)
        assert_equal(episode.labels, item.labels)
        assert_equal(episode.provenance, item.scene.provenance)
        assert episode.episode_id == item.layout.key.id
        assert episode.instruction == item.layout.visual.instruction


def test_images_and_their_labels_come_back_with_depth_in_whole_millimetres(tmp_path: Path) -> None:
    (stored,) = write_dataset(tmp_path / "data", [make_rendered()])
    with EpisodeFile(tmp_path / "data" / stored.path) as episode:
        assert episode.cameras == ("front", "wrist")
        for observation in make_observations(20):
            for name, expected in observation.cameras.items():
                found = episode.frames(name, observation.start, observation.start + observation.step_count)
                rounded = millimetres(expected.depth).astype(np.float32) / np.float32(1000)
                assert np.abs(found.depth - expected.depth).max() <= 0.000501
                assert_equal(replace(found, normals=found.normals.copy()), replace(expected, depth=rounded))


def test_only_a_cameras_modalities_are_stored(tmp_path: Path) -> None:
    item = make_rendered()
    asked = ("rgb", "depth")
    cameras = [
        replace(camera, modalities=asked) if camera.name == "front" else camera for camera in item.layout.visual.cameras
    ]
    layout = replace(item.layout, visual=replace(item.layout.visual, cameras=tuple(cameras)))
    observations = (
        replace(chunk, cameras=chunk.cameras | {"front": chunk.cameras["front"].only(asked)})
        for chunk in make_observations(20)
    )
    folder = tmp_path / "data"
    (stored,) = write_dataset(folder, [replace(item, layout=layout, observations=observations)])
    with EpisodeFile(folder / stored.path) as episode:
        assert episode.modalities("front") == asked
        assert len(episode.modalities("wrist")) == 7
        frames = episode.frames("front", 3, 5)
        assert len(frames.rgb) == len(frames.depth) == 2
        assert frames.instance.shape == (0, 48, 64) and frames.normals.shape == (0, 48, 64, 3)
        assert frames.boxes_2d.shape == (0, 3, 4) and frames.visibility.shape == (0, 3)
    assert verify(folder).problems == ()


@settings(max_examples=25)
@given(data=st.data(), steps=st.integers(1, 6), parts=st.integers(0, 3))
def test_any_trajectory_comes_back_bit_for_bit(tmp_path: Path, data: st.DataObject, steps: int, parts: int) -> None:
    numbers = st.floats(width=64, allow_nan=True, allow_infinity=True)
    text = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=12)
    base = make_trajectory(steps=max(steps, 2))
    segments = tuple(
        replace(base.segments[0], start=0, stop=1, skill=data.draw(text), target=data.draw(text)) for _ in range(parts)
    )
    trajectory = replace(
        base,
        rate=data.draw(st.floats(1, 1e4)),
        joint_positions=data.draw(arrays(np.float64, base.joint_positions.shape, elements=numbers)),
        actions=data.draw(arrays(np.float64, base.actions.shape, elements=numbers)),
        start=StartState(
            joint_positions=data.draw(arrays(np.float64, st.integers(0, 5), elements=numbers)),
            joint_velocities=np.zeros(0),
        ),
        body_names=tuple(data.draw(st.lists(text, min_size=4, max_size=4))),
        segments=segments,
        contacts={},
        plan_statistics={"plan_time": np.zeros(parts)},
        outcome=replace(base.outcome, detail=data.draw(text)),
    )
    assert_equal(_through_file(tmp_path / "episode.hdf5", trajectory), trajectory)


def _through_file(path: Path, trajectory: Trajectory) -> Trajectory:
    path.unlink(missing_ok=True)
    encoder = EpisodeEncoder(path)
    encoder.episode(make_layout(), trajectory, None, make_rendered().scene.provenance)
    encoder.close()
    encoder.check()
    with EpisodeFile(path) as episode:
        assert episode.labels is None
        return episode.trajectory()


def test_plain_h5py_reads_what_aloha_readers_expect(tmp_path: Path) -> None:
    (stored,) = write_dataset(tmp_path / "data", [make_rendered()])
    with h5py.File(tmp_path / "data" / stored.path) as file:
        assert bool(file.attrs["sim"]) is True
        assert file["/action"].shape == (20, 8)  # pyright: ignore[reportAttributeAccessIssue]
        assert file["/observations/qpos"].shape == file["/observations/qvel"].shape == (20, 9)  # pyright: ignore[reportAttributeAccessIssue]
        for camera in ("front", "wrist"):
            images = file[f"/observations/images/{camera}"]
            assert isinstance(images, h5py.Dataset)
            assert (images.shape, images.dtype) == ((20, 48, 64, 3), np.uint8)
            assert (images.chunks, images.compression) == ((1, 48, 64, 3), "gzip")


def test_every_dataset_says_its_units_and_what_it_is(tmp_path: Path) -> None:
    (stored,) = write_dataset(tmp_path / "data", [make_rendered()])
    with EpisodeFile(tmp_path / "data" / stored.path) as episode:
        paths = list(episode.paths())
        assert len(paths) > 30
        for path in paths:
            assert episode[path].attrs["description"], path
            assert "units" in episode[path].attrs, path


def test_the_same_episode_twice_gives_the_same_bytes(tmp_path: Path) -> None:
    hashes = set()
    for name in ("first", "second"):
        (stored,) = write_dataset(tmp_path / name, [make_rendered()])
        hashes.add(hashlib.sha256((tmp_path / name / stored.path).read_bytes()).hexdigest())
    assert len(hashes) == 1


def test_the_skill_of_each_step_is_a_row_of_the_segment_table(tmp_path: Path) -> None:
    (stored,) = write_dataset(tmp_path / "data", [make_rendered()])
    with EpisodeFile(tmp_path / "data" / stored.path) as episode:
        step = episode.array("skills/step")
        skills = [episode.texts("skills/skill")[row] if row >= 0 else None for row in step]
    assert skills == ["pick"] * 10 + ["place"] * 9 + [None]


def test_a_failed_attempt_leaves_a_ledger_row_and_no_file(tmp_path: Path) -> None:
    (stored,) = write_dataset(tmp_path / "data", [make_rendered(outcome=failure())])
    assert stored.path == "" and not list((tmp_path / "data" / "episodes").iterdir())
    ledger = Ledger(tmp_path / "data", read_only=True)
    (attempt,) = ledger.attempts()
    ledger.close()
    assert (attempt.success, attempt.phase, attempt.reason) == (False, "pick items_0", "no_ik")


def test_stored_carries_times_of_all_stages_and_the_wait_for_the_disk(tmp_path: Path) -> None:
    item = make_rendered()
    item.times["render"] = 7.0
    (stored,) = write_dataset(tmp_path / "data", [item])
    assert stored.times.keys() == {"plan", "render", "store", "store_wait"}
    assert 7.0 < stored.times["render"] < 8.0
    assert 0 < stored.times["store"] < 5 and stored.times["store_wait"] >= 0
    assert stored.byte_count == (tmp_path / "data" / stored.path).stat().st_size


def burn(seconds: float) -> None:
    """Use CPU time."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def test_what_renders_lazily_takes_renders_time_and_not_the_stores(tmp_path: Path) -> None:
    def observations() -> Iterator[Observation]:
        for observation in make_observations(20, chunk=10):
            burn(0.2)
            yield observation

    (stored,) = write_dataset(tmp_path / "data", [make_rendered(observations=observations(), times={"render": 1.0})])
    assert 1.4 < stored.times["render"] < 1.6
    assert stored.times["store"] < 0.3


def test_an_error_while_images_are_made_is_renders(tmp_path: Path) -> None:
    def observations() -> Iterator[Observation]:
        yield next(make_observations(20))
        raise RuntimeError("out of light")

    item = make_rendered(observations=observations())
    with pytest.raises(RuntimeError, match="out of light") as caught:
        write_dataset(tmp_path / "data", [item])
    assert caught.value.__notes__ == [f"in stage render, {item.label}"]


def test_images_are_asked_for_one_chunk_at_a_time_and_few_wait(tmp_path: Path) -> None:
    asked: list[int] = []
    waiting: list[int] = []

    with open_dataset(tmp_path / "data") as dataset:
        writer = Hdf5Writer(dataset, queue_length=2)

        def observations() -> Iterator[Observation]:
            for observation in make_observations(40, chunk=4):
                asked.append(observation.start)
                assert isinstance(writer._io, Background)
                waiting.append(sum(is_large for _, is_large in writer._io._running))
                yield observation

        assert not asked
        list(writer.process(replace(make_rendered(steps=40), observations=observations())))
        writer.close()
    assert asked == list(range(0, 40, 4))
    assert max(waiting) <= 2


def test_an_error_of_the_renderer_comes_through_and_leaves_nothing(tmp_path: Path) -> None:
    def broken() -> Iterator[Observation]:
        yield from make_observations(8)
        raise FileNotFoundError("a texture is gone")

    with open_dataset(tmp_path / "data") as dataset:
        writer = Hdf5Writer(dataset)
        with pytest.raises(FileNotFoundError, match="a texture is gone"):
            list(writer.process(replace(make_rendered(), observations=broken())))
        assert not list(dataset.stage.iterdir()) and not list(dataset.episodes.iterdir())
        assert not dataset.ledger.attempts()
        (stored,) = writer.process(make_rendered())
        writer.close()
    assert (tmp_path / "data" / stored.path).is_file()


@pytest.mark.parametrize(
    ("images", "message"),
    [
        (lambda: make_observations(12), "cover 12 of 20"),
        (lambda: iter([*make_observations(20)][1:]), "start at step 8"),
    ],
)
def test_images_that_miss_steps_are_a_bug_that_shows(tmp_path: Path, images: Any, message: str) -> None:
    with open_dataset(tmp_path / "data") as dataset:
        writer = Hdf5Writer(dataset)
        with pytest.raises(ValueError, match=message):
            list(writer.process(replace(make_rendered(), observations=images())))
        writer.close()
        assert not list(dataset.episodes.iterdir())


def test_a_stored_episode_is_never_overwritten(tmp_path: Path) -> None:
    (stored,) = write_dataset(tmp_path / "data", [make_rendered()])
    before = (tmp_path / "data" / stored.path).read_bytes()
    with open_dataset(tmp_path / "data") as dataset:
        writer = Hdf5Writer(dataset)
        assert list(writer.process(replace(make_rendered(), trajectory=make_trajectory(5)))) == []
        writer.close()
        assert dataset.stale == 1 and not list(dataset.stage.iterdir())
    assert (tmp_path / "data" / stored.path).read_bytes() == before
    assert verify(tmp_path / "data").problems == ()


def test_depth_beyond_the_range_is_the_largest_number_not_a_wrapped_one() -> None:
    depth = np.array([[0.0, 0.0004, 1.2346, 65.535, 1000.0]], dtype=np.float32)
    assert millimetres(depth).tolist() == [[0, 0, 1235, 65535, 65535]]


def test_a_pipeline_file_finds_the_writer_by_name() -> None:
    assert lookup("store", "hdf5") is Hdf5Writer
    assert make_labels().instance_names[0] == "background"


def test_with_overlap_the_end_of_an_episode_goes_on_behind_and_the_next_one_starts(tmp_path: Path) -> None:
    with open_dataset(tmp_path / "data") as dataset:
        gate, commit = threading.Event(), dataset.commit

        def slow(staged: Sequence[StagedEpisode]) -> list[Attempt]:
            assert threading.current_thread() is not threading.main_thread()
            assert gate.wait(10)
            return commit(staged)

        dataset.commit = slow
        writer = Hdf5Writer(dataset, overlap=True, queue_length=2)
        assert not writer.pending()
        assert list(writer.process(make_rendered(0))) == []
        assert writer.pending() and not dataset.ledger.attempts()
        rendered: list[int] = []

        def observations() -> Iterator[Observation]:
            for observation in make_observations(20, chunk=2, seed=1):
                rendered.append(observation.start)
                if len(rendered) == 2:
                    gate.set()
                yield observation

        assert list(writer.process(make_rendered(1, observations=observations()))) == []
        (failed,) = writer.process(make_rendered(2, outcome=failure()))
        assert failed.path == ""
        writer.close()
        assert not writer.pending()
        assert [row.idx for row in dataset.ledger.stored()] == [0, 1]
        assert all(row.times["store_wait"] >= 0 < row.times["store"] for row in dataset.ledger.stored())
        assert rendered == list(range(0, 20, 2))
    write_dataset(tmp_path / "plain", [make_rendered(index) for index in range(2)])
    assert dataset_hashes(tmp_path / "data") == dataset_hashes(tmp_path / "plain")
    assert verify(tmp_path / "data").problems == ()


def test_with_overlap_the_queue_stays_bounded_over_episodes(tmp_path: Path) -> None:
    with open_dataset(tmp_path / "data") as dataset:
        writer, waiting = Hdf5Writer(dataset, overlap=True, queue_length=2), []

        def observations() -> Iterator[Observation]:
            for observation in make_observations(20, chunk=2):
                assert isinstance(writer._io, Background)
                waiting.append(sum(is_large for _, is_large in writer._io._running))
                yield observation

        for index in range(3):
            list(writer.process(make_rendered(index, observations=observations())))
        writer.close()
    assert max(waiting) <= 2 and verify(tmp_path / "data").episode_count == 3


@pytest.mark.parametrize("ask", ["process", "pending", "close"])
def test_with_overlap_an_error_behind_is_raised_once_by_the_next_call_and_names_its_episode(
    tmp_path: Path, ask: str
) -> None:
    with open_dataset(tmp_path / "data") as dataset:
        broken, good = make_rendered(0, observations=make_observations(12)), make_rendered(1)
        writer = Hdf5Writer(dataset, overlap=True)
        assert list(writer.process(broken)) == []
        with pytest.raises(ValueError, match="cover 12 of 20") as caught:
            if ask == "process":
                wait_for(writer)
                list(writer(iter([good])))
            elif ask == "pending":
                while writer.pending():
                    time.sleep(0.001)
            else:
                writer.close()
        assert caught.value.__notes__ == [f"in stage store, {broken.label}"]
        assert not list(dataset.stage.iterdir()) and not dataset.ledger.attempts()
        if ask != "close":
            list(writer.process(good))
            writer.close()
            assert len(dataset.ledger.stored()) == 1


def wait_for(writer: Hdf5Writer) -> None:
    """Wait until nothing runs in the background, without reading the result."""
    assert isinstance(writer._io, Background)
    while not all(job.done() for job, _ in writer._io._running):
        time.sleep(0.001)


def test_synchronous_each_chunk_is_encoded_before_the_next_is_rendered(tmp_path: Path) -> None:
    with open_dataset(tmp_path / "data") as dataset:
        writer, sizes, threads = Hdf5Writer(dataset, synchronous=True), [], threading.active_count()

        def observations() -> Iterator[Observation]:
            for observation in make_observations(20, chunk=4):
                sizes.append(sum(path.stat().st_size for path in dataset.stage.iterdir()))
                yield observation

        (stored,) = writer.process(make_rendered(0, observations=observations()))
        assert threading.active_count() == threads and not writer.pending()
        writer.close()
        assert sizes == sorted(sizes) and sizes[0] < sizes[-1]
        assert stored.times["store_wait"] == 0 and 0 < stored.times["store"] < 5
    write_dataset(tmp_path / "plain", [make_rendered(0)])
    assert dataset_hashes(tmp_path / "data") == dataset_hashes(tmp_path / "plain")


def test_images_of_a_failed_attempt_are_thrown_away_and_their_time_counts(tmp_path: Path) -> None:
    def observations() -> Iterator[Observation]:
        for observation in make_observations(20, chunk=10):
            burn(0.1)
            yield observation

    item = make_rendered(0, outcome=failure(), observations=observations(), times={"render": 1.0})
    (stored,) = write_dataset(tmp_path / "data", [item])
    assert 1.2 < stored.times["render"] < 1.3 and stored.times["store"] < 0.1 and stored.path == ""
    assert not list((tmp_path / "data" / "episodes").iterdir())


def test_only_what_is_new_is_told_about_the_dataset(tmp_path: Path) -> None:
    with open_dataset(tmp_path / "data") as dataset:
        first, second = staged(dataset, 0, 1)
        assert first.learned is not None and second.learned is not None
        dataset.commit([first])
        (third,) = staged(dataset, 2)
        assert third.learned is None


def test_damage_found_by_a_question_for_a_name_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """HDF5 reads the object to answer, and raises an error of its own for a damaged one."""
    (stored,) = write_dataset(tmp_path / "data", [make_rendered(0)])

    def damaged(*_: object) -> bool:
        raise RuntimeError("Can't get deprecated info for object")

    with EpisodeFile(tmp_path / "data" / stored.path) as episode:
        monkeypatch.setattr(h5py.Group, "__contains__", damaged)
        with pytest.raises(InputError, match="cannot be read: labels: Can't get deprecated info"):
            _ = episode.labels
