"""Cameras of proposed tasks: things are whole in the image, and large in its middle."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from nimbus.datagen.geometry.cameras import is_in_picture, project, world_T_camera
from nimbus.datagen.propose.catalogue import KindEntry
from nimbus.datagen.propose.framing import frame_work, seen_width
from nimbus.datagen.tasks.task_file import CameraSettings, Region, presets

REGIONS = {
    "pot": Region(on="table", center=(0.44, -0.34), size=(0.03, 0.03)),
    "spoon": Region(on="table", center=(0.42, 0.46), size=(0.03, 0.03)),
}
SPANS = {"pot": 0.11, "spoon": 0.1}


def shares_of(entry: dict[str, Any], points: np.ndarray) -> np.ndarray:
    """Return the positions (n, 2) of points in the image, as fractions of its sides; all points must be inside it."""
    lists = {key: tuple(value) if isinstance(value, list) else value for key, value in entry.items()}
    camera = CameraSettings.model_validate(lists).camera("front")
    pose = world_T_camera(np.array([camera.position]), np.array([camera.wxyz]))[0]
    found = project(camera, pose, points)
    assert is_in_picture(camera, found).all()
    return found[:, :2] / (camera.width, camera.height)


def test_things_at_the_edges_are_whole():
    signs = np.array(list(np.ndindex(2, 2, 2))) * (2, 2, 0.12) - (1, 1, 0)
    boxes = [signs * (span, span, 1) + (*REGIONS[name].center, 0) for name, span in SPANS.items()]
    shares = shares_of(frame_work("front", REGIONS, SPANS, top=0.0, widths=[0.1]), np.vstack(boxes))
    assert (shares.min(axis=0) + shares.max(axis=0)) / 2 == pytest.approx([0.5, 0.5], abs=0.05)
    assert np.ptp(shares[:, 0]) > 0.8


def test_cameras_at_the_shoulder_keep_their_distance():
    region = {"cup": Region(on="table", center=(0.5, 0.1), size=(0.03, 0.03))}
    entry = frame_work("shoulder", region, {}, top=0.0, widths=[0.1])
    preset = presets("cameras")["shoulder"]
    assert math.dist(entry["position"], entry["look_at"]) >= math.dist(preset["position"], preset["look_at"]) - 0.02


def test_long_things_are_seen_by_their_length():
    outline = ((-0.1, -0.015), (0.1, -0.015), (0.1, 0.015), (-0.1, 0.015))
    fork = cast(KindEntry, SimpleNamespace(outline=outline, size=(0.2, 0.03, 0.02), rests=("lying",)))
    assert 0.05 < seen_width(fork, "front") < 0.15
    assert seen_width(fork, "front", yaw=0.0) < 0.04  # the camera looks along the fork
    assert seen_width(fork, "front", yaw=math.pi / 2) > 0.19
    assert seen_width(fork, "front", state="upright") == 0.02
