"""Lamps of scenes that name none."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from nimbus.datagen.navigate.ceiling_lamps import ceiling_lamps
from nimbus.datagen.navigate.read.open_scene import open_scene
from tests.support.foreign_scenes import room_things, write_glb
from tests.support.splat_room import outward_box


def test_each_room_gets_a_lamp(tmp_path: Path):
    """A wall without a door divides the house, and the roof of the house counts as a floor too."""
    things = room_things() | {
        "wall": outward_box((1.9, 0.0, 0.0), (2.0, 4.0, 2.5)),
        "roof": outward_box((-0.1, -0.1, 2.6), (5.1, 4.1, 2.8)),
    }
    lamps = ceiling_lamps(open_scene(write_glb(tmp_path / "house.glb", things)))
    assert np.allclose(lamps[:, 2], 2.4, atol=0.01)
    assert (lamps[:, 0] < 1.9).any() and (lamps[:, 0] > 2.0).any()
    assert np.all((lamps[:, :2] > 0) & (lamps[:, :2] < (5, 4)))
