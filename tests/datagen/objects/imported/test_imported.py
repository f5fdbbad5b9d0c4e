"""The user's meshes: every format, repairs, refusals, and cached results."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import trimesh
from PIL import Image
from trimesh.visual import TextureVisuals
from trimesh.visual.material import PBRMaterial, SimpleMaterial

from nimbus.datagen.errors import InputError
from nimbus.datagen.execute.motions import grasps
from nimbus.datagen.objects.imported import prepare
from nimbus.datagen.objects.imported.library import AssetLibrary, _digest, _referred
from nimbus.datagen.objects.imported.read import read_surface
from nimbus.datagen.objects.libraries import open_library
from nimbus.datagen.objects.library import ObjectLibrary
from nimbus.datagen.objects.model import ObjectModel
from nimbus.datagen.robots.robot import load_robot
from tests.support.refusals import refusal
from tests.support.task_attempts import successes

SIZE = np.array([0.05, 0.04, 0.06])
RED, BLUE = (200, 30, 30), (30, 40, 200)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NIMBUS_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "assets"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / f"things_{tmp_path.name.rsplit('_', 1)[-1]}{abs(hash(tmp_path))}"
    place.mkdir()
    return place


def opened(folder: Path) -> ObjectLibrary:
    return open_library(f"{folder}/")


def only(folder: Path) -> ObjectModel:
    library = opened(folder)
    (kind,) = library.kinds
    return library.model(kind, 0)


def painted_box() -> trimesh.Trimesh:
    """Return a box whose sides at +x are red and whose other sides are blue."""
    box = trimesh.creation.box(SIZE)
    box.unmerge_vertices()
    picture = np.full((32, 64, 3), BLUE, dtype=np.uint8)
    picture[:, 32:] = RED
    uv = np.where(np.repeat(box.face_normals[:, 0] > 0.5, 3)[:, None], [[0.75, 0.5]], [[0.25, 0.5]])
    material = SimpleMaterial(image=Image.fromarray(picture))
    box.visual = TextureVisuals(uv=uv, material=material)
    return box


def write_usd(path: Path, *, unit: float = 0.01, up: str = "Z") -> None:
    """Write a red box in centimeters whose sides are polygons of four corners."""
    import newton_usd_schemas  # noqa: F401  # USD lists its schemas once, with the first stage; robots need these
    from pxr import Gf, Usd, UsdGeom, Vt

    stage: Any = Usd.Stage.CreateNew(str(path))
    UsdGeom.SetStageMetersPerUnit(stage, unit)
    UsdGeom.SetStageUpAxis(stage, up)
    UsdGeom.Xform.Define(stage, "/box")
    mesh: Any = UsdGeom.Mesh.Define(stage, "/box/mesh")
    x, y, z = (float(side) for side in SIZE / 2 / unit)
    mesh.CreatePointsAttr([(a * x, b * y, c * z) for a in (-1, 1) for b in (-1, 1) for c in (-1, 1)])
    mesh.CreateFaceVertexCountsAttr([4] * 6)
    sides = [0, 1, 3, 2, 4, 6, 7, 5, 0, 4, 5, 1, 2, 3, 7, 6, 0, 2, 6, 4, 1, 5, 7, 3]
    mesh.CreateFaceVertexIndicesAttr(Vt.IntArray(sides))
    mesh.CreateDisplayColorAttr([Gf.Vec3f(0.6, 0.01, 0.01)])
    stage.GetRootLayer().Save()


@pytest.mark.parametrize("suffix", ["obj", "glb", "stl", "ply", "usda", "usdc"])
def test_every_format_gives_the_same_thing(folder: Path, suffix: str) -> None:
    path = folder / f"Juice Box.{suffix}"
    if suffix.startswith("usd"):
        write_usd(path)
    elif suffix == "glb":  # y up, as the format specifies
        box = painted_box()
        box.apply_transform(trimesh.transformations.rotation_matrix(-np.pi / 2, [1, 0, 0]))
        box.export(path)
    else:
        painted_box().export(path)
    model = only(folder)
    assert (model.kind, model.category, model.object_class) == ("juice_box", "juice box", "object")
    np.testing.assert_allclose(np.ptp(model.bounds, axis=0), SIZE, atol=1e-6)
    assert model.mass == pytest.approx(400 * SIZE.prod(), rel=1e-6)
    assert len(model.convex_pieces) == 1
    assert {pose.name for pose in model.rest_poses} >= {"lying"}
    seen = model.texture.reshape(-1, 3)
    if suffix in ("obj", "glb"):
        right = model.vertices[model.faces].mean(axis=1)[:, 0] > 0.02
        assert tuple(colors_of(model)[right][0]) == RED and tuple(colors_of(model)[~right][0]) == BLUE
    elif suffix.startswith("usd"):
        assert seen[0][0] > 150 > seen[0][1]
    axes = grasps.model_axes(model.library, model.kind, 0, load_robot("panda").gripper.shape)
    assert len(axes.middles) > 50


def colors_of(model: ObjectModel) -> Any:
    uv = model.uvs[model.faces].mean(axis=1)
    height, width = model.texture.shape[:2]
    return model.texture[((1 - uv[:, 1]) * height).astype(int), (uv[:, 0] * width).astype(int)]


def test_settings_beside_a_mesh_and_of_the_folder_are_obeyed(folder: Path) -> None:
    trimesh.creation.box(SIZE * 1000).export(folder / "brick.stl")
    trimesh.creation.icosphere(subdivisions=2, radius=3).export(folder / "ball.ply")
    (folder / "brick.yaml").write_text("{class: toy, unit: mm, mass: 90 g, up: x, keypoints: {knob: [1 cm, 0, 0]}}\n")
    (folder / "library.yaml").write_text(
        "defaults: {class: sphere, unit: cm, density: 100, frames: {tip: {at: [0, 0, 3 cm]}}}\n"
    )
    library = opened(folder)
    assert library.kinds == ("ball", "brick") and set(library.classes) == {"toy", "sphere"}
    brick, ball = library.model("brick", 0), library.model("ball", 0)
    assert brick.mass == pytest.approx(0.09)
    np.testing.assert_allclose(np.ptp(brick.bounds, axis=0), SIZE[[2, 1, 0]], atol=1e-6)
    np.testing.assert_allclose(brick.keypoints["knob"], [0.01, 0, 0])
    assert ball.bounds[1, 0] == pytest.approx(0.03, rel=0.02)
    np.testing.assert_allclose(ball.frames["tip"][:3, 3], [0, 0, 0.03], atol=1e-6)


def tube() -> trimesh.Trimesh:
    return trimesh.creation.annulus(r_min=0.028, r_max=0.035, height=0.06)


def test_what_is_open_stays_open_in_contact(folder: Path) -> None:
    tube().export(folder / "tube.ply")
    model = only(folder)
    assert 6 <= len(model.convex_pieces) <= 16
    for vertices, faces in model.convex_pieces:
        assert len(vertices) <= 32
        hull = trimesh.Trimesh(vertices, faces)
        assert not hull.contains([[0.0, 0.0, 0.0], [0.015, 0, 0], [0, -0.015, 0.02]]).any()
    assert sum(trimesh.Trimesh(*piece).volume for piece in model.convex_pieces) == pytest.approx(
        tube().volume, rel=0.35
    )


def test_a_fine_mesh_is_simplified_and_keeps_its_picture(folder: Path) -> None:
    sphere = trimesh.creation.icosphere(subdivisions=5, radius=0.03)
    half = sphere.vertices[:, 2] > 0
    uv = np.where(half[:, None], [[0.75, 0.5]], [[0.25, 0.5]])
    picture = np.full((16, 64, 3), BLUE, dtype=np.uint8)
    picture[:, 32:] = RED
    material = PBRMaterial(baseColorTexture=Image.fromarray(picture))
    sphere.visual = TextureVisuals(uv=uv, material=material)
    sphere.export(folder / "ball.glb")
    model = only(folder)
    assert 300 < len(model.faces) <= 6000 < len(sphere.faces)
    middles = model.vertices[model.faces].mean(axis=1)
    np.testing.assert_allclose(np.linalg.norm(model.vertices, axis=1), 0.03, atol=4e-4)
    colors = colors_of(model)
    assert (colors[middles[:, 1] > 0.004][:, 0] > 150).mean() > 0.98 or (
        colors[middles[:, 1] < -0.004][:, 0] > 150
    ).mean() > 0.98


def test_small_faults_are_mended(folder: Path) -> None:
    box = trimesh.creation.box(SIZE)
    box = box.subdivide()
    faces = np.vstack([box.faces[2:], box.faces[5:6], [[0, 0, 1]]])  # two missing, one twice, one without area
    faces[10] = faces[10][::-1]  # one turned over
    trimesh.Trimesh(box.vertices, faces, process=False).export(folder / "box.ply")
    model = only(folder)
    assert model.mass == pytest.approx(400 * SIZE.prod(), rel=0.05)


def flat_sheet() -> trimesh.Trimesh:
    return trimesh.Trimesh([[0, 0, 0], [0.1, 0, 0], [0.1, 0.1, 0], [0, 0.1, 0]], [[0, 1, 2], [0, 2, 3]], process=False)


def cup_without_thickness() -> trimesh.Trimesh:
    cup = trimesh.creation.cylinder(radius=0.04, height=0.08, sections=80)
    return trimesh.Trimesh(cup.vertices, cup.faces[cup.face_normals[:, 2] < 0.5], process=False)


def half_a_box() -> trimesh.Trimesh:
    box = trimesh.creation.box(SIZE)
    return trimesh.Trimesh(box.vertices, box.faces[:6], process=False)


@pytest.mark.parametrize(
    ("mesh", "settings", "message"),
    [
        (
            trimesh.creation.box(SIZE * 1000),
            "",
            r"thing\.ply: 50 m x 40 m x 60 m large.*like mm \(6 cm long\): write 'unit: mm' in thing\.yaml",
        ),
        (
            trimesh.creation.box(SIZE),
            "unit: mm",
            r"expected 3 mm to.*look like m \(6 cm long\): write 'unit: m' in thing\.yaml",
        ),
        (trimesh.creation.box(SIZE * 100), "", r"look like cm \(6 cm long\)"),
        (flat_sheet(), "", r"flat: .*give it a thickness"),
        (half_a_box(), "", r"4\d% of its surface is missing, more than a third; close it"),
        (cup_without_thickness(), "", r"not closed: 80 edges.*close its holes"),
        (trimesh.creation.box(SIZE), "mass: 40 kg", r"40 kg for 120 cm³.*write 'mass' or 'density' in thing\.yaml"),
        (trimesh.creation.box(SIZE), "density: 900000", r"9e\+05 kg/m³"),
        (trimesh.creation.box(SIZE), "mas: 40 g", r"thing\.yaml:1:1: mas: .*did you mean 'mass'"),
        (trimesh.creation.box(SIZE), "up: w", r"thing\.yaml:1:5: up"),
    ],
)
def test_what_can_be_no_thing_is_one_line(folder: Path, mesh: trimesh.Trimesh, settings: str, message: str) -> None:
    mesh.export(folder / "thing.ply")
    if settings:
        (folder / "thing.yaml").write_text(settings)
    refused(folder, message)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("thing.obj", b"", r"thing\.obj: the file is empty"),
        ("thing.glb", b"this is no mesh at all, only words", r"thing\.glb: cannot be read as GLB"),
        (
            "thing.stl",
            bytes(range(256)) * 4,
            r"thing\.stl: (cannot be read as STL|contains no triangles|.*not a number)",
        ),
        ("thing.obj", b"v 0 0 0\nv 1 0 0\nv 0 1 0\n", r"thing\.obj: (contains no triangles|cannot be read)"),
        ("thing.obj", b"v nan 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 2 3\nf 1 2 4\n", r"thing\.obj: .*not a number"),
        ("thing.usda", b"#usda 1.0\ndef Mesh oops {", r"thing\.usda: cannot be read as USD"),
        ("notes.txt", b"hello", r"no mesh in this folder; put OBJ, GLB"),
    ],
)
def test_what_is_no_mesh_is_one_line(folder: Path, name: str, content: bytes, message: str) -> None:
    (folder / name).write_bytes(content)
    refused(folder, message)


def refused(folder: Path, message: str) -> None:
    told = refusal(opened, folder)
    assert re.search(message, told), told


def test_a_missing_folder_a_double_name_and_a_strange_key_are_one_line(folder: Path) -> None:
    with pytest.raises(InputError, match="nowhere: no such file"):
        open_library(f"{folder}/nowhere/")
    trimesh.creation.box(SIZE).export(folder / "box.stl")
    trimesh.creation.box(SIZE).export(folder / "Box.ply")
    refused(folder, "has the same kind name 'box' as Box.ply; rename one of them")
    (folder / "Box.ply").unlink()
    (folder / "library.yaml").write_text("kinds: {bx: {}}\n")
    refused(folder, r"library\.yaml: kinds: no mesh 'bx' in this folder; did you mean 'box'")


def test_a_texture_outside_the_folder_is_refused(folder: Path) -> None:
    Image.new("RGB", (8, 8)).save(folder.parent / "secret.png")
    painted_box().export(folder / "thing.obj")
    (folder / "material.mtl").write_text("newmtl material_0\nmap_Kd ../secret.png\n")
    refused(folder, "outside its folder")


def test_the_hash_of_a_library_covers_all_that_a_mesh_may_name(folder: Path) -> None:
    """The library may be of others, and the image that it names a private one."""
    (folder / "sub").mkdir()
    found = {_digest(_referred(folder), folder)}
    for name in ("sub/a.tga", "sub/b.PNG", "c.webp", "sub/d.mtl"):
        (folder / name).write_text(name)
        found.add(_digest(_referred(folder), folder))
    assert len(found) == 5
    (folder / "sub/notes.txt").write_text("no mesh names it")
    assert _digest(_referred(folder), folder) in found
    painted_box().export(folder / "box.obj")
    pictures = [folder / "sub/look.png", folder / "sub/look.dat"]
    for picture in pictures:
        Image.new("RGB", (8, 8), "red").save(picture, format="PNG")
        (folder / "material.mtl").write_text(f"newmtl material_0\nmap_Kd sub/{picture.name}\n")
        is_shown = picture.suffix == ".png"
        assert bool((read_surface(folder / "box.obj").texture == (255, 0, 0)).all()) == is_shown


@pytest.mark.slow
def test_a_mesh_is_cut_once_and_the_same_in_another_process(folder: Path, cache: Path) -> None:
    tube().export(folder / "tube.ply")
    first = only(folder)
    (kept,) = cache.iterdir()
    written = kept.stat().st_mtime_ns
    code = (
        "import sys; from nimbus.datagen.objects.libraries import open_library\n"
        "m = open_library(sys.argv[1]).model('tube', 0)\n"
        "sys.stdout.write(str([v.sum().hex() for v, _ in m.convex_pieces]))\n"
    )

    def elsewhere() -> str:
        command = [sys.executable, "-c", code, f"{folder}/"]
        return subprocess.run(command, capture_output=True, text=True, check=True, env=environment()).stdout

    here = str([vertices.sum().hex() for vertices, _ in first.convex_pieces])
    assert elsewhere() == here
    assert kept.stat().st_mtime_ns == written
    kept.write_bytes(b"half of a file")
    assert elsewhere() == here  # an unreadable result is made again, bit for bit
    assert kept.stat().st_size > 1000


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": ":".join(path for path in sys.path if path)}


def test_a_cut_that_is_killed_leaves_nothing(folder: Path, cache: Path) -> None:
    trimesh.creation.torus(major_radius=0.03, minor_radius=0.008).export(folder / "ring.ply")
    code = "import sys; from nimbus.datagen.objects.libraries import open_library; open_library(sys.argv[1])"
    process = subprocess.Popen([sys.executable, "-c", code, f"{folder}/"], env=environment())
    deadline = time.monotonic() + 300
    while not cache.is_dir() and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.02)
    process.kill()
    process.wait()
    assert cache.is_dir() and not list(cache.iterdir())


def test_the_cache_follows_the_mesh_and_its_settings(
    folder: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []
    real = prepare.run_limited

    def noted(function: str, arguments: dict[str, Any], **options: Any) -> Any:
        made.append(Path(arguments["mesh"]).name)
        return real(function, arguments, **options)

    monkeypatch.setattr(prepare, "run_limited", noted)
    box = folder / "box.ply"
    trimesh.creation.box(SIZE).export(box)
    for settings in ("mass: 50 g", "mass: 60 g", "scale: 1.1"):
        (folder / "box.yaml").write_text(settings)
        AssetLibrary(folder)
    assert made == ["box.ply"] * 2  # a new mass alone needs no new decomposition
    assert len(list(cache.iterdir())) == 2


TASK = """\
robot: panda
scene: tabletop
regions:
  start: {{on: table, center: [0.5, 0.0], size: [0.3, 0.4]}}
objects:
  things: {{library: "{folder}/", count: 2, distinct: true, region: start}}
steps:
  - pick: things[0]
  - place: {{object: "things[0]", into: "bins[0]"}}
success:
  - inside: {{object: "things[0]", container: "bins[0]"}}
cameras:
  front: {{position: [1.2, 0, 0.7], look_at: [0.5, 0, 0], vertical_fov: 45 deg, size: [32, 24]}}
instructions: ["Put {{things}} away."]
"""


def test_task_with_a_mesh_and_usd_is_executed(folder: Path) -> None:
    """``test_every_format_gives_the_same_thing`` has the other formats."""
    write_usd(folder / "box_usdc.usdc")
    painted_box().export(folder / "box_obj.obj")
    task = folder / "tidy.yaml"
    task.write_text(TASK.format(folder=folder))
    assert successes(str(task), layouts=3) == 1


def test_usd_text_with_other_bytes_is_one_line(folder: Path) -> None:
    (folder / "box.usda").write_bytes(b'#usda 1.0\ndef Mesh "b\xac\xff" {}\n')
    with pytest.raises(InputError, match=r"box\.usda: "):
        opened(folder)
