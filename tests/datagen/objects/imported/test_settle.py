"""Rest poses found by dropping objects in physics."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import trimesh

from nimbus.datagen.objects.imported.settle import RestingWay, name_rest_poses, settle
from nimbus.datagen.objects.mass import mass_properties
from nimbus.datagen.objects.shapes.contact import limited_hull

NAMES = ("upright", "lying", "on_side", "inverted")


def ways_of(mesh: Any, drops: int = 64) -> tuple[RestingWay, ...]:
    center, inertia = mass_properties(np.asarray(mesh.vertices), np.asarray(mesh.faces), mass=0.2, in_surface=False)
    return settle([limited_hull(np.asarray(mesh.vertices))], center, inertia, 0.2, drops=drops)


def bumpy(size: tuple[float, float, float], bump: float) -> trimesh.Trimesh:
    box = trimesh.creation.box(size).subdivide().subdivide().subdivide()
    box.vertices += np.random.default_rng(1).uniform(-bump, bump, box.vertices.shape)
    return box


def test_a_bumpy_box_rests_on_its_sides() -> None:
    """With bumps of 1 mm, the hull has facets that touch no other part within 0.05 mm."""
    ways = ways_of(bumpy((0.06, 0.16, 0.21), 0.001), drops=48)
    wide = next(way for way in ways if abs(way.down[0]) > 0.98)
    assert wide is ways[0] and wide.share > 0.25 and wide.margin > np.deg2rad(50)
    assert all(np.abs(way.down).max() > 0.98 for way in ways)
    assert wide.height == pytest.approx(0.03, abs=0.002)
    poses = {pose.name: pose for pose in name_rest_poses(ways, NAMES)}
    assert "lying" in poses and poses["lying"].tilt_margin == wide.margin


def test_margins_are_those_of_the_solid() -> None:
    ways = ways_of(trimesh.creation.box((0.05, 0.04, 0.06)))
    for way in ways:
        axis = int(np.argmax(np.abs(way.down)))
        sides = np.delete(np.array([0.05, 0.04, 0.06]), axis)
        assert way.margin == pytest.approx(np.arctan(sides.min() / (0.05, 0.04, 0.06)[axis]), abs=np.deg2rad(2.5))
    assert sum(way.share for way in ways) == pytest.approx(1.0)


def test_what_rolls_lies_in_one_way() -> None:
    can = trimesh.creation.cylinder(radius=0.033, height=0.12, sections=48)
    ways = ways_of(can)
    assert abs(ways[0].down[2]) < 0.05 and ways[0].margin < np.deg2rad(12) and len(ways) <= 3
    poses = name_rest_poses(ways, NAMES)
    assert poses[0].name == ("upright" if len(ways) > 1 else "lying")


def test_a_bowl_lies_as_it_stands() -> None:
    profile = [(0, 0), (0.03, 0), (0.07, 0.045), (0.067, 0.045), (0.028, 0.004), (0, 0.004)]
    names = [pose.name for pose in name_rest_poses(ways_of(trimesh.creation.revolve(np.array(profile))), NAMES)]
    assert names[0] == "upright" and "lying" in names


def test_oblique_poses_are_lying_poses() -> None:
    """An irregular object without a base mostly rests in a leaning pose, neither standing nor lying flat."""
    leaning, flat = (
        RestingWay(down=np.array(down), height=0.03, share=share, margin=0.5)
        for down, share in (((0.6, 0.0, -0.8), 0.7), ((1.0, 0.0, 0.0), 0.3))
    )
    (pose,) = name_rest_poses((flat, leaning), NAMES[:2])
    assert pose.name == "lying" and pose.wxyz == name_rest_poses((leaning,), ())[0].wxyz


def test_heights_are_those_of_the_origin() -> None:
    """The origin of this box is in a corner of its base."""
    box = trimesh.creation.box((0.05, 0.07, 0.09)).apply_translation((0.025, 0.035, 0.045))
    for way in ways_of(box):
        axis = int(np.argmax(np.abs(way.down)))
        expected = (0.05, 0.07, 0.09)[axis] if way.down[axis] > 0 else 0.0
        assert way.height == pytest.approx(expected, abs=1e-6)
        moved = way.about(np.array([0.025, 0.035, 0.045]))
        assert moved.height == pytest.approx((0.025, 0.035, 0.045)[axis], abs=1e-6)
        assert (RestingWay.of_numbers(way.numbers).numbers == way.numbers).all()


def test_settling_is_the_same_again() -> None:
    box = bumpy((0.05, 0.07, 0.09), 0.001)
    for one, other in zip(ways_of(box, 12), ways_of(box, 12), strict=True):
        assert one.share == other.share and (one.down == other.down).all()
