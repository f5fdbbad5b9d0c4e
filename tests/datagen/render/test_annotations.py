"""Flow and keypoints of the default renderer: laws between geometry, depth, masks and motion."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from nimbus.datagen.episode.layout import DEFAULT_MODALITIES, Layout
from nimbus.datagen.episode.observation import CameraFrames
from nimbus.datagen.geometry.transforms import make_transform
from nimbus.datagen.objects.libraries import open_library
from nimbus.datagen.render.camera_model.keypoint_places import HIDDEN, VISIBLE, judge_visibility
from nimbus.datagen.render.keypoints import find_keypoints, surface_points
from nimbus.datagen.render.scene_renderer import SceneRenderer
from tests.support.render_scene import STEPS, layout, stage_and_robot, states

WIDTH, HEIGHT = 160, 120
NAMES, POSITIONS, WXYZ = states()


def annotated(*, distortion: tuple[float, float] = (0.0, 0.0)) -> Layout:
    """Return the small scene, with every modality of both cameras."""
    plain = layout(width=WIDTH, height=HEIGHT)
    cameras = tuple(
        replace(camera, modalities=(*DEFAULT_MODALITIES, "flow", "keypoints"), distortion=distortion)
        for camera in plain.visual.cameras
    )
    return replace(plain, visual=replace(plain.visual, cameras=cameras))


def show(shown: Layout, *, stack: int = STEPS) -> tuple[dict[str, CameraFrames], SceneRenderer]:
    """Render all steps in stacks."""
    renderer = SceneRenderer(*stage_and_robot(), stack=stack)
    renderer.load(shown)
    found: dict[str, list[CameraFrames]] = {}
    for start in range(0, STEPS, stack):
        here, later = slice(start, start + stack), slice(start + 1, start + 1 + stack)
        now, following = ((POSITIONS[steps], WXYZ[steps]) for steps in (here, later))
        for name, frames in renderer.render(NAMES, *now, first_step=start, following=following).items():
            found.setdefault(name, []).append(frames)
    joined = {}
    for name, chunks in found.items():
        arrays = ("depth", "instance", "world_T_camera", "flow", "keypoints_3d", "keypoints_2d", "keypoint_visibility")
        rows = {array: np.concatenate([getattr(chunk, array) for chunk in chunks]) for array in arrays}
        joined[name] = replace(chunks[0], **rows)
    return joined, renderer


@pytest.fixture(scope="module")
def shown():
    return show(annotated())


def pose_of(body: str, step: int) -> np.ndarray:
    row = NAMES.index(body)
    return make_transform(POSITIONS[step, row], WXYZ[step, row])


def world_points(frames: CameraFrames, step: int) -> np.ndarray:
    y, x = np.mgrid[:HEIGHT, :WIDTH] + 0.5
    rays = np.stack([x, y, np.ones_like(x)], axis=-1) @ np.linalg.inv(frames.intrinsics).T
    pose = frames.world_T_camera[step]
    return (rays * frames.depth[step][..., None]) @ pose[:3, :3].T + pose[:3, 3]


def project(frames: CameraFrames, step: int, world: np.ndarray) -> np.ndarray:
    pose = frames.world_T_camera[step]
    seen = (world - pose[:3, 3]) @ pose[:3, :3] @ frames.intrinsics.T
    return seen[..., :2] / seen[..., 2:]


@pytest.mark.parametrize("camera", ["front", "wrist"])
def test_flow_is_reprojected_motion(shown, camera: str):
    """The error is below 0.1 px for static objects, moving objects, and objects that the wrist camera passes."""
    frames, renderer = shown[0][camera], shown[1]
    y, x = np.mgrid[:HEIGHT, :WIDTH] + 0.5
    bodies = renderer.labels.instance_bodies
    checked = 0
    for step in range(STEPS - 1):
        world = world_points(frames, step)
        for index, body in enumerate(bodies):
            if renderer.labels.instance_names[index] == "robot":
                continue
            mask = (frames.instance[step] == index) & (frames.depth[step] > 0)
            points = world[mask]
            if body:
                motion = pose_of(body, step + 1) @ np.linalg.inv(pose_of(body, step))
                points = points @ motion[:3, :3].T + motion[:3, 3]
            expected = project(frames, step + 1, points) - np.stack([x, y], axis=-1)[mask]
            assert np.abs(frames.flow[step][mask] - expected).max(initial=0) < 0.1, (step, body)
            checked += mask.sum()
    assert checked > 20_000
    assert np.isnan(frames.flow[-1]).all()


def test_flow_of_the_arm_leads_to_the_arm(shown):
    """The hand moves in the front image; its flow leads to pixels with the depth of the moved point."""
    frames, renderer = shown[0]["front"], shown[1]
    robot, step = renderer.labels.instance_names.index("robot"), 2
    moves = (frames.instance[step] == robot) & (np.abs(frames.flow[step]).max(axis=-1) > 1.0)
    assert moves.sum() > 100
    row, column = np.nonzero(moves)
    target = np.stack([column, row], axis=-1) + 0.5 + frames.flow[step][moves]
    inside = ((target >= 0) & (target < (WIDTH, HEIGHT))).all(axis=-1)
    column, row = target[inside].astype(int).T
    assert (frames.instance[step + 1][row, column] == robot).mean() > 0.9


def test_flow_does_not_depend_on_the_stack(shown):
    alone, _ = show(annotated(), stack=1)
    for name, frames in shown[0].items():
        for array in ("flow", "keypoints_2d", "keypoint_visibility"):
            np.testing.assert_array_equal(
                getattr(alone[name], array), getattr(frames, array), err_msg=f"{name} {array}"
            )


def test_annotations_leave_the_images_unchanged(shown):
    plain = SceneRenderer(*stage_and_robot(), stack=STEPS)
    plain.load(layout(width=WIDTH, height=HEIGHT))
    for name, frames in plain.render(NAMES, POSITIONS, WXYZ).items():
        assert frames.flow is None and frames.keypoints_2d is None
        for array in ("rgb", "depth", "instance", "normals"):
            np.testing.assert_array_equal(getattr(frames, array), getattr(shown[0][name], array)[: len(frames.rgb)])


@pytest.mark.parametrize("camera", ["front", "wrist"])
def test_keypoints_project_to_their_places(shown, camera: str):
    frames, renderer = shown[0][camera], shown[1]
    points = renderer.labels.keypoints
    for step in range(STEPS):
        seen = frames.keypoints_3d[step].astype(float) @ frames.intrinsics.T
        ahead = seen[:, 2] > 1e-3
        np.testing.assert_allclose((seen[:, :2] / seen[:, 2:])[ahead], frames.keypoints_2d[step][ahead], atol=0.01)
        assert np.isnan(frames.keypoints_2d[step][~ahead]).all()
        world = frames.keypoints_3d[step] @ frames.world_T_camera[step, :3, :3].T + frames.world_T_camera[step, :3, 3]
        for place, body, position in zip(world, points.bodies, points.positions, strict=True):
            np.testing.assert_allclose(place, (pose_of(body, step) @ np.append(position, 1.0))[:3], atol=1e-5)


@pytest.mark.parametrize("camera", ["front", "wrist"])
def test_visibility_agrees_with_depth(shown, camera: str):
    """Visible points of a surface show their own object; hidden ones have something in front."""
    frames, renderer = shown[0][camera], shown[1]
    points = renderer.labels.keypoints
    inside = ((frames.keypoints_2d >= 0) & (frames.keypoints_2d < (WIDTH, HEIGHT))).all(axis=-1)
    np.testing.assert_array_equal(frames.keypoint_visibility > 0, inside)
    step, number = np.nonzero(inside)
    column, row = frames.keypoints_2d[step, number].astype(int).T
    distance = frames.keypoints_3d[step, number, 2]
    surface, code = frames.depth[step, row, column], frames.keypoint_visibility[step, number]
    assert (surface[code == HIDDEN] < distance[code == HIDDEN]).all()
    at_surface = (code == VISIBLE) & (np.abs(surface - distance) < 0.003)
    own = frames.instance[step, row, column] == points.instances[number]
    assert own[at_surface].mean() > 0.9
    assert at_surface.sum() > 10 and (code == HIDDEN).sum() > 10


def test_keypoints_of_an_object_lie_on_its_surface():
    library = open_library("trash")
    for kind in library.kinds[:6]:
        model = library.model(kind, 0)
        points = surface_points(model.vertices, model.faces)
        assert sorted(points) == ["x_max", "x_min", "y_max", "y_min", "z_max", "z_min"]
        corners = model.vertices[model.faces]
        for place in points.values():
            normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
            normal /= np.maximum(np.linalg.norm(normal, axis=1, keepdims=True), 1e-12)
            away = np.abs(np.sum((place - corners[:, 0]) * normal, axis=1))
            assert away.min() < 1e-6, kind


def test_a_ring_has_vertices_where_no_axis_meets_it():
    angle = np.linspace(0, 2 * np.pi, 40, endpoint=False)
    ring = np.concatenate([np.stack([np.cos(angle), np.sin(angle), np.full(40, z)], axis=1) for z in (-0.1, 0.1)])
    faces = np.array([(i, (i + 1) % 40, i + 40) for i in range(40)])
    points = surface_points(ring, faces)
    assert np.linalg.norm(points["z_max"][:2]) == pytest.approx(1.0) and points["z_max"][2] == pytest.approx(0.1)


def test_keypoints_cover_objects_and_gripper(shown):
    _, robot = stage_and_robot()
    labels, objects = shown[1].labels, layout().physical.objects
    points = find_keypoints(objects, robot, labels)
    assert len(set(points.names)) == len(points.names)
    assert {body for body in points.bodies if body.startswith("items")} == {item.name for item in objects}
    assert {"gripper.tool", "gripper.hand", "gripper.finger_0", "gripper.finger_1"} <= set(points.names)
    assert set(points.bodies) <= set(NAMES)


def test_a_lens_bends_keypoints_like_the_image():
    """Visible surface points stay on their objects in the bent mask."""
    bent, renderer = show(annotated(distortion=(-0.15, 0.02)))
    points, checked = renderer.labels.keypoints, []
    assert points is not None
    for frames in bent.values():
        assert frames.keypoints_2d is not None and frames.keypoints_3d is not None
        assert frames.keypoint_visibility is not None
        step, number = np.nonzero(frames.keypoint_visibility == VISIBLE)
        column, row = frames.keypoints_2d[step, number].astype(int).T
        close = np.abs(frames.depth[step, row, column] - frames.keypoints_3d[step, number, 2]) < 0.005
        checked += (frames.instance[step, row, column] == points.instances[number])[close].tolist()
        inside = ((frames.keypoints_2d >= 0) & (frames.keypoints_2d < (WIDTH, HEIGHT))).all(axis=-1)
        np.testing.assert_array_equal(frames.keypoint_visibility > 0, inside)
    assert len(checked) > 20 and np.mean(checked) > 0.9


def test_a_keypoint_beside_all_surfaces_is_visible():
    depth = np.array([[[0.0, 1.0, 0.5]]], dtype=np.float32)
    pixels = np.array([[[0.5, 0.5], [1.5, 0.5], [2.5, 0.5], [3.5, 0.5], [np.nan, np.nan]]])
    distance = np.array([[1.0, 1.0, 1.0, 1.0, -1.0]])
    matrix = np.diag([500.0, 500.0, 1.0])
    assert judge_visibility(pixels, distance, depth, matrix).tolist() == [[2, 2, 1, 0, 0]]
