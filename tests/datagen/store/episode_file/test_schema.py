from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nimbus.datagen.episode.observation import CameraFrames, Keypoints
from nimbus.datagen.episode.trajectory import EndEffectors
from nimbus.datagen.stages import Rendered
from nimbus.datagen.store.episode_file.read import EpisodeFile
from nimbus.datagen.store.episode_file.schema import FIELDS, TEXT, field_of, is_dtype, unify
from nimbus.datagen.store.verify import verify
from tests.support import ROOT
from tests.support.synthetic import make_labels, make_rendered, write_dataset

DOCUMENT = ROOT / "docs" / "dataset.md"


def test_the_document_lists_every_dataset_as_it_is_written() -> None:
    rows = [line for line in DOCUMENT.read_text().splitlines() if line.startswith("| `")]
    described = [
        f"| `{field.path}` | {' '.join(map(str, field.dims)) or 'one'} | {field.dtype} | {field.units} "
        f"| {field.description} |"
        for field in FIELDS
    ]
    first = rows.index(described[0])
    assert rows[first : first + len(described)] == described


def test_every_dataset_of_a_file_has_a_row_and_every_row_occurs(tmp_path: Path) -> None:
    item = make_rendered()
    trajectory = replace(item.trajectory, signals={"clearance": np.full(item.trajectory.time.shape, 0.4)})
    (stored,) = write_dataset(tmp_path / "data", [replace(item, trajectory=trajectory)], images="both")
    with EpisodeFile(tmp_path / "data" / stored.path) as episode:
        found = [field_of(path) for path in episode.paths()]
    assert None not in found
    asked_for = {field.path for field in FIELDS if field.since == 5} | {"observations/flow/*"}
    assert {field.path for field in found if field} | asked_for == {field.path for field in FIELDS}


def test_flow_is_stored_where_it_was_made(tmp_path: Path) -> None:
    def with_flow(frames: CameraFrames) -> CameraFrames:
        flow = np.random.default_rng(0).normal(size=(*frames.depth.shape, 2)).astype(np.float16)
        return replace(frames, flow=np.where(frames.depth[..., None] > 0, flow, np.float16("nan")))

    item = make_rendered()
    seen = [
        replace(chunk, cameras={name: with_flow(frames) for name, frames in chunk.cameras.items()})
        for chunk in item.observations
    ]
    (stored,) = write_dataset(tmp_path / "data", [replace(item, observations=iter(seen))])
    with EpisodeFile(tmp_path / "data" / stored.path) as episode:
        for name, frames in seen[0].cameras.items():
            found = episode.frames(name, 0, len(frames.depth)).flow
            assert found is not None
            np.testing.assert_array_equal(found, frames.flow)


def with_annotations() -> Rendered:
    """Return a synthetic episode whose cameras store keypoints, with poses of one tool."""
    item = make_rendered()
    keypoints = Keypoints(
        names=("items_0.top", "items_1.top"),
        bodies=("items_0", "items_1"),
        instances=np.array([1, 2], np.uint8),
        positions=np.array([[0, 0, 0.05], [0, 0, 0.04]]),
    )
    rng = np.random.default_rng(0)

    def annotate(frames: CameraFrames) -> CameraFrames:
        count = len(frames.depth)
        return replace(
            frames,
            keypoints_3d=rng.normal(size=(count, 2, 3)).astype(np.float32),
            keypoints_2d=rng.normal(size=(count, 2, 2)).astype(np.float32),
            keypoint_visibility=np.full((count, 2), 2, np.uint8),
        )

    seen = [
        replace(chunk, cameras={name: annotate(frames) for name, frames in chunk.cameras.items()})
        for chunk in item.observations
    ]
    cameras = tuple(
        replace(camera, modalities=(*camera.modalities, "keypoints")) for camera in item.layout.visual.cameras
    )
    tools = EndEffectors(
        names=("arm",), positions=rng.normal(size=(20, 1, 3)), wxyz=np.tile([1.0, 0, 0, 0], (20, 1, 1))
    )
    return replace(
        item,
        layout=replace(item.layout, visual=replace(item.layout.visual, cameras=cameras)),
        labels=replace(make_labels(), keypoints=keypoints),
        trajectory=replace(item.trajectory, end_effectors=tools),
        observations=iter(seen),
    )


def test_annotations_come_back_as_they_were_stored(tmp_path: Path) -> None:
    item = with_annotations()
    (stored,) = write_dataset(tmp_path / "data", [item])
    with EpisodeFile(tmp_path / "data" / stored.path) as episode:
        assert episode.modalities("front")[-1] == "keypoints"
        assert episode.labels and episode.labels.keypoints and item.labels and item.labels.keypoints
        assert episode.labels.keypoints.names == item.labels.keypoints.names
        np.testing.assert_array_equal(episode.labels.keypoints.positions, item.labels.keypoints.positions)
        frames, tools = episode.frames("front", 0, 3), episode.trajectory().end_effectors
        assert frames.keypoints_2d is not None and frames.keypoints_2d.shape == (3, 2, 2)
        assert tools is not None and item.trajectory.end_effectors is not None
        np.testing.assert_array_equal(tools.positions, item.trajectory.end_effectors.positions)
    assert not [*verify(tmp_path / "data").problems]


@pytest.mark.parametrize("path", ["observations/keypoint_visibility/front", "labels/keypoint_names"])
def test_verify_finds_a_missing_annotation(tmp_path: Path, path: str) -> None:
    (stored,) = write_dataset(tmp_path / "data", [with_annotations()])
    with h5py.File(tmp_path / "data" / stored.path, "r+") as file:
        del file[path]
    assert any(f"{path}: missing" in line for line in verify(tmp_path / "data").problems)


def test_a_size_means_the_same_everywhere_in_a_file_and_pixels_differ_between_cameras() -> None:
    sizes: dict[str, int] = {}
    action, images, qpos = (field_of(path) for path in ("action", "observations/images/x", "observations/qpos"))
    assert action and images and qpos
    assert unify(action, (20, 8), sizes)
    assert not unify(qpos, (21, 9), sizes)
    assert unify(images, (20, 48, 64, 3), sizes, scope="front")
    assert unify(images, (20, 24, 32, 3), sizes, scope="wrist")
    assert not unify(images, (20, 24, 64, 3), sizes, scope="front")
    assert not unify(images, (20, 48, 64, 4), sizes, scope="front")


@given(dims=st.lists(st.integers(0, 4), max_size=5).map(tuple))
def test_a_shape_with_another_number_of_axes_never_fits(dims: tuple[int, ...]) -> None:
    action = field_of("action")
    assert action is not None
    assert unify(action, dims, {}) == (len(dims) == 2)


@pytest.mark.parametrize("path", ["rewards", "observations", "observations/images", "labels/colour", ""])
def test_a_path_without_a_row_has_no_field(path: str) -> None:
    assert field_of(path) is None


def test_types_are_exact() -> None:
    action, names = field_of("action"), field_of("names/joints")
    assert action and names and names.dtype == TEXT
    assert is_dtype(action, np.dtype("float64")) and not is_dtype(action, np.dtype("float32"))
    assert is_dtype(names, np.dtype("S7")) and not is_dtype(names, np.dtype("uint8"))
