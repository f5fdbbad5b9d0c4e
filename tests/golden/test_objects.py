"""Golden values of generated objects, imported meshes and robots."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from nimbus.datagen.files.scene_files import scene_names
from nimbus.datagen.meshes import simplify
from nimbus.datagen.meshes.triangles import Triangles
from nimbus.datagen.objects.imported.prepare import PREPARATION_VERSION, prepare_mesh
from nimbus.datagen.objects.imported.settings import AssetSettings
from nimbus.datagen.objects.libraries import open_library
from nimbus.datagen.objects.library import scale_object
from nimbus.datagen.objects.model import ObjectModel
from nimbus.datagen.plan.grasp import GRASP_VERSION
from nimbus.datagen.robots.robot import load_robot
from nimbus.datagen.robots.urdf import assemble, lock_joints
from nimbus.datagen.usd.robot import CONVERSION_VERSION
from nimbus.runner.media.object_sheet import grasp_counts
from tests.golden.values import GoldenFile, digest, sketch
from tests.golden.versions import GENERATOR
from tests.support.shipped_robots import load_shipped_robot

COLORS = ("red", "orange", "yellow", "green", "blue", "purple", "white", "brown", "grey", "black", "pink", "amber")


def kinds() -> list[tuple[str, str]]:
    """Return each kind of each library; if kinds differ only in color, only the first of them."""
    found = []
    for library in scene_names("objects"):
        shapes: set[str] = set()
        for kind in open_library(library).kinds:
            first, _, rest = kind.partition("_")
            shape = rest if first in COLORS else kind
            if shape not in shapes:
                found.append((library, kind))
            shapes.add(shape)
    return found


def mesh_digest(model: ObjectModel) -> str:
    """Return a digest of NumPy's results: visible surface, texture, frames and cavities of all parts."""
    surfaces = [(part.vertices, part.faces, part.normals, part.uvs) for part in (model, *model.parts)]
    joints = [(part.name, vars(part.joint)) for part in model.parts]
    return digest(surfaces, joints, model.texture, model.frames, model.cavities, model.keypoints, model.color)


def contact_sketch(model: ObjectModel) -> list[float]:
    """Return a sketch of the results of compiled libraries: mass, hulls and rest poses."""
    hulls = [piece[0].mean(axis=0) for part in (model, *model.parts) for piece in part.convex_pieces]
    rests = [np.append(pose.wxyz, pose.height) for pose in model.rest_poses]
    numbers = [np.ravel(hulls), np.ravel(rests), model.center_of_mass, [model.mass, model.friction]]
    return sketch(np.concatenate(numbers))


@pytest.mark.parametrize(("library", "kind"), kinds())
def test_generated_object_matches_golden_value(golden: GoldenFile, library: str, kind: str) -> None:
    model = open_library(library).model(kind, 1)
    value = [mesh_digest(model), *contact_sketch(model)]
    golden.check(f"{library}/{kind}", value, GENERATOR, tolerance=1e-4)


def test_scaled_object_matches_golden_value(golden: GoldenFile) -> None:
    model = scale_object(open_library("kitchen").model("mug", 0), 0.8)
    golden.check("scaled object", [mesh_digest(model), *contact_sketch(model)], GENERATOR, tolerance=1e-4)


def test_written_object_matches_golden_value(golden: GoldenFile, tmp_path: Path) -> None:
    from pxr import Usd

    from nimbus.datagen.objects.usd import write_usd

    for kind, library in (("can", "trash"), ("drawer_cabinet", "furniture")):
        write_usd(open_library(library).model(kind, 0), tmp_path / f"{kind}.usda")
        stage: Any = Usd.Stage.Open(str(tmp_path / f"{kind}.usda"))
        found = [str(prim.GetPath()) + str(prim.GetTypeName()) for prim in stage.Traverse()]
        numbers = [
            float(value)
            for prim in stage.Traverse()
            for attribute in prim.GetAttributes()
            if isinstance(value := attribute.Get(), float | int)
        ]
        golden.check(f"USD of {kind}", [digest(found), *sketch(numbers)], GENERATOR, tolerance=1e-3)


def test_imported_mesh_matches_golden_value(
    golden: GoldenFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NIMBUS_CACHE", str(tmp_path / "cache"))
    corners = [(0, 0), (0.08, 0), (0.08, 0.02), (0.02, 0.02), (0.02, 0.06), (0, 0.06)]
    lines = [f"v {x} {y} {z}" for z in (0, 0.03) for x, y in corners]
    lines += [f"f {i + 1} {(i + 1) % 6 + 1} {(i + 1) % 6 + 7} {i + 7}" for i in range(6)]
    for around in ((1, 2, 3, 4), (1, 4, 5, 6)):
        lines += ["f " + " ".join(map(str, reversed(around))), "f " + " ".join(str(corner + 6) for corner in around)]
    (tmp_path / "bracket.obj").write_text("\n".join(lines) + "\n")
    settings = AssetSettings.model_validate({"up": "z"})
    made = prepare_mesh(tmp_path / "bracket.obj", settings, digest="golden", said_in="bracket.yaml")
    bounds = [made.vertices.min(axis=0), made.vertices.max(axis=0), made.solid_vertices.mean(axis=0)]
    value = [*sketch(bounds), len(made.pieces), len(made.faces)]
    versions = {"PREPARATION_VERSION of imported meshes": PREPARATION_VERSION}
    golden.check("imported mesh", value, versions | GENERATOR, tolerance=1e-3)


def test_simplified_mesh_matches_golden_value(
    golden: GoldenFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NIMBUS_CACHE", str(tmp_path))
    model = open_library("trash").model("bottle", 0)
    surface = Triangles(
        vertices=model.vertices.astype(np.float32),
        faces=model.faces.astype(np.int32),
        normals=model.normals.astype(np.float32),
        uvs=model.uvs.astype(np.float32),
        colors=np.ones((len(model.vertices), 3), np.float32),
    )
    made = simplify.simplify(surface)
    value = [len(made.faces), *sketch([made.vertices.min(axis=0), made.vertices.max(axis=0)])]
    versions = {"_VERSION of render/simplify": int(simplify._VERSION)}
    golden.check("simplified mesh", value, versions | GENERATOR, tolerance=1e-3)


def test_grasp_search_matches_golden_value(golden: GoldenFile) -> None:
    gripper = load_robot("panda").gripper.shape
    value = {kind: grasp_counts(open_library("kitchen"), kind, gripper) for kind in ("mug", "knife")}
    golden.check("grasps", value, {"GRASP_VERSION of grasps": GRASP_VERSION} | GENERATOR)


@pytest.mark.parametrize("name", scene_names("robots"))
def test_assembled_robot_matches_golden_value(golden: GoldenFile, name: str) -> None:
    robot = load_shipped_robot(name)
    if not all(piece.package for piece in robot.pieces):
        pytest.skip("MuJoCo reads its model, and decides the last digits")
    root = assemble(robot.pieces, robot=robot.name)
    lock_joints(root, dict(robot.locked))
    for mesh in root.iter("mesh"):
        mesh.set("filename", Path(mesh.get("filename", "")).name)
    value = digest(ElementTree.tostring(root, encoding="unicode"))
    golden.check(f"robot {name}", value, {"CONVERSION_VERSION of robots": CONVERSION_VERSION})
