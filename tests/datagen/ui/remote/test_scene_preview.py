"""The editor's preview of a task, with real draws and plans: stages that open, markers at their positions, images."""
# The stubs of pxr say that most calls return None.
# pyright: reportAttributeAccessIssue=false, reportGeneralTypeIssues=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nimbus.datagen.tasks.task import Task, load_task
from nimbus.datagen.ui.remote.scene_preview import ScenePreview
from nimbus.runner.system.threads import prepare_libraries
from tests.support import ROOT

TINY = ROOT / "tests/support/tiny.yaml"


@pytest.fixture(scope="module")
def task() -> Task:
    prepare_libraries()
    return load_task(TINY)


@pytest.fixture(scope="module")
def preview(tmp_path_factory: pytest.TempPathFactory) -> ScenePreview:
    return ScenePreview(tmp_path_factory.mktemp("preview"))


def test_a_layout_is_a_stage_with_its_regions_and_cameras_as_marks(preview: ScenePreview, task: Task):
    from pxr import Usd

    said = preview.show_layout(task, seed=3, index=1)
    assert said.startswith("episode 1: ")
    assert preview.stage is not None and preview.stage.duration == 0.0
    stage: Any = Usd.Stage.Open(preview.stage.path)
    assert stage.GetPrimAtPath("/World/objects").GetChildren()
    regions = {region.name: region for region in preview.markers.regions}
    assert set(regions) == set(task.regions)
    for name, region in task.regions.items():
        assert regions[name].center[:2] == tuple(region.center) and regions[name].size == tuple(region.size)
    cameras = {camera.name: camera for camera in preview.markers.cameras}
    assert set(cameras) == set(task.cameras)
    assert all(bool(cameras[name].id) == (not task.cameras[name].mount) for name in cameras)


def test_pictures_are_what_the_cameras_see(preview: ScenePreview, task: Task):
    from PIL import Image

    preview.photograph(task)
    assert set(preview.pictures) == set(task.cameras)
    for name, path in preview.pictures.items():
        picture = np.asarray(Image.open(path))
        assert picture.shape[:2] == task.cameras[name].size[::-1] and picture.std() > 5


def test_samples_and_reach_are_spots_in_the_regions_and_are_cleared(preview: ScenePreview, task: Task):
    assert "layouts" in preview.sample(task, seed=0)
    spots = preview.markers.spots
    assert spots and {spot.kind for spot in spots} == {"sample"}
    assert "within reach" in preview.reach(task)
    assert {spot.kind for spot in preview.markers.spots} <= {"reached", "unreached"}
    middle = np.mean([spot.position[:2] for spot in preview.markers.spots], axis=0)
    centers = np.mean([region.center for region in task.regions.values()], axis=0)
    np.testing.assert_allclose(middle, centers, atol=0.1)
    preview.clear(task)
    assert preview.markers.spots == () and preview.markers.regions


def test_a_plan_is_an_animation_as_long_as_the_motion(preview: ScenePreview, task: Task):
    from pxr import Usd

    said = preview.plan(task, seed=0, index=0)
    assert said.startswith(("success", "failed"))
    assert preview.stage is not None and preview.stage.duration > 1.0
    stage: Any = Usd.Stage.Open(preview.stage.path)
    seconds = (stage.GetEndTimeCode() - stage.GetStartTimeCode()) / stage.GetTimeCodesPerSecond()
    assert seconds == pytest.approx(preview.stage.duration)


def test_steps_of_a_plan_stand_side_by_side(preview: ScenePreview, task: Task):
    """The first and the last step of the last plan are in the first and the last region."""
    from pxr import Usd, UsdGeom

    look = preview._look
    assert look is not None and look.motion.step_count > 1, "the test before has planned"
    assert preview.stack(task, count=4).startswith("4 steps of ")
    assert preview.stage is not None and preview.markers.regions == ()
    stage: Any = Usd.Stage.Open(preview.stage.path)
    regions = stage.GetPrimAtPath("/World/Regions").GetChildren()
    assert len(regions) == 4
    hand = look.motion.names.index("panda_hand")
    for region, step in ((regions[0], 0), (regions[-1], -1)):
        matrix: Any = UsdGeom.Xformable(region.GetChild("body_panda_hand")).GetLocalTransformation()
        np.testing.assert_allclose(matrix.ExtractTranslation(), look.motion.positions[step, hand], atol=1e-9)


def test_changes_in_place_show_the_next_layout(preview: ScenePreview, task: Task):
    """With the layer on top, every value of the open stage equals that of a stage written for the next layout."""
    from pxr import Sdf, Usd

    preview.show_layout(task, seed=0, index=0)
    assert preview.stage is not None
    stage: Any = Usd.Stage.Open(preview.stage.path)
    before = values(stage)
    preview.vary(task, seed=0, index=1)
    layer: Any = Sdf.Layer.CreateAnonymous()
    layer.TransferContent(Sdf.Layer.FindOrOpen(preview.variation))
    stage.GetSessionLayer().subLayerPaths.insert(0, layer.identifier)
    changed = values(stage)
    assert changed != before
    assert changed == values(Usd.Stage.Open(preview.variation.replace("-changes", "")))
    stage.GetSessionLayer().subLayerPaths.clear()
    assert values(stage) == before and preview.restore(task) == "" and preview.variation == ""


def values(stage: Any) -> dict[str, Any]:
    """Return the value of every attribute, and the targets of every relationship."""
    from pxr import Sdf

    found: dict[str, Any] = {}
    for prim in stage.Traverse():
        for attribute in prim.GetAttributes():
            value = attribute.Get()
            found[str(attribute.GetPath())] = value.resolvedPath if isinstance(value, Sdf.AssetPath) else value
        for relation in prim.GetRelationships():
            found[str(relation.GetPath())] = [str(target) for target in relation.GetTargets()]
    return {name: value for name, value in found.items() if value is not None and value != []}
