"""The viewport: the selected layout, its stage and motion, changes by the user, and images."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.support.started_extension import Started


def test_seed_and_episode_say_which_layout_is_drawn(opened: Started):
    opened.edit("IntDrag", "seed", 7)
    opened.edit("IntDrag", "episode", 4)
    opened.press("layout This one")
    assert ("show_layout", {"seed": 7, "index": 4}) in opened.channel.scene.asked
    assert opened.label("message") == "show_layout done"


def test_a_stage_is_opened_and_its_motion_played(opened: Started, tmp_path: Path):
    from nimbus.datagen.ui.remote.messages import StageView

    opened.channel.scene.stage = StageView(path=str(tmp_path / "plan.usda"), duration=4.0)
    opened.press("check Plan one")
    assert opened.kit.stage == str(tmp_path / "plan.usda")
    assert opened.kit.played[:2] == [("stop", ()), ("update", ())], "before the stage that plays goes"
    assert opened.kit.played[2:] == [
        ("update", ()),
        ("set_end_time", (4.0,)),
        ("set_current_time", (0.0,)),
        ("play", ()),
    ]
    assert opened.kit.recent == [], "nobody wants to open it again"
    opened.kit.stage = ""
    opened.press("check Reach")
    assert opened.kit.stage == "", "the same stage is not opened again"


def test_unsaved_changes_of_the_open_stage_are_not_lost(opened: Started, tmp_path: Path):
    from nimbus.datagen.ui.remote.messages import StageView

    opened.kit.has_pending_edit = True
    opened.channel.scene.stage = StageView(path=str(tmp_path / "plan.usda"), duration=0.0)
    opened.press("layout This one")
    assert opened.kit.stage == ""
    assert "unsaved changes" in opened.label("problem")
    opened.press("layout This one")
    assert opened.kit.stage == str(tmp_path / "plan.usda"), "asked again, it goes"


def test_changes_after_a_save_are_told_of_as_the_first_ones(opened: Started, tmp_path: Path):
    from nimbus.datagen.ui.remote.messages import StageView

    opened.kit.stage = "mine.usda"
    opened.channel.scene.stage = StageView(path=str(tmp_path / "plan.usda"), duration=0.0)
    opened.kit.has_pending_edit = True
    opened.press("layout This one")
    opened.kit.refuses, opened.kit.has_pending_edit = "no such layer", False
    opened.press("layout This one")
    opened.look()
    opened.kit.refuses, opened.kit.has_pending_edit = "", True
    opened.channel.scene.stage = StageView(path=str(tmp_path / "other.usda"), duration=0.0)
    opened.press("layout This one")
    assert opened.kit.stage == "mine.usda"
    assert "unsaved changes" in opened.label("problem")


def test_a_layout_that_was_played_or_touched_is_left_for_the_next_one(opened: Started, tmp_path: Path):
    from nimbus.datagen.ui.remote.messages import StageView

    for name in ("first", "second"):
        opened.channel.scene.stage = StageView(path=str(tmp_path / f"{name}.usda"), duration=0.0)
        opened.press("layout This one")
        assert opened.kit.stage == str(tmp_path / f"{name}.usda")
        assert not opened.kit.has_pending_edit, "Kit does not ask for what Isaac Sim did to it"
        opened.kit.has_pending_edit = True


def test_a_stage_waits_until_the_one_before_is_open(opened: Started, tmp_path: Path):
    from nimbus.datagen.ui.remote.messages import StageView

    opened.kit.opening = 3
    opened.channel.scene.stage = StageView(path=str(tmp_path / "plan.usda"), duration=0.0)
    opened.press("layout This one")
    assert opened.kit.stage == str(tmp_path / "plan.usda")
    assert opened.kit.played.count(("update", ())) == 1 + 3 + 1


def test_a_stage_that_kit_cannot_open_is_one_line_and_nothing_is_played(opened: Started, tmp_path: Path):
    from nimbus.datagen.ui.remote.messages import StageView

    opened.kit.refuses = "no such layer"
    opened.channel.scene.stage = StageView(path=str(tmp_path / "plan.usda"), duration=4.0)
    opened.press("check Plan one")
    opened.look()
    assert opened.label("problem") == f"{tmp_path / 'plan.usda'}: Kit cannot open it: no such layer"
    assert ("play", ()) not in opened.kit.played


def test_a_stage_that_was_refused_is_opened_once_the_user_has_saved(opened: Started, tmp_path: Path):
    from nimbus.datagen.ui.remote.messages import StageView

    opened.kit.has_pending_edit = True
    opened.channel.scene.stage = StageView(path=str(tmp_path / "plan.usda"), duration=0.0)
    opened.press("layout This one")
    opened.kit.has_pending_edit = False
    opened.press("check Reach")
    assert opened.kit.stage == str(tmp_path / "plan.usda")


def test_a_region_and_a_camera_that_are_moved_in_the_viewport_are_moved_in_the_task(opened: Started):
    from pxr import Gf, Usd, UsdGeom

    from nimbus.datagen.ui.remote.messages import CameraMarker, RegionMarker, ViewportMarkers

    opened.kit.usd_stage = Usd.Stage.CreateInMemory()
    region = RegionMarker(id="regions.start.center", name="start", center=(0.5, 0.0, 0.0), size=(0.3, 0.4))
    camera = CameraMarker(
        id="cameras.front.pose", name="front", position=(1.5, 0, 0.9), wxyz=(1, 0, 0, 0), vertical_fov=0.7, aspect=1.3
    )
    opened.channel.scene.markers = ViewportMarkers(regions=(region,), cameras=(camera,))
    opened.edit("StringField", "rate", "30")
    with Usd.EditContext(opened.kit.usd_stage, opened.kit.usd_stage.GetSessionLayer()):
        plate: Any = UsdGeom.Xformable(opened.kit.usd_stage.GetPrimAtPath("/NimbusMarks/region_start"))
        plate.GetOrderedXformOps()[0].Set(Gf.Vec3d(0.42, 0.1, 0.002))
        eye: Any = UsdGeom.Xformable(opened.kit.usd_stage.GetPrimAtPath("/NimbusMarks/camera_front"))
        eye.GetOrderedXformOps()[0].Set(Gf.Vec3d(1.2, 0.3, 0.8))
    for _ in range(3):
        opened.look()
    assert "center: [0.42, 0.1]" in opened.text
    assert "position: [1.2, 0.3, 0.8]" in opened.text


def test_pictures_are_shown_below_the_controls(opened: Started, tmp_path: Path):
    opened.channel.scene.pictures = {"front": str(tmp_path / "front.png")}
    opened.press("check Pictures")
    (image,) = [widget for widget in opened.kit.widgets if type(widget).__name__ == "Image"]
    assert image.played_args == (str(tmp_path / "front.png"),)
