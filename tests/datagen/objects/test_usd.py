"""The USD file of an object, read back by the simulator."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from scipy.spatial.transform import Rotation

from nimbus.datagen.objects.libraries import open_library
from nimbus.datagen.simulate.newton_library import newton
from tests.support.refusals import refusal

LIBRARY = open_library("trash")


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> object:
    patch = pytest.MonkeyPatch()
    patch.setenv("NIMBUS_CACHE", str(tmp_path_factory.mktemp("cache")))
    yield
    patch.undo()


@pytest.mark.parametrize("kind", LIBRARY.kinds)
def test_the_simulator_reads_one_body_with_its_mass_its_looks_and_its_contacts(kind: str) -> None:
    model = LIBRARY.model(kind, 1)
    builder = newton.ModelBuilder()
    builder.add_usd(str(LIBRARY.usd_path(kind, 1)))
    assert builder.body_count == 1
    assert builder.body_mass[0] == pytest.approx(model.mass, rel=1e-5)
    np.testing.assert_allclose(np.array(builder.body_com[0]), model.center_of_mass, atol=1e-6)
    inertia = np.array(builder.body_inertia[0]).reshape(3, 3)
    np.testing.assert_allclose(inertia, model.inertia, atol=1e-4 * np.abs(model.inertia).max())
    flags = [int(flag) for flag in builder.shape_flags]
    visible, collides = int(newton.ShapeFlags.VISIBLE), int(newton.ShapeFlags.COLLIDE_SHAPES)
    seen = [shape for shape, flag in enumerate(flags) if flag & visible]
    felt = [shape for shape, flag in enumerate(flags) if flag & collides]
    assert len(seen) == 1 and not flags[seen[0]] & collides
    assert len(felt) == len(model.convex_pieces) and not any(flags[shape] & visible for shape in felt)
    for shape in felt:
        assert builder.shape_type[shape] == newton.GeoType.CONVEX_MESH
        assert builder.shape_material_mu[shape] == pytest.approx(model.friction)
    mesh = builder.shape_source[seen[0]]
    assert mesh.uvs is not None and len(mesh.uvs) == len(model.vertices)
    with Image.open(Path(str(mesh.texture))) as texture:
        assert np.array_equal(np.asarray(texture), model.texture)


def test_the_root_prim_carries_what_people_look_for() -> None:
    from pxr import Usd, UsdGeom, UsdPhysics

    model = LIBRARY.model("jar", 0)
    stage: Any = Usd.Stage.Open(str(LIBRARY.usd_path("jar", 0)))
    root = stage.GetDefaultPrim()
    assert UsdGeom.GetStageMetersPerUnit(stage) == 1.0
    assert UsdGeom.GetStageUpAxis(stage) == "Z"
    values = {name: root.GetAttribute(f"nimbus:{name}").Get() for name in ("kind", "class", "category", "symmetry")}
    assert values == {"kind": "jar", "class": "recycling", "category": "glass jar", "symmetry": "revolution"}
    np.testing.assert_allclose(root.GetAttribute("nimbus:keypoints:lid").Get(), model.keypoints["lid"], atol=1e-6)
    mass: Any = UsdPhysics.MassAPI(root)
    turn = mass.GetPrincipalAxesAttr().Get()
    axes = Rotation.from_quat([*turn.GetImaginary(), turn.GetReal()]).as_matrix()
    inertia = axes @ np.diag(mass.GetDiagonalInertiaAttr().Get()) @ axes.T
    np.testing.assert_allclose(inertia, model.inertia, atol=1e-4 * model.inertia.max())


def test_the_file_is_made_once_and_nothing_else_is_left(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NIMBUS_CACHE", str(tmp_path))
    path = LIBRARY.usd_path("tin", 2)
    first = path.stat().st_mtime_ns
    assert LIBRARY.usd_path("tin", 2) == path
    assert path.stat().st_mtime_ns == first
    assert sorted(file.name for file in path.parent.iterdir()) == ["tin-002.png", "tin-002.usda"]


def test_the_bytes_are_the_same_when_made_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    made = []
    for folder in ("a", "b"):
        monkeypatch.setenv("NIMBUS_CACHE", str(tmp_path / folder))
        path = LIBRARY.usd_path("cup", 3)
        made.append((path.read_bytes(), path.with_suffix(".png").read_bytes()))
    assert made[0] == made[1]


def test_a_path_is_no_kind(tmp_path: Path):
    """The kind of a stored layout of others could name any USD file, which would be composed unchecked."""
    (tmp_path / "evil-000.usda").write_text("#usda 1.0\n")
    assert "unknown kind" in refusal(LIBRARY.usd_path, str(tmp_path / "evil"), 0)
