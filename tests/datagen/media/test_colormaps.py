from __future__ import annotations

import numpy as np
import pytest

from nimbus.datagen.media.colormaps import depth_colors, flow_colors, mask_colors, mask_overlay, normal_colors


@pytest.mark.parametrize(
    "depth", [np.array([[0, 500, 1000, 2000]], np.uint16), np.array([[0, 0.5, 1, 2]], np.float32)], ids=["mm", "m"]
)
def test_depth_goes_from_blue_to_red(depth: np.ndarray):
    colors = depth_colors(depth)
    assert colors[0, 0].tolist() == [0, 0, 0]
    assert colors[0, 1, 2] > colors[0, 1, 1] and colors[0, 3, 0] > colors[0, 3, 2]


def test_depth_of_nothing_is_black():
    assert not depth_colors(np.zeros((2, 2), np.uint16)).any()


def test_each_instance_has_its_own_color():
    mask = np.arange(64, dtype=np.uint8)[None]
    assert len(np.unique(mask_colors(mask)[0], axis=0)) == 64
    assert not mask_colors(mask)[0, 0].any()


def test_overlay_keeps_the_background_grey():
    colors = mask_overlay(np.arange(8, dtype=np.uint8)[None], np.full((1, 8, 3), 128, np.uint8))[0]
    assert len(np.unique(colors, axis=0)) == 8
    assert np.ptp(colors[0]) == 0 and np.ptp(colors[1]) > 0


def test_normals_use_all_tones():
    assert normal_colors(np.array([[-128, 0, 127]], np.int8)).tolist() == [[0, 128, 255]]


def test_flow_is_white_where_nothing_moves():
    flow = np.array([[[0, 0], [8, 0], [np.nan, 0]]], np.float16)
    white, right, nothing = flow_colors(flow)[0].tolist()
    assert white == [255, 255, 255] and right == [255, 0, 0] and nothing == [0, 0, 0]
