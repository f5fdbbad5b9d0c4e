"""The renderer for Isaac Sim against a stand-in for Isaac Sim: the calls, and the images read from its buffers."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nimbus.datagen.episode.layout import Camera, Dome
from nimbus.datagen.episode.observation import Labels
from nimbus.datagen.errors import InputError
from nimbus.datagen.geometry.cameras import intrinsics
from nimbus.datagen.render.camera_model.lens import boxes_of
from nimbus.datagen.render.isaacsim.readback import body_indices, frames_from_buffers, instance_indices
from nimbus.datagen.simulate import kit_app
from nimbus.datagen.usd.stacked_stage import RegionPaths
from tests.support.isaac_scene import HEIGHT, WIDTH, played_isaac
from tests.support.render_scene import layout, stage_and_robot, trajectory
from tools.contract.rtx_behaviour import IsaacSim

K = 3


@pytest.fixture
def isaac() -> Iterator[IsaacSim]:
    with played_isaac() as played:
        yield played


@pytest.fixture(scope="module")
def regions(tmp_path_factory: pytest.TempPathFactory) -> Any:
    from nimbus.datagen.render.isaacsim.region_renderer import RegionRenderer

    shown = layout(width=WIDTH, height=HEIGHT)
    folder = tmp_path_factory.mktemp("regions")
    stage, robot = stage_and_robot()
    return RegionRenderer(stage, robot, shown, trajectory(), libraries=("trash",), stack=K, folder=folder, settle=4)


def test_a_batch_is_posed_in_bulk_stepped_once_and_read_by_camera(regions: Any, isaac: IsaacSim):
    regions.open(warm_up=7)
    assert Path(isaac.opened) == regions.path
    assert ("update", {"steps": 7}) in isaac.done
    isaac.done.clear()
    moved = trajectory()
    frames = regions.render(moved.body_positions[1:4], moved.body_wxyz[1:4])
    assert isaac.done == ["fabric", ("step", {"rt_subframes": 4, "pause_timeline": False, "delta_time": 0.0})]
    assert set(frames) == {"front", "wrist"}
    for index, region in enumerate(regions.regions):
        row = moved.body_names.index("panda_hand")
        position, wxyz = isaac.poses[region.bodies["panda_hand"]]
        np.testing.assert_array_equal(position, moved.body_positions[1 + index, row])
        np.testing.assert_array_equal(wxyz, moved.body_wxyz[1 + index, row])
        position, _ = isaac.poses[region.cameras["wrist"]]
        np.testing.assert_allclose(position, frames["wrist"].world_T_camera[index, :3, 3])


def test_images_are_read_as_the_dataset_has_them(regions: Any, isaac: IsaacSim):
    regions.open(warm_up=1)
    moved = trajectory()
    front = regions.render(moved.body_positions[:2], moved.body_wxyz[:2])["front"]
    first = regions.labels.instance_names.index("items_0")
    assert front.rgb.shape == (2, HEIGHT, WIDTH, 3)
    assert (front.instance[:, 2:4, 3:6] == first).all()
    assert (front.instance != 0).sum() == 2 * 2 * 3
    assert (front.semantic == regions.labels.instance_semantics[front.instance]).all()
    np.testing.assert_array_equal(front.boxes_2d[0, first], [3, 2, 6, 4])
    assert front.depth[0, 0, 0] == 0.0
    assert front.depth[0, 2, 0] == 1.0
    assert front.normals[0, 2, 0].tolist() == [0, 0, 127]


def test_an_annotator_without_an_image_is_asked_again_and_named_when_it_has_none(regions: Any, isaac: IsaacSim):
    from nimbus.datagen.render.isaacsim.region_renderer import NoImageError

    regions.open(warm_up=1)
    moved = trajectory()
    poses = moved.body_positions[:2], moved.body_wxyz[:2]
    isaac.empty = {"rgb": 3}
    isaac.done.clear()
    assert set(regions.render(*poses)) == {"front", "wrist"}
    assert [name for name, _ in isaac.done[1:]] == ["step"] * 3, "both cameras, then one of them, had none"
    isaac.empty = {"normals": 100}
    with pytest.raises(NoImageError, match="no image in 4 steps: normals of front, normals of wrist"):
        regions.render(*poses)


def test_a_step_that_replicator_gave_up_is_no_batch(regions: Any, isaac: IsaacSim):
    from nimbus.datagen.render.isaacsim.region_renderer import NoImageError

    regions.open(warm_up=1)
    isaac.status = "STEPPING"
    with pytest.raises(NoImageError, match="not rendered a new frame"):
        regions.render(trajectory().body_positions[:2], trajectory().body_wxyz[:2])


def test_poses_that_isaac_sim_does_not_take_are_no_batch(regions: Any, isaac: IsaacSim):
    regions.open(warm_up=1)
    isaac.takes_poses = False
    with pytest.raises(RuntimeError, match="did not apply the written poses"):
        regions.render(trajectory().body_positions[:2], trajectory().body_wxyz[:2])


def test_the_place_of_every_prim_is_computed_anew_for_each_stage(regions: Any, isaac: IsaacSim):
    """Otherwise, Isaac Sim 6.0 may draw unmoved prims at the world's origin, from a process's second stage on."""
    moved = trajectory().body_positions[:2], trajectory().body_wxyz[:2]
    for _ in range(2):
        regions.open(warm_up=7)
        assert isaac.done.index("usdrt") > isaac.done.index(("update", {"steps": 7})), "what comes late is there"
        regions.render(*moved)
        regions.render(*moved)
        found = dict(isaac.refreshed)
        assert {"/World/Lights", "/World/Lights/sun", *regions.regions[1].bodies.values()} <= found.keys()
        for region, origin in zip(regions.regions, regions.layout.origins, strict=True):
            np.testing.assert_allclose(found[region.root], origin)
        assert len(found) == len(isaac.refreshed), "once a stage, not with each batch"
        regions.close()
        isaac.done.clear()
        isaac.refreshed.clear()


def test_labels_mean_the_same_as_with_the_default_renderer(regions: Any):
    from nimbus.datagen.render.scene_renderer import SceneRenderer

    renderer = SceneRenderer(*stage_and_robot(), libraries=("trash",))
    renderer.load(layout())
    mine, known = regions.labels, renderer.labels
    assert (mine.instance_names, mine.semantic_names) == (known.instance_names, known.semantic_names)
    assert mine.instance_bodies == known.instance_bodies
    np.testing.assert_array_equal(mine.instance_semantics, known.instance_semantics)
    np.testing.assert_allclose(mine.boxes_3d, known.boxes_3d, atol=1e-5)


def test_as_many_steps_are_stacked_as_fit_into_the_memory():
    from nimbus.datagen.render.isaacsim.renderer import stack_in_memory

    cameras = layout(width=640, height=480).visual.cameras
    counts = [stack_in_memory(cameras, free_bytes=free << 30) for free in (0, 1, 6, 80)]
    assert counts == [16, 2, 15, 64]


def test_an_open_that_fails_is_one_line(isaac: IsaacSim, tmp_path: Path):
    with pytest.raises(InputError, match="cannot open it"):
        kit_app.open_stage(str(tmp_path / "nothing.usda"))


def test_no_isaac_sim_is_one_line():
    with pytest.raises(InputError, match="not in this Python"):
        kit_app.start()


@pytest.mark.parametrize("version", ["4.5.0", "5.1.0-rc.19"])
def test_another_version_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, version: str):
    (tmp_path / "VERSION").write_text(version + "\n")
    monkeypatch.setenv("ISAAC_PATH", str(tmp_path))
    with pytest.raises(InputError, match=f"Isaac Sim {version}; version 6.0 is needed"):
        kit_app.start()


def test_the_experience_is_named_by_its_whole_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("EXP_PATH", str(tmp_path))
    with pytest.raises(InputError, match="zero_delay.kit is missing"):
        kit_app.experience()
    tmp_path.joinpath(kit_app.EXPERIENCE).touch()
    assert kit_app.experience() == tmp_path / kit_app.EXPERIENCE
    monkeypatch.delenv("EXP_PATH")
    with pytest.raises(InputError, match="EXP_PATH"):
        kit_app.experience()


def test_images_are_read_on_the_gpu_that_renders(monkeypatch: pytest.MonkeyPatch):
    import warp

    chosen: list[str] = []
    monkeypatch.setattr(warp, "set_device", chosen.append)
    for count in (0, 1, 4):  # without a GPU, or where only others are seen, Warp keeps its own choice
        monkeypatch.setattr(warp, "get_cuda_device_count", lambda count=count: count)
        kit_app._compute_on(2)
    assert chosen == ["cuda:2"]


def test_ids_of_unknown_prims_and_of_the_background_are_background():
    labels = Labels(
        instance_names=("background", "items_0", "table"),
        instance_bodies=("", "items_0", ""),
        instance_semantics=np.array([0, 1, 2], np.uint8),
        semantic_names=("background", "can", "table"),
        boxes_3d=np.zeros((3, 2, 3)),
    )
    region = RegionPaths(root="/World/Regions/R_000", bodies={}, cameras={})
    paths = {
        "0": "BACKGROUND",
        "5": "/World/Regions/R_000/body_items_0/visual",
        "6": "/World/Regions/R_000/scene/table_surface",
        "7": "/World/Regions/R_000/scene/tableware",
        "8": "/World/other",
    }
    places = {"body_items_0": "items_0", "scene/table_surface": "table"}
    ids = np.array([0, 5, 6, 7, 8, 99], np.uint32).reshape(1, 1, 6, 1)
    found = instance_indices(ids, paths, [region], labels, instance_of=places)
    assert found.ravel().tolist() == [0, 1, 2, 0, 0, 0]


def test_what_lies_beyond_the_far_clip_is_background():
    labels = Labels(
        instance_names=("background", "a"),
        instance_bodies=("", "a"),
        instance_semantics=np.array([0, 1], np.uint8),
        semantic_names=("background", "b"),
        boxes_3d=np.zeros((2, 2, 3)),
    )
    camera = Camera(name="a", mount="", position=(0, 0, 0), wxyz=(1, 0, 0, 0), vertical_fov=1.0, width=3, height=1)
    buffers = {
        "rgb": np.zeros((1, 1, 3, 4), np.uint8),
        "distance_to_image_plane": np.array([1.0, 5.0, np.inf], np.float32).reshape(1, 1, 3, 1),
        "normals": np.ones((1, 1, 3, 4), np.float32),
    }
    frames = frames_from_buffers(
        buffers, np.ones((1, 1, 3), np.uint8), labels, camera, eyes=np.zeros((1, 3)), turns=np.eye(4)[:1], far=4.0
    )
    assert frames.depth.ravel().tolist() == [1.0, 0.0, 0.0]
    assert frames.instance.ravel().tolist() == [1, 0, 0]
    np.testing.assert_array_equal(boxes_of(frames.instance, 2)[0, 1], [0, 0, 1, 1])


def test_the_components_load_without_the_default_simulator():
    code = """
