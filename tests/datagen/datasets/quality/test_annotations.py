"""Checks of annotations on a small rendered episode, intact and with planted faults."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nimbus.datagen.datasets.quality.annotations import check_annotations
from nimbus.datagen.datasets.quality.checks import check
from nimbus.datagen.datasets.quality.view import open_view
from nimbus.datagen.episode.layout import DEFAULT_MODALITIES
from nimbus.datagen.episode.observation import CameraFrames, Labels, Observation
from nimbus.datagen.render.camera_model.point_cloud import point_cloud
from nimbus.datagen.render.scene_renderer import SceneRenderer
from nimbus.datagen.store.episode_file.read import EpisodeFile
from tests.support.render_scene import STEPS, layout, stage_and_robot, states
from tests.support.synthetic import make_rendered, write_dataset

Change = Callable[[CameraFrames], CameraFrames]
CAMERAS = tuple(
    replace(camera, modalities=(*DEFAULT_MODALITIES, "flow", "keypoints"), distortion=lens)
    for camera, lens in zip(layout(width=160, height=120).visual.cameras, ((0.0, 0.0), (-0.1, 0.0)), strict=True)
)


@pytest.fixture(scope="module")
def rendered() -> tuple[dict[str, CameraFrames], Labels]:
    plain, renderer = layout(), SceneRenderer(*stage_and_robot(), stack=STEPS)
    renderer.load(replace(plain, visual=replace(plain.visual, cameras=CAMERAS)))
    names, positions, wxyz = states()
    return renderer.render(names, positions, wxyz, following=(positions[1:], wxyz[1:])), renderer.labels


def store(
    folder: Path, rendered: tuple[dict[str, CameraFrames], Labels], change: Change = lambda frames: frames
) -> Path:
    """Write a dataset with the rendered images and return its only file."""
    frames, labels = rendered
    item = make_rendered(steps=STEPS)
    seen = Observation(start=0, cameras={name: change(one) for name, one in frames.items()})
    visual = replace(item.layout.visual, cameras=CAMERAS)
    item = replace(item, labels=labels, layout=replace(item.layout, visual=visual), observations=iter([seen]), times={})
    (stored,) = write_dataset(folder, [item])
    return folder / stored.path


def findings(path: Path) -> list[tuple[str, str]]:
    with EpisodeFile(path) as episode:
        return [(one.check, one.where) for one in check_annotations(episode, "episode 0")]


def negate_flow(frames: CameraFrames) -> CameraFrames:
    assert frames.flow is not None
    return replace(frames, flow=-frames.flow)


def shift_keypoints(frames: CameraFrames) -> CameraFrames:
    assert frames.keypoints_2d is not None
    return replace(frames, keypoints_2d=np.clip(frames.keypoints_2d + 12.0, 0, 119).astype(np.float32))


def test_true_annotations_have_no_findings(tmp_path: Path, rendered) -> None:
    path = store(tmp_path / "data", rendered)
    assert findings(path) == []


@pytest.mark.parametrize(
    ("change", "expected"), [(negate_flow, "flow"), (shift_keypoints, "keypoints")], ids=["flow", "keypoints"]
)
def test_planted_annotations_are_found(tmp_path: Path, rendered, change: Change, expected: str) -> None:
    path = store(tmp_path / "data", rendered, change)
    assert {check for check, _ in findings(path)} == {expected}
    assert expected in {finding.check for finding in check(open_view(tmp_path / "data"))}


def test_a_point_cloud_lies_on_the_scene(tmp_path: Path, rendered) -> None:
    """The table's points lie in its plane, through a lens too; colors and instances belong to the same pixels."""
    frames, labels = rendered
    table = labels.instance_names.index("table")
    for camera in CAMERAS:
        seen = frames[camera.name]
        cloud = point_cloud(seen, camera, step=2, stride=2)
        assert len(cloud.points) == len(cloud.colors) == len(cloud.instance)
        flat = seen.normals[2, ::2, ::2][seen.depth[2, ::2, ::2] > 0][:, 2] == 127
        top = (cloud.instance == table) & flat
        assert top.sum() > 100
        np.testing.assert_allclose(cloud.points[top, 2], 0.0, atol=2e-3)


def test_a_camera_without_depth_has_no_cloud(rendered) -> None:
    frames = rendered[0]["front"].only(("rgb",))
    with pytest.raises(ValueError, match="stores no depth"):
        point_cloud(frames, CAMERAS[0])
