"""Regions, cameras and spots on a real stage: drawn in its session layer, and read after the user moved them."""
# The stubs of pxr say that most calls return None.
# pyright: reportAttributeAccessIssue=false, reportGeneralTypeIssues=false, reportArgumentType=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tools.contract.kit_behaviour import Kit

MARKS: dict[str, Any] = {
    "regions": [
        {"id": "regions.start.center", "name": "start", "center": [0.5, 0.1, 0.02], "size": [0.3, 0.2]},
        {"id": "regions.my goal.center", "name": "my goal", "center": [0.4, 0.3, 0.0], "size": [0.1, 0.1]},
    ],
    "cameras": [
        {
            **{"id": "cameras.front.pose", "name": "front", "position": [1.5, 0.0, 0.9], "wxyz": [1.0, 0.0, 0.0, 0.0]},
            **{"vertical_fov": 0.8, "aspect": 1.5},
        },
        {
            **{"id": "", "name": "wrist", "position": [0.4, 0.0, 0.5], "wxyz": [0.0, 1.0, 0.0, 0.0]},
            **{"vertical_fov": 1.0, "aspect": 1.0},
        },
    ],
    "spots": [{"kind": "reached", "position": [0.5, 0.0, 0.0], "size": 0.04}],
}


@pytest.fixture
def drawn(kit: Kit) -> tuple[Any, Any]:
    from pxr import Usd, UsdGeom

    from nimbus.datagen.kit.markers import StageMarkers

    stage: Any = Usd.Stage.CreateInMemory()
    UsdGeom.Xform.Define(stage, "/World")
    marks = StageMarkers()
    marks.draw(stage, MARKS)
    return stage, marks


def move(stage: Any, place: str, position: tuple[float, float, float]) -> None:
    from pxr import Gf, Usd, UsdGeom

    mark: Any = UsdGeom.Xformable(stage.GetPrimAtPath(place))
    with Usd.EditContext(stage, stage.GetSessionLayer()):
        mark.GetOrderedXformOps()[0].Set(Gf.Vec3d(*position))


def test_a_stage_without_marks_is_left_as_it_was(drawn: Any):
    stage, marks = drawn
    marks.draw(stage, {"regions": [], "cameras": [], "spots": []})
    assert not stage.GetPrimAtPath("/NimbusMarks")
    assert "NimbusMarks" not in stage.GetSessionLayer().ExportToString()


def test_a_camera_that_was_scaled_too_has_the_turn_that_it_was_given(drawn: Any):
    from pxr import Gf, Usd, UsdGeom

    stage, marks = drawn
    eye: Any = UsdGeom.Xformable(stage.GetPrimAtPath("/NimbusMarks/camera_front"))
    half = np.sqrt(0.5)
    with Usd.EditContext(stage, stage.GetSessionLayer()):
        eye.GetOrderedXformOps()[1].Set(Gf.Quatd(half, 0.0, 0.0, half))
        eye.AddScaleOp().Set(Gf.Vec3f(2.0, 0.5, 3.0))
    marks.take_moves(stage)
    ((name, given),) = marks.take_moves(stage)
    assert name == "cameras.front.pose"
    np.testing.assert_allclose(given["wxyz"], (half, 0, 0, half), atol=1e-4)
    np.testing.assert_allclose(given["position"], (1.5, 0.0, 0.9), atol=1e-4)


def test_marks_are_in_the_session_layer_alone(drawn: Any):
    stage, _ = drawn
    assert "NimbusMarks" not in stage.GetRootLayer().ExportToString()
    assert "NimbusMarks" in stage.GetSessionLayer().ExportToString()


def test_plates_frusta_and_spots_are_where_they_belong(drawn: Any):
    from pxr import UsdGeom

    stage, _ = drawn
    cache = UsdGeom.BBoxCache(0, ["default"])

    def box(place: str) -> np.ndarray:
        found = cache.ComputeWorldBound(stage.GetPrimAtPath(place)).ComputeAlignedRange()
        return np.array([found.GetMin(), found.GetMax()])

    np.testing.assert_allclose(box("/NimbusMarks/region_start")[:, :2], [(0.35, 0.0), (0.65, 0.2)], atol=1e-6)
    np.testing.assert_allclose(box("/NimbusMarks/reached")[:, :2], [(0.48, -0.02), (0.52, 0.02)], atol=1e-6)
    assert stage.GetPrimAtPath("/NimbusMarks/region_my_goal")
    front = box("/NimbusMarks/camera_front")
    assert front[0, 2] < 0.9 - 0.1 and front[1, 2] < 0.92, "it looks down its -Z"
    sides = np.ptp(front, axis=0)
    assert sides[0] / sides[1] == pytest.approx(1.5, rel=0.1)


def test_what_a_click_picks_is_what_is_looked_after(drawn: Any):
    from pxr import UsdGeom

    stage, _ = drawn
    for place in ("/NimbusMarks/region_start", "/NimbusMarks/camera_front"):
        prim = stage.GetPrimAtPath(place)
        assert prim.IsA(UsdGeom.Gprim) and not prim.GetChildren(), "a gizmo would move the child"


def test_what_was_moved_is_told_once_when_it_rests(drawn: Any):
    stage, marks = drawn
    assert marks.take_moves(stage) == marks.take_moves(stage) == []
    move(stage, "/NimbusMarks/region_start", (0.42, 0.15, 0.02))
    assert marks.take_moves(stage) == [], "it may still be dragged"
    assert marks.take_moves(stage) == [("regions.start.center", [0.42, 0.15])]
    assert marks.take_moves(stage) == []
    move(stage, "/NimbusMarks/camera_front", (1.2, 0.1, 0.8))
    marks.take_moves(stage)
    assert marks.take_moves(stage) == [
        ("cameras.front.pose", {"position": [1.2, 0.1, 0.8], "wxyz": [1.0, 0.0, 0.0, 0.0]})
    ]
    move(stage, "/NimbusMarks/camera_wrist", (1.0, 0.0, 0.0))
    marks.take_moves(stage)
    assert marks.take_moves(stage) == [], "it hangs on the robot"


def test_they_are_drawn_on_the_next_stage_and_taken_away(drawn: Any):
    from pxr import Usd

    stage, marks = drawn
    other: Any = Usd.Stage.CreateInMemory()
    marks.draw(other)
    assert other.GetPrimAtPath("/NimbusMarks/region_start")
    marks.draw(None)
    assert marks.take_moves(None) == []
    marks.draw(other, {"regions": [], "cameras": [], "spots": []})
    assert not other.GetPrimAtPath("/NimbusMarks")
    assert stage.GetPrimAtPath("/NimbusMarks/region_start"), "another stage is not touched"
