"""Optical flow from depth and poses: it leads to the same point of the same object."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nimbus.datagen.episode.layout import Camera
from nimbus.datagen.episode.observation import CameraFrames
from nimbus.datagen.geometry.cameras import intrinsics
from nimbus.datagen.geometry.transforms import make_transform
from nimbus.datagen.render.camera_model.flow import flow_to_next, optical_flow
from nimbus.datagen.render.camera_model.lens import Lens
from nimbus.datagen.usd.stack_layout import StackLayout
from tests.support.one_world import render_as_one_world, visual_assets, write
from tests.support.render_scene import layout, states

WIDTH, HEIGHT = 96, 72
CAMERAS = layout(width=WIDTH, height=HEIGHT).visual.cameras
NAMES, POSITIONS, WXYZ = states()
STEPS = (1, 2)


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[tuple[CameraFrames, np.ndarray]]]:
    """Return, by camera, the images of two steps, and the body of each pixel."""
    folder = tmp_path_factory.mktemp("flow")
    assets = visual_assets(folder / "assets")
    alone = StackLayout(spacing=100.0, far=100.0, origins=np.zeros((1, 3)))
    sizes = {camera.name: (WIDTH, HEIGHT) for camera in CAMERAS}
    found: dict[str, list] = {camera.name: [] for camera in CAMERAS}
    for step in STEPS:
        path = Path(folder) / f"{step}.usda"
        frames, names = render_as_one_world(path, write(path, assets, alone, CAMERAS, [step]), assets, sizes)
        rows = np.array([NAMES.index(name) if name in NAMES else -1 for name in names], dtype=np.int16)
        for camera in CAMERAS:
            shown = frames[f"0/{camera.name}"]
            found[camera.name].append((shown, rows[shown.instance]))
    return found


def flows(seen, camera: Camera) -> tuple[np.ndarray, np.ndarray]:
    """Return the flow (H, W, 2) from the first step to the second, and back."""

    def at(step: int) -> tuple[np.ndarray, np.ndarray]:
        return POSITIONS[[step]], WXYZ[[step]]

    (first, body), (second, other) = seen[camera.name]
    there = flow_to_next(first, body, camera, NAMES, at(STEPS[0]), at(STEPS[1]))
    return there[0], flow_to_next(second, other, camera, NAMES, at(STEPS[1]), at(STEPS[0]))[0]


@pytest.mark.parametrize("camera", CAMERAS, ids=[camera.name for camera in CAMERAS])
def test_flow_leads_to_the_same_thing_and_back(seen, camera: Camera):
    (_, body), (_, other) = seen[camera.name]
    there, back = flows(seen, camera)
    u, v = np.meshgrid(np.arange(WIDTH), np.arange(HEIGHT))
    column, row = np.floor(u + 0.5 + there[..., 0]), np.floor(v + 0.5 + there[..., 1])
    with np.errstate(invalid="ignore"):
        inside = (column >= 0) & (column < WIDTH) & (row >= 0) & (row < HEIGHT) & (np.abs(there).max(axis=-1) > 0.5)
    assert inside.sum() > 50, "something moves"
    place = row[inside].astype(int), column[inside].astype(int)
    same = other[0][place] == body[0][inside]
    assert same.mean() > 0.8
    unmoved = other[0][inside] == body[0][inside]
    assert same.mean() > unmoved.mean()
    returned = there[inside].astype(float) + back[place].astype(float)
    assert np.median(np.linalg.norm(returned[same], axis=-1)) < 0.5


def test_what_stands_still_before_a_still_camera_does_not_flow(seen):
    front = next(camera for camera in CAMERAS if not camera.mount)
    (frames, body), _ = seen[front.name]
    there, _ = flows(seen, front)
    still = (body[0] == -1) & (frames.depth[0] > 0)
    assert still.sum() > 500
    np.testing.assert_allclose(there[still], 0.0, atol=1e-3)
    assert np.isnan(there[frames.depth[0] == 0]).all()


def test_the_last_step_of_an_episode_has_no_flow(seen):
    camera = CAMERAS[0]
    (frames, body), _ = seen[camera.name]
    nothing = POSITIONS[:0], WXYZ[:0]
    assert np.isnan(flow_to_next(frames, body, camera, NAMES, (POSITIONS[[1]], WXYZ[[1]]), nothing)).all()


@given(seed=st.integers(0, 2**31))
def test_flow_is_where_the_moved_point_is_projected_to(seed: int):
    rng = np.random.default_rng(seed)
    camera = Camera(name="a", mount="", position=(0, 0, 0), wxyz=(1, 0, 0, 0), vertical_fov=0.9, width=5, height=4)
    matrix = intrinsics(camera)

    def some_pose() -> np.ndarray:
        wxyz = rng.normal(size=4) * 0.05 + (1, 0, 0, 0)
        return make_transform(rng.uniform(-0.05, 0.05, 3), wxyz / np.linalg.norm(wxyz))

    eyes, bodies = (
        [some_pose()[None] for _ in range(2)],
        [np.stack([some_pose() for _ in range(3)])[None] for _ in "ab"],
    )
    depth = rng.uniform(0.5, 2.0, (1, 4, 5)).astype(np.float32)
    body = rng.integers(-1, 3, (1, 4, 5)).astype(np.int16)
    flow = optical_flow(depth, body, matrix, eyes[0], eyes[1], bodies[0], bodies[1])
    for row, column in np.ndindex(4, 5):
        pixel = np.array([column + 0.5, row + 0.5, 1.0])
        point = eyes[0][0] @ np.append(np.linalg.inv(matrix) @ pixel * depth[0, row, column], 1.0)
        if (number := body[0, row, column]) >= 0:
            point = bodies[1][0, number] @ np.linalg.inv(bodies[0][0, number]) @ point
        x, y, z = matrix @ (np.linalg.inv(eyes[1][0]) @ point)[:3]
        known = np.array([x / z, y / z]) - pixel[:2]
        np.testing.assert_allclose(flow[0, row, column], known, rtol=2e-3, atol=2e-3)


def test_through_a_lens_flow_leads_between_bent_places():
    camera = Camera(
        name="a",
        mount="",
        position=(0, 0, 0),
        wxyz=(1, 0, 0, 0),
        vertical_fov=0.9,
        width=64,
        height=48,
        distortion=(-0.2, 0.0),
    )
    lens = Lens(camera)
    wide, shape = intrinsics(lens.pinhole), (2, 48, 64)
    flow = np.zeros((*shape, 2), np.float16)
    flow[1, ..., 0] = 4.0
    frames = CameraFrames(
        rgb=np.zeros((*shape, 3), np.uint8),
        depth=np.ones(shape, np.float32),
        instance=np.zeros(shape, np.uint8),
        semantic=np.zeros(shape, np.uint8),
        normals=np.zeros((*shape, 3), np.int8),
        boxes_2d=np.full((2, 1, 4), np.nan, np.float32),
        visibility=np.full((2, 1), np.nan, np.float32),
        intrinsics=wide,
        world_T_camera=np.tile(np.eye(4), (2, 1, 1)),
        flow=flow,
    )
    bent = lens.bend(frames).flow
    assert bent is not None
    assert (bent[0] == 0).all()
    scale = intrinsics(camera)[0, 0] / wide[0, 0]
    np.testing.assert_allclose(bent[1, 24, 31], (4.0 * scale, 0.0), rtol=0.02, atol=0.02)
    assert bent[1, 24, 62, 0] < 0.9 * bent[1, 24, 31, 0], "a barrel squeezes what is outside"