import sys
class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("newton", "mujoco", "warp", "usdex", "ompl", "mink", "toppra", "isaacsim", "omni"):
            raise ImportError("blocked: " + name)
sys.meta_path.insert(0, Blocker())
import nimbus.datagen.render.isaacsim.renderer, nimbus.datagen.simulate.kit_app
import nimbus.datagen.usd.stack_layout, nimbus.datagen.render.isaacsim.region_labels, nimbus.datagen.usd.layout_export
"""
    from nimbus.datagen.ui.runs.launch import PACKAGE_FOLDER

    env = {"PYTHONPATH": str(PACKAGE_FOLDER)}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_bodies_are_told_apart_where_instances_are_not():
    region = RegionPaths(root="/World/Regions/R_000", bodies={}, cameras={})
    paths = {
        1: "/World/Regions/R_000/body_panda_hand/mesh",
        2: "/World/Regions/R_000/body_cabinet_0__drawer/mesh",
        3: "/World/Regions/R_000/scene/table_surface",
        4: "BACKGROUND",
    }
    ids = np.array([1, 2, 3, 4, 9], np.uint32).reshape(1, 1, 5)
    rows = body_indices(ids, paths, [region], ("panda_link0", "cabinet_0.drawer", "panda_hand"))
    assert rows.ravel().tolist() == [2, 1, -1, -1, -1]


def test_flow_is_made_where_it_is_asked_for(regions: Any, isaac: IsaacSim):
    regions.open(warm_up=1)
    moved = trajectory()
    now, later = ((moved.body_positions[s], moved.body_wxyz[s]) for s in (slice(0, 2), slice(1, 3)))
    assert regions.render(*now)["front"].flow is None
    seen = regions.render(*now, following=later, flow=True)
    front, wrist = seen["front"], seen["wrist"]
    assert front.flow.shape == (2, HEIGHT, WIDTH, 2)
    assert np.isfinite(front.flow[front.depth > 0]).all() and np.isnan(front.flow[front.depth == 0]).all()
    assert np.abs(wrist.flow[0, 2:4, 3:6]).max() > 0.01, "the wrist camera is moved"
    assert np.isnan(regions.render(*now, following=(later[0][:1], later[1][:1]), flow=True)["front"].flow[1]).all()


def test_cameras_that_ask_get_flow_and_keypoints(tmp_path: Path, isaac: IsaacSim):
    """Names, order and 3D positions equal the default renderer's; visibility comes from the instance's depth."""
    from nimbus.datagen.render.camera_model.keypoint_places import in_camera
    from nimbus.datagen.render.isaacsim.region_renderer import RegionRenderer
    from nimbus.datagen.render.keypoints import find_keypoints

    shown, moved = layout(width=WIDTH, height=HEIGHT), trajectory()
    front, wrist = shown.visual.cameras
    front = replace(front, modalities=(*front.modalities, "flow", "keypoints"))
    shown = replace(shown, visual=replace(shown.visual, cameras=(front, wrist)))
    regions = RegionRenderer(
        *stage_and_robot(), shown, moved, libraries=("trash",), stack=2, folder=tmp_path / "annotated", settle=1
    )
    regions.open(warm_up=1)
    now, later = ((moved.body_positions[s], moved.body_wxyz[s]) for s in (slice(0, 2), slice(1, 3)))
    seen = regions.render(*now, following=later)
    assert seen["wrist"].flow is None and seen["wrist"].keypoints_2d is None
    frames, points = seen["front"], regions.labels.keypoints
    assert frames.flow is not None and np.isfinite(frames.flow[frames.depth > 0]).all()
    again = find_keypoints(shown.physical.objects, stage_and_robot()[1], regions.labels)
    assert points is not None and points.names == again.names
    rows = {name: row for row, name in enumerate(moved.body_names)}
    places = in_camera(points, rows, *now, frames.world_T_camera)
    assert frames.keypoints_3d is not None and frames.keypoint_visibility is not None
    np.testing.assert_allclose(frames.keypoints_3d, places, atol=1e-6)
    assert set(np.unique(frames.keypoint_visibility)) <= {0, 1, 2}
    regions.close()


def test_a_lens_is_rendered_wider_and_bent(tmp_path: Path, isaac: IsaacSim):
    from nimbus.datagen.render.isaacsim.region_renderer import RegionRenderer

    shown = layout(width=WIDTH, height=HEIGHT)
    cameras = tuple(replace(camera, distortion=(-0.05, 0.0)) for camera in shown.visual.cameras)
    shown = replace(shown, visual=replace(shown.visual, cameras=cameras))
    stage, robot = stage_and_robot()
    bent = RegionRenderer(stage, robot, shown, trajectory(), libraries=("trash",), stack=1, folder=tmp_path, settle=1)
    assert all(wide.vertical_fov > camera.vertical_fov for wide, camera in zip(bent.cameras, cameras, strict=True))
    bent.open(warm_up=1)
    moved = trajectory()
    front = bent.render(moved.body_positions[:1], moved.body_wxyz[:1])["front"]
    np.testing.assert_allclose(front.intrinsics, intrinsics(cameras[0]))


def test_a_sky_from_a_picture_lights_the_stage(tmp_path: Path):
    from pxr import Usd, UsdGeom, UsdLux

    from nimbus.datagen.textures.environment_map import hash_map
    from nimbus.datagen.usd.stacked_stage import add_light

    (picture := tmp_path / "sky.hdr").write_bytes(b"sky")
    given = {"intensity": 1.5, "turn": 0.5, "sky": (1, 1, 1), "ground": (0, 0, 0)}
    dome = Dome(texture=str(picture), content=hash_map(b"sky"), **given)
    stage: Any = Usd.Stage.CreateNew(str(tmp_path / "lit.usda"))
    UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.z)
    add_light(stage, layout().visual.light, dome)
    sky: Any = UsdLux.DomeLight(stage.GetPrimAtPath("/World/Lights/sky"))
    assert sky.GetTextureFileAttr().Get().path == dome.texture
    assert sky.GetIntensityAttr().Get() == 1500.0
    turned = np.array(UsdGeom.XformCache().GetLocalToWorldTransform(sky.GetPrim())).T[:3, :3]
    np.testing.assert_allclose(turned @ (0, 0, 1), (0, 0, 1), atol=1e-6, err_msg="the picture's top, for Kit")
    edge, quarter = turned @ (1, 0, 0), turned @ (0, -1, 0)
    np.testing.assert_allclose(edge, (-np.sin(0.5), np.cos(0.5), 0), atol=1e-6, err_msg="its left edge: +Y, turned")
    np.testing.assert_allclose(quarter, (np.cos(0.5), np.sin(0.5), 0), atol=1e-6, err_msg="a quarter on: +X, turned")


def test_the_default_renderer_has_the_top_of_a_picture_above_as_kit_has():
    from nimbus.datagen.textures.environment_map import hemispheres

    picture = np.zeros((8, 16, 3), np.float32)
    picture[:4] = 1.0
    above, below = hemispheres(picture)
    assert above.min() == pytest.approx(1.0) and below.max() == 0.0
