"""Convex pieces of imported solids: as few as possible, and cavities stay free."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import trimesh

from nimbus.datagen.objects.imported.rooms import find_rooms
from nimbus.datagen.objects.imported.solid import ContactSolid, cut_contact


def cut(mesh: Any, most: int = 16) -> ContactSolid:
    points, faces = np.asarray(mesh.vertices, dtype=np.float64), np.asarray(mesh.faces, dtype=np.int32)
    rooms = find_rooms(points, faces)
    return cut_contact(points, faces, most=most, rooms=rooms, path=Path("thing.ply"), said_in="thing.yaml")


def bumpy_box() -> trimesh.Trimesh:
    """Return a scan of a box whose sides deviate by 1 mm."""
    box: Any = trimesh.creation.box((0.1, 0.08, 0.07)).subdivide().subdivide().subdivide()
    box.vertices += np.random.default_rng(0).uniform(-0.001, 0.001, box.vertices.shape)
    return box


def test_a_nearly_convex_scan_is_one_piece() -> None:
    found = cut(bumpy_box())
    assert len(found.pieces) == 1 and 0.9 < found.growth < 1.12


def test_shells_are_cut_apart() -> None:
    """Three boxes in a row stay three pieces; a box inside another one is ignored."""
    boxes = [trimesh.creation.box((0.02, 0.02, 0.02)).apply_translation((0.03 * i, 0, 0)) for i in range(3)]
    screw = trimesh.creation.box((0.002, 0.002, 0.002))
    found = cut(trimesh.util.concatenate([*boxes, screw]))
    assert len(found.pieces) == 3 and found.growth == pytest.approx(1.0, abs=0.01)


def test_walls_of_a_bowl_do_not_become_wedges() -> None:
    profile = [(0, 0), (0.03, 0), (0.07, 0.045), (0.067, 0.045), (0.028, 0.004), (0, 0.004)]
    found = cut(trimesh.creation.revolve(np.array(profile), sections=24))
    assert len(found.pieces) <= 48 and found.filled <= 0.01 and found.growth < 1.5
