"""Cameras that show objects too small are reported with a remedy; wrist cameras are judged by the held object."""

from __future__ import annotations

import re

import numpy as np
import pytest

from nimbus.datagen.doctor.cameras import still_pose
from nimbus.datagen.doctor.case import Case
from nimbus.datagen.doctor.sizes import ENOUGH_PIXELS, LEAST_PIXELS, _view, check_sizes
from nimbus.datagen.errors import Diagnostic
from nimbus.datagen.load.scene_loader import load_assets
from nimbus.datagen.tasks.task import load_task, parse_task
from tests.support.one_can import TEXT, assets

FAR = "{position: [3.0, 0.0, 1.8], look_at: [0.45, 0.0, 0.05], vertical_fov: 45 deg}"
"""Distance at which a can of 66 mm is about 6 px wide in the image."""


def examined(cameras: str) -> tuple[Case, list[Diagnostic]]:
    text = re.sub(r"cameras:\n.*\n", f"cameras: {cameras}\n", TEXT)
    case = Case(parse_task(text), assets())
    return case, list(check_sizes(case))


@pytest.mark.parametrize("cure", ["vertical_fov", "position", "size"])
def test_small_things_are_told_with_a_cure(cure: str) -> None:
    case, (told,) = examined(f"{{front: {FAR}}}")
    median, least = case.views["front"].widths["items"]
    assert least <= median < LEAST_PIXELS and f"are {median:.0f} pixels wide" in told.what
    assert told.field == "cameras.front.vertical_fov" and not told.is_certain
    pattern = rf"{cure}: (\[.*?\]|\d+ deg)"
    better = re.search(pattern, told.instead)
    assert better
    changed = re.sub(pattern, better[0], FAR[:-1] + ", size: [320, 240]}")
    case, found = examined(f"{{front: {changed}}}")
    assert not found and case.views["front"].widths["items"][0] == pytest.approx(ENOUGH_PIXELS, abs=3)


def test_a_far_camera_beside_a_near_one_passes() -> None:
    case, found = examined(f"{{far: {FAR}, front: front}}")
    assert not found and case.views["far"].widths["items"][0] < LEAST_PIXELS


def test_what_is_out_of_view_is_named() -> None:
    narrow = "{position: [1.4, 0.0, 0.7], look_at: [0.45, 0.0, 0.05], vertical_fov: 22 deg}"
    case, _ = examined(f"{{front: front, narrow: {narrow}}}")
    assert case.views["front"].out_of_view == ()
    assert set(case.views["narrow"].out_of_view) == {"'organic'", "'recycling'", "'residual'", "gripper"}


def test_things_that_reach_behind_cameras_pass() -> None:
    camera = parse_task(TEXT).cameras["front"].camera("front")
    pose = still_pose(camera)
    column = pose[:3, 3] + np.linspace(-0.1, 1.0, 12)[:, None] * pose[:3, 2]
    view = _view(camera, {"items": [column]}, {})
    assert view.widths == {} and view.out_of_view == ()


def test_hands_are_judged_by_what_they_hold() -> None:
    case, found = examined("front+wrist")
    assert not found and case.views["wrist"].widths["items"][0] > 2 * ENOUGH_PIXELS
    away = "{mount: hand, position: [0.08, 0, 0.04], look_at: [0.5, 0, 0.0], vertical_fov: 60 deg}"
    case, (told,) = examined(f"{{front: front, wrist: {away}}}")
    assert told.field == "cameras.wrist.look_at" and told.instead == "write look_at: [0, 0, 0.1]"
    assert case.views["wrist"].out_of_view == ("place between the fingers",)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "group"),
    [
        ("sort_trash", "items"),
        ("pack_box", "blocks"),
        ("put_in_drawer", "items"),
        pytest.param("handover_block", "block", marks=pytest.mark.long),
    ],
)
def test_shipped_cameras_frame_the_work(name: str, group: str) -> None:
    task = load_task(name)
    case = Case(task, load_assets(task))
    assert not list(check_sizes(case))
    view = next(case.views[camera] for camera, one in task.cameras.items() if not one.mount)
    assert view.out_of_view == () and view.widths[group][0] >= ENOUGH_PIXELS
