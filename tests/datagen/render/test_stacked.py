import dataclasses

import numpy as np
import pytest
import warp as wp
from PIL import Image, ImageDraw

from nimbus.datagen.episode.layout import SurfaceLook
from nimbus.datagen.episode.observation import ARRAYS
from nimbus.datagen.errors import InputError
from nimbus.datagen.geometry.transforms import make_transform
from nimbus.datagen.objects.libraries import open_library
from nimbus.datagen.render.scene_renderer import SceneRenderer
from tests.support.render_scene import LIGHT, STEPS, layout, render, stage_and_robot, states

IMAGES = ("rgb", "depth", "instance", "semantic", "normals", "boxes_2d", "visibility", "world_T_camera")
LABELS = [name for name in IMAGES if name != "rgb"]


@pytest.fixture(scope="module")
def rendered():
    return render(layout())


def points_in_world(frames, step):
    """Return the world points (H, W, 3) in the depth image."""
    height, width = frames.depth.shape[1:]
    y, x = np.mgrid[:height, :width] + 0.5
    in_camera = np.linalg.inv(frames.intrinsics) @ np.stack([x.ravel(), y.ravel(), np.ones(x.size)])
    in_camera *= frames.depth[step].ravel()
    camera = frames.world_T_camera[step]
    return (camera[:3, :3] @ in_camera + camera[:3, 3:]).T.reshape(height, width, 3)


def body_pose(name, step):
    names, positions, wxyz = states()
    return make_transform(positions[step, names.index(name)], wxyz[step, names.index(name)])


def test_one_step_alone_and_many_side_by_side_give_the_same_bytes(rendered):
    together, _ = rendered
    for step in range(STEPS):
        alone, _ = render(layout(), stack=1, steps=slice(step, step + 1))
        for camera, name in [(camera, name) for camera in alone for name in IMAGES]:
            expected = getattr(together[camera], name)[step]
            np.testing.assert_array_equal(getattr(alone[camera], name)[0], expected, err_msg=f"{camera} {name}")


@pytest.mark.parametrize("modalities", [("rgb",), ("rgb", "depth"), ("rgb", "boxes"), ("rgb", "visibility", "normals")])
def test_only_a_cameras_modalities_are_made(rendered, modalities):
    """A modality that is rendered alone equals the one that is rendered together with all others, to the bit."""
    everything, _ = rendered
    wanted = layout()
    front, wrist = wanted.visual.cameras
    cameras = dataclasses.replace(front, modalities=modalities), wrist
    found, _ = render(dataclasses.replace(wanted, visual=dataclasses.replace(wanted.visual, cameras=cameras)))
    for modality, name in ARRAYS.items():
        expected = getattr(everything["front"], name)
        expected = expected if modality in modalities else expected[:0]
        np.testing.assert_array_equal(getattr(found["front"], name), expected, err_msg=name)
        np.testing.assert_array_equal(getattr(found["wrist"], name), getattr(everything["wrist"], name), err_msg=name)


def test_a_chunk_shorter_than_the_stack_shows_its_own_steps_only(rendered):
    together, _ = rendered
    short, _ = render(layout(), stack=8, steps=slice(3, 5))
    assert short["wrist"].rgb.shape == (2, 48, 64, 3)
    np.testing.assert_array_equal(short["wrist"].rgb, together["wrist"].rgb[3:5])


def test_depth_of_the_table_is_that_of_the_plane_it_lies_in(rendered):
    frames, renderer = rendered
    table = renderer.labels.instance_names.index("table")
    for camera in ("front", "wrist"):
        points = points_in_world(frames[camera], 2)
        top = (frames[camera].instance[2] == table) & (frames[camera].normals[2, ..., 2] == 127)
        assert top.sum() > 300
        np.testing.assert_allclose(points[top][:, 2], 0.0, atol=2e-4)


def test_what_is_labelled_as_an_object_lies_in_its_3d_box(rendered):
    frames, renderer = rendered
    labels = renderer.labels
    for index, body in enumerate(labels.instance_bodies):
        seen = frames["front"].instance[0] == index
        if body and seen.any():
            world_T_body = body_pose(body, 0)
            local = (points_in_world(frames["front"], 0)[seen] - world_T_body[:3, 3]) @ world_T_body[:3, :3]
            lower, upper = labels.boxes_3d[index]
            assert np.all(local > lower - 1e-3) and np.all(local < upper + 1e-3), body


def test_an_objects_mask_is_its_projected_mesh():
    frames, renderer = render(layout(width=320, height=240), stack=1, steps=slice(0, 1))
    seen = frames["front"]
    for item in layout().physical.objects:
        model = open_library("trash").model(item.kind, 0)
        world = model.vertices @ body_pose(item.name, 0)[:3, :3].T + body_pose(item.name, 0)[:3, 3]
        in_camera = (world - seen.world_T_camera[0, :3, 3]) @ seen.world_T_camera[0, :3, :3]
        pixels = (in_camera / in_camera[:, 2:]) @ seen.intrinsics.T
        canvas = Image.new("1", (320 * 8, 240 * 8))
        for face in model.faces:
            ImageDraw.Draw(canvas).polygon([tuple(8 * pixels[corner, :2]) for corner in face], fill=1)
        drawn = np.asarray(canvas)[4::8, 4::8]
        mask = seen.instance[0] == renderer.labels.instance_names.index(item.name)
        assert (drawn & mask).sum() / (drawn | mask).sum() > 0.93, item.kind


