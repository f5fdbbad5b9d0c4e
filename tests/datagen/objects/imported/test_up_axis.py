"""Up axes, symmetries and supports of imported solids."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import trimesh

from nimbus.datagen.arrays import FloatArray, IndexArray
from nimbus.datagen.objects.imported.supports import find_supports
from nimbus.datagen.objects.imported.surface import up_matrix
from nimbus.datagen.objects.imported.symmetry import find_symmetry
from nimbus.datagen.objects.imported.up_axis import AXES, vote_up

MUG = [(0, 0), (0.04, 0), (0.04, 0.09), (0.036, 0.09), (0.036, 0.005), (0, 0.005)]
BOTTLE = [(0, 0), (0.035, 0), (0.035, 0.14), (0.012, 0.17), (0.012, 0.2), (0, 0.2)]


def arrays(mesh: Any) -> tuple[FloatArray, IndexArray]:
    return np.asarray(mesh.vertices, dtype=np.float64), np.asarray(mesh.faces, dtype=np.int32)


def turned(profile: list[tuple[float, float]]) -> trimesh.Trimesh:
    return trimesh.creation.revolve(np.array(profile), sections=32)


@pytest.mark.parametrize("axis", AXES)
def test_a_cup_opens_upwards_whatever_its_format_means(axis: str) -> None:
    points, faces = arrays(turned(MUG))
    vote = vote_up(points @ up_matrix(axis), faces)
    assert vote.axis == axis and vote.runner_up != axis and vote.reasons["room"] > 1


def test_a_bottle_stands_where_its_category_says_so() -> None:
    points, faces = arrays(turned(BOTTLE))
    assert vote_up(points @ up_matrix("y"), faces, shape="tall").axis == "y"


def test_a_format_is_believed_where_nothing_speaks_against_it() -> None:
    points, faces = arrays(trimesh.creation.box((0.05, 0.04, 0.06)))
    for axis in ("z", "y", "-x"):
        assert vote_up(points, faces, usual=axis, is_said=True).axis == axis
    vote = vote_up(points, faces)
    assert vote.axis == "z" and vote.scores["z"] == pytest.approx(sum(vote.reasons.values()))


@pytest.mark.parametrize(
    ("mesh", "symmetry"),
    [
        (turned(BOTTLE), "revolution"),
        (trimesh.creation.icosphere(radius=0.04), "revolution"),
        (trimesh.creation.box((0.05, 0.04, 0.06)), "box"),
        (trimesh.creation.box((0.05, 0.05, 0.06)), "box"),
        (trimesh.creation.cone(radius=0.03, height=0.1).apply_translation((0.2, 0, 0)), "revolution"),
    ],
)
def test_turns_that_change_nothing_are_found(mesh: Any, symmetry: str) -> None:
    assert find_symmetry(*arrays(mesh)) == symmetry


def test_a_handle_and_a_wedge_have_no_symmetry() -> None:
    handle = trimesh.creation.torus(major_radius=0.03, minor_radius=0.008).apply_translation((0.06, 0, 0))
    assert find_symmetry(*arrays(trimesh.util.concatenate([turned(MUG), handle]))) == "none"
    wedge = trimesh.convex.convex_hull(
        np.array([[0, 0, 0], [0.1, 0, 0], [0, 0.06, 0], [0.1, 0.06, 0], [0, 0, 0.05], [0, 0.06, 0.05]])
    )
    assert find_symmetry(*arrays(wedge)) == "none"


def test_supports_are_level_and_large() -> None:
    step = trimesh.creation.box((0.1, 0.1, 0.02)).apply_translation((0.1, 0, 0.01))
    block = trimesh.creation.box((0.1, 0.1, 0.06)).apply_translation((0, 0, 0.03))
    knob = trimesh.creation.box((0.02, 0.02, 0.1)).apply_translation((0.2, 0, 0.05))
    found = find_supports(*arrays(trimesh.util.concatenate([step, block, knob])))
    assert [support.height for support in found] == pytest.approx([0.06, 0.02])
    assert [support.area for support in found] == pytest.approx([0.01, 0.01])
    np.testing.assert_allclose([found[1].lower, found[1].upper], [[0.05, -0.05], [0.15, 0.05]])
    assert not find_supports(*arrays(trimesh.creation.icosphere(radius=0.05)))
