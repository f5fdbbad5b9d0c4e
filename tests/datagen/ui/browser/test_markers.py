from __future__ import annotations

import io
import json
from typing import Any

import numpy as np
import pytest

from nimbus.datagen.ui.browser.scene_view import RADIUS, markers_glb


def test_dots_lie_at_their_places_in_their_colours_without_lighting() -> None:
    import trimesh

    red, blue = (200, 0, 0), (0, 0, 200)
    places = np.array([[0.1, 0.0, 0.0], [0.2, 0.0, 0.0], [0.0, 0.5, 0.1]])
    glb = markers_glb(places, [red, blue, red])
    loaded: Any = trimesh.load(io.BytesIO(glb), file_type="glb")
    meshes = sorted(loaded.geometry.values(), key=lambda mesh: len(mesh.faces))
    assert [len(mesh.faces) for mesh in meshes] == [8, 16]
    assert np.allclose(meshes[0].bounds, places[1] + RADIUS * np.array([[-1], [1]]), atol=1e-6)
    assert meshes[0].volume > 0, "faces look outwards"
    tree = json.loads(glb[20 : 20 + int.from_bytes(glb[12:16], "little")])
    assert all("KHR_materials_unlit" in material["extensions"] for material in tree["materials"])
    colors = [material["pbrMetallicRoughness"]["baseColorFactor"] for material in tree["materials"]]
    assert colors[0] == pytest.approx([0.577580, 0, 0, 1], abs=1e-6)
    assert colors[1] == pytest.approx([0, 0, 0.577580, 1], abs=1e-6)
