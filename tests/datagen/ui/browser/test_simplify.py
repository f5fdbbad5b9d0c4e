from __future__ import annotations

import numpy as np
import pytest

from nimbus.datagen.meshes.triangles import Triangles
from nimbus.datagen.ui.browser.meshes import simplified

pytest.importorskip("fast_simplification")


def ball(colors: int) -> Triangles:
    """Make a ball of radius 1 in bands of plain colors, each face with separate vertices."""
    import trimesh

    mesh = trimesh.creation.icosphere(subdivisions=5, radius=1.0)
    vertices = np.asarray(mesh.vertices[mesh.faces].reshape(-1, 3), np.float32)
    faces = np.arange(len(vertices), dtype=np.int32).reshape(-1, 3)
    heights = vertices.reshape(-1, 3, 3)[:, :, 2].mean(axis=1)
    band = np.clip(((heights + 1) / 2 * colors).astype(int), 0, colors - 1)
    uvs = np.column_stack([np.repeat((band + 0.5) / colors, 3), np.full(len(vertices), 0.5)]).astype(np.float32)
    return Triangles(vertices=vertices, faces=faces, normals=vertices.copy(), uvs=uvs, colors=np.ones_like(vertices))


def test_a_shape_keeps_its_form_its_colours_and_its_round_look_with_a_tenth_of_its_triangles():
    few = simplified(ball(3))
    assert 0.05 < len(few.faces) / len(ball(3).faces) < 0.2
    np.testing.assert_allclose(np.linalg.norm(few.vertices, axis=1), 1.0, atol=0.02)
    assert sorted(set(few.uvs[:, 0].astype(float).round(3))) == [0.167, 0.5, 0.833]
    outward = (few.normals * few.vertices).sum(axis=1)
    assert np.median(outward) > 0.99


def test_what_has_a_texture_or_few_triangles_is_left_as_it_is():
    assert simplified(textured := ball(40)) is textured
    plain = ball(1)
    small = Triangles(
        vertices=plain.vertices[:30],
        faces=plain.faces[:10],
        normals=plain.normals[:30],
        uvs=plain.uvs[:30],
        colors=plain.colors[:30],
    )
    assert simplified(small) is small
