"""Trial decompositions of a scene's meshes: as many as Newton makes, with a limit of time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import coacd
import newton
import pytest

from nimbus.datagen.objects.imported import decompositions
from nimbus.datagen.objects.imported.decompositions import SETTINGS, decompose_meshes
from tests.support.refusals import refusal

CORNERS = [(x, y, z) for x in (0.0, 1.0) for y in (0.0, 1.0) for z in (0.0, 1.0)]
SIDES = [0, 1, 3, 2, 4, 6, 7, 5, 0, 4, 5, 1, 2, 3, 7, 6, 0, 2, 6, 4, 1, 5, 7, 3]


MESH = """def Mesh "{}" (
 apiSchemas = ["PhysicsCollisionAPI", "PhysicsMeshCollisionAPI"]
)
{{
 uniform token physics:approximation = "{}"
 point3f[] points = {}
 int[] faceVertexCounts = {}
 int[] faceVertexIndices = {}
}}
"""


@pytest.fixture
def room(tmp_path: Path) -> Path:
    """Return a stage with a mesh of two boxes, an equal one, and one that is not decomposed."""
    points = CORNERS + [(x + 3.0, y, z) for x, y, z in CORNERS]
    corners = SIDES + [corner + 8 for corner in SIDES]
    kinds = {"a": "convexDecomposition", "b": "convexDecomposition", "c": "none"}
    meshes = [MESH.format(name, kind, points, [4] * 12, corners) for name, kind in kinds.items()]
    path = tmp_path / "room.usda"
    path.write_text("#usda 1.0\n" + "".join(meshes))
    return path


def test_newton_makes_the_same_calls(room: Path, monkeypatch: pytest.MonkeyPatch):
    calls: list[tuple[object, ...]] = []
    run = coacd.run_coacd

    def note(mesh: coacd.Mesh, **settings: Any) -> object:
        calls.append((len(mesh.vertices), len(mesh.indices), settings))
        return run(mesh, **settings)

    monkeypatch.setattr(coacd, "run_coacd", note)
    assert decompose_meshes(str(room)) == [str(room)]
    assert calls == [(8, 12, SETTINGS)] * 2
    newton.ModelBuilder().add_usd(str(room))
    assert calls[2:] == calls[:2]


def test_long_decompositions_are_refused(room: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(decompositions, "DECOMPOSITION_SECONDS", 0)
    told = refusal(decompose_meshes, str(room))
    assert "/a, mesh 1 of those to decompose: the convex decompositions take more than 0 s" in told
