"""Surfaces of a layout in the files that RTX renders and in exported stages."""
# The stubs of pxr say that most calls return None.
# pyright: reportAttributeAccessIssue=false, reportGeneralTypeIssues=false, reportArgumentType=false

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nimbus.datagen.episode.layout import SurfaceLook
from nimbus.datagen.robots.robot import load_robot
from nimbus.datagen.textures.color import linear
from nimbus.datagen.textures.procedural import procedural_texture, texture_period
from nimbus.datagen.usd.layout_export import write_layout_stage
from nimbus.datagen.usd.robot import robot_usd
from nimbus.datagen.usd.stage import read_stage
from nimbus.datagen.usd.visual_assets import VisualAssets, write_visual_assets
from tests.support.render_scene import layout

TINT = (0.9, 0.5, 0.2)
SURFACES = {
    "table": SurfaceLook(texture="wood", texture_seed=7, color=(0.9, 1.0, 1.0)),
    "items_0": SurfaceLook(color=TINT),
    "recycling": SurfaceLook(color=TINT),
}


def opened(path: Path) -> Any:
    from pxr import Usd

    return Usd.Stage.Open(str(path))


def surface_of(prim: Any) -> Any:
    """Return the shader of a prim's material."""
    from pxr import UsdShade

    material, _ = UsdShade.MaterialBindingAPI(prim).ComputeBoundMaterial()
    assert material, prim.GetPath()
    return material.ComputeSurfaceSource()[0]


def diffuse(prim: Any) -> tuple[Any, Any]:
    """Return the source of a prim's color: a shader, and the attribute's value."""
    (attribute,) = surface_of(prim).GetInput("diffuseColor").GetValueProducingAttributes()
    from pxr import UsdShade

    return UsdShade.Shader(attribute.GetPrim()), attribute.Get()


@pytest.fixture(scope="module")
def assets(tmp_path_factory: pytest.TempPathFactory) -> VisualAssets:
    stage, shown = read_stage("tabletop"), layout(surfaces=SURFACES)
    fixtures = {name: fixture.prim_path for name, fixture in stage.fixtures.items()}
    return write_visual_assets(
        stage.path,
        robot_usd(load_robot("panda")),
        fixtures,
        shown.physical.objects,
        tmp_path_factory.mktemp("assets"),
        surfaces=SURFACES,
        roles=stage.roles,
    )


def gprims(stage: Any) -> list[Any]:
    from pxr import UsdGeom

    return [prim for prim in stage.Traverse() if prim.IsA(UsdGeom.Gprim)]


def test_everything_that_is_seen_has_a_preview_surface_below_itself(assets: VisualAssets):
    for path in (assets.scene, *assets.bodies.values()):
        stage = opened(path)
        for prim in gprims(stage):
            shader = surface_of(prim)
            assert shader.GetShaderId() == "UsdPreviewSurface"
            assert shader.GetPath().HasPrefix(stage.GetDefaultPrim().GetPath())


def test_a_textured_role_shows_its_picture_as_large_as_the_default_renderer_does(assets: VisualAssets):
    from PIL import Image
    from pxr import UsdGeom

    stage = opened(assets.scene)
    top = stage.GetPrimAtPath(f"{stage.GetDefaultPrim().GetPath()}/table_surface")
    shader, _ = diffuse(top)
    assert shader.GetShaderId() == "UsdUVTexture"
    picture = shader.GetInput("file").Get().resolvedPath
    np.testing.assert_array_equal(np.asarray(Image.open(picture)), procedural_texture("wood", 7, 576))
    np.testing.assert_allclose(shader.GetInput("scale").Get()[:3], linear(np.array([0.9, 1.0, 1.0])), rtol=1e-6)
    mesh = UsdGeom.Mesh(top)
    corners = np.array(mesh.GetPointsAttr().Get())[list(mesh.GetFaceVertexIndicesAttr().Get())]
    uvs = np.array(UsdGeom.PrimvarsAPI(top).GetPrimvar("st").ComputeFlattened())
    np.testing.assert_allclose(uvs, corners[:, :2] / texture_period("table"), rtol=1e-5)
    leg = stage.GetPrimAtPath(f"{stage.GetDefaultPrim().GetPath()}/leg_0")
    assert leg.GetTypeName() == "Mesh" and diffuse(leg)[0].GetShaderId() == "UsdUVTexture"