def test_semantic_masks_follow_from_instance_masks_and_name_the_kinds(rendered):
    frames, renderer = rendered
    labels = renderer.labels
    np.testing.assert_array_equal(frames["front"].semantic, labels.instance_semantics[frames["front"].instance])
    kinds = {item.name: item.kind for item in layout().physical.objects}
    named = {name: labels.semantic_names[labels.instance_semantics[i]] for i, name in enumerate(labels.instance_names)}
    assert {name: named[name] for name in kinds} == kinds
    assert named["robot"] == "robot" and named["organic"] == named["residual"] == "bins"


def test_normals_are_unit_and_face_the_camera(rendered):
    for frames in rendered[0].values():
        normals = frames.normals[1].astype(float) / 127
        hit = frames.depth[1] > 0
        np.testing.assert_allclose(np.linalg.norm(normals[hit], axis=-1), 1.0, atol=0.01)
        towards = frames.world_T_camera[1, :3, 3] - points_in_world(frames, 1)
        assert np.min(np.sum(normals * towards, axis=-1)[hit]) > -0.02


def test_boxes_are_tight_around_masks(rendered):
    for frames in rendered[0].values():
        for step, index in np.ndindex(frames.boxes_2d.shape[:2]):
            y, x = np.nonzero(frames.instance[step] == index)
            box = frames.boxes_2d[step, index]
            if len(x):
                np.testing.assert_array_equal(box, [x.min(), y.min(), x.max() + 1, y.max() + 1])
            else:
                assert np.isnan(box).all()


def test_objects_lie_where_their_bodies_project_to(rendered):
    frames, renderer = rendered
    seen = frames["front"]
    for item in layout().physical.objects:
        index = renderer.labels.instance_names.index(item.name)
        in_camera = np.linalg.inv(seen.world_T_camera[0]) @ np.append(body_pose(item.name, 0)[:3, 3], 1.0)
        x, y, _ = seen.intrinsics @ (in_camera[:3] / in_camera[2])
        left, top, right, bottom = seen.boxes_2d[0, index]
        assert left <= x <= right and top <= y <= bottom, item.kind


def test_a_mounted_camera_moves_with_its_link(rendered):
    frames, _ = rendered
    camera = layout().visual.cameras[1]
    for step in range(STEPS):
        expected = (
            body_pose(camera.mount, step) @ make_transform(camera.position, camera.wxyz) @ np.diag([1, -1, -1, 1])
        )
        np.testing.assert_allclose(frames["wrist"].world_T_camera[step], expected, atol=1e-9)
    assert np.ptp(frames["wrist"].world_T_camera[:, :3, 3], axis=0).max() > 0.02


def test_unoccluded_objects_are_wholly_visible_and_the_fixed_room_has_no_visibility():
    frames, renderer = render(layout(width=320, height=240), stack=1, steps=slice(0, 1))
    names = renderer.labels.instance_names
    for item in layout().physical.objects:
        assert frames["front"].visibility[0, names.index(item.name)] > 0.85, item.kind
    assert np.isnan(frames["front"].visibility[0, names.index("table")])


def test_a_tint_changes_the_pixels_of_its_object_only(rendered):
    before, renderer = rendered
    wood = SurfaceLook(texture="wood", texture_seed=1)
    after, _ = render(layout(surfaces={"table": wood, "items_1": SurfaceLook(color=(0.4, 0.9, 0.5))}))
    for camera in ("front", "wrist"):
        changed = np.any(before[camera].rgb != after[camera].rgb, axis=-1)
        mask = before[camera].instance == renderer.labels.instance_names.index("items_1")
        assert not np.any(changed & ~mask)
        assert changed.sum() > 0.8 * mask.sum()
        for name in LABELS:
            np.testing.assert_array_equal(getattr(before[camera], name), getattr(after[camera], name))


def test_light_and_textures_change_no_label(rendered):
    before, _ = rendered
    dusk = dataclasses.replace(LIGHT, direction=(0.6, 0.0, -0.8), color=(0.5, 0.4, 0.3))
    after, _ = render(layout(light=dusk, surfaces={"floor": SurfaceLook(texture="tiles", texture_seed=3)}))
    assert np.mean(before["front"].rgb != after["front"].rgb) > 0.5
    for camera in ("front", "wrist"):
        for name in LABELS:
            np.testing.assert_array_equal(getattr(before[camera], name), getattr(after[camera], name))


def test_shadows_only_darken():
    with_shadows, _ = render(layout(width=160, height=120), stack=1, steps=slice(0, 1))
    without, _ = render(layout(width=160, height=120), stack=1, steps=slice(0, 1), shadows=False)
    lit, dark = without["front"].rgb.astype(int), with_shadows["front"].rgb.astype(int)
    assert np.all(dark <= lit)
    assert 0.02 < np.mean(np.any(dark < lit - 10, axis=-1)) < 0.5


def test_no_pixel_is_left_without_something_behind_it(rendered):
    frames, _ = rendered
    assert np.mean(frames["front"].depth > 0) > 0.99
    assert 60 < frames["front"].rgb.mean() < 200


def test_a_missing_gpu_is_said_in_one_line():
    if wp.get_cuda_device_count():
        pytest.skip("there is a GPU")
    with pytest.raises(InputError, match="no device 'cuda' on this machine") as caught:
        SceneRenderer(*stage_and_robot(), device="cuda")
    assert "\n" not in str(caught.value)


def test_an_unknown_texture_is_said_in_one_line():
    with pytest.raises(InputError, match="unknown texture 'marbel'; did you mean 'marble'"):
        render(layout(surfaces={"table": SurfaceLook(texture="marbel")}))