def test_a_box_that_became_a_mesh_is_the_same_box():
    from pxr import Usd, UsdGeom

    from nimbus.datagen.usd.materials import boxes_as_meshes

    stage: Any = Usd.Stage.CreateInMemory()
    cube: Any = UsdGeom.Cube.Define(stage, "/a/b")
    cube.GetSizeAttr().Set(3.0)
    UsdGeom.XformCommonAPI(cube).SetTranslate((1, 2, 3))
    before = UsdGeom.BBoxCache(0, ["default"]).ComputeWorldBound(cube.GetPrim()).ComputeAlignedRange()
    boxes_as_meshes(stage.GetPrimAtPath("/a"))
    mesh = UsdGeom.Mesh(stage.GetPrimAtPath("/a/b"))
    assert UsdGeom.BBoxCache(0, ["default"]).ComputeWorldBound(mesh.GetPrim()).ComputeAlignedRange() == before
    points = np.array(mesh.GetPointsAttr().Get())
    faces = np.array(mesh.GetFaceVertexIndicesAttr().Get()).reshape(6, 4)
    normals = np.cross(points[faces[:, 1]] - points[faces[:, 0]], points[faces[:, 2]] - points[faces[:, 0]])
    assert (np.sum(normals * points[faces].mean(axis=1), axis=1) > 0).all(), "all look outwards"


def test_tints_multiply_pictures_and_colours(assets: VisualAssets):
    first, second, bin_ = (opened(assets.bodies[name]) for name in ("items_0", "items_1", "recycling"))
    item = gprims(first)[0]
    shader, _ = diffuse(item)
    np.testing.assert_allclose(shader.GetInput("scale").Get()[:3], linear(np.array(TINT)), rtol=1e-6)
    untinted = gprims(second)[0]
    assert not diffuse(untinted)[0].GetInput("scale")
    wall = next(prim for prim in gprims(bin_) if prim.GetName() == "wall_left")
    np.testing.assert_allclose(diffuse(wall)[1], linear(np.array((0.13, 0.32, 0.62)) * np.array(TINT)), rtol=1e-5)


def test_a_stage_without_surfaces_shares_files_of_objects_that_are_alike(tmp_path: Path):
    stage, shown = read_stage("tabletop"), layout()
    twice = [*shown.physical.objects, shown.physical.objects[0]]
    found = write_visual_assets(stage.path, robot_usd(load_robot("panda")), {}, twice, tmp_path)
    assert found.bodies["items_0"].name.startswith("trash_")


@pytest.mark.parametrize("is_link", [True, False])
def test_an_export_keeps_no_image_that_was_there_before(is_link: bool, tmp_path: Path):
    """The current folder may be of others, who know the name of an image."""
    stage, robot, shown = read_stage("tabletop"), load_robot("panda"), layout(surfaces=SURFACES)
    write_layout_stage(tmp_path / "first.usda", stage, robot, shown)
    (picture,) = (tmp_path / "first_textures").iterdir()
    (private := tmp_path / "private.png").write_text("private")
    (other := tmp_path / "again_textures" / picture.name).parent.mkdir()
    other.symlink_to(private) if is_link else other.write_text("another")
    write_layout_stage(tmp_path / "again.usda", stage, robot, shown)
    assert not other.is_symlink() and other.read_bytes() == picture.read_bytes()
    assert private.read_text() == "private"


def test_an_exported_layout_wears_what_was_drawn(tmp_path: Path):
    shown, path = layout(surfaces=SURFACES), tmp_path / "layout.usda"
    write_layout_stage(path, read_stage("tabletop"), load_robot("panda"), shown)
    stage = opened(path)
    shader, _ = diffuse(stage.GetPrimAtPath("/World/scene/table_surface"))
    assert Path(shader.GetInput("file").Get().resolvedPath).parent == tmp_path / "layout_textures"
    item = next(prim for prim in gprims(stage) if str(prim.GetPath()).startswith("/World/objects/items_0/visual"))
    np.testing.assert_allclose(diffuse(item)[0].GetInput("scale").Get()[:3], linear(np.array(TINT)), rtol=1e-6)
    from pxr import UsdValidation

    validators = UsdValidation.ValidationRegistry().GetOrLoadAllValidators()
    errors = UsdValidation.ValidationContext(validators).Validate(stage)
    assert [str(error.GetMessage()) for error in errors] == []
