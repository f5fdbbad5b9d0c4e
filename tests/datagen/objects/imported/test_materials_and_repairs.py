"""MDL materials, wrong units of USD, external textures, and edges that more than two faces share."""

from __future__ import annotations

import struct
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest
import trimesh
from PIL import Image

from nimbus.datagen.objects.imported.folds import check_folds
from nimbus.datagen.objects.imported.mesh_repair import _filled, close_mesh
from nimbus.datagen.objects.imported.read import OutsideLook, read_surface
from nimbus.datagen.objects.imported.roots import below
from tests.support.refusals import refusal

_USD = """#usda 1.0
(
    metersPerUnit = {unit}
    upAxis = "Z"
)
def Material "paint"
{{
    token outputs:mdl:surface.connect = </paint/shader.outputs:out>
    def Shader "shader"
    {{
        uniform token info:implementationSource = "sourceAsset"
        uniform asset info:mdl:sourceAsset = @OmniPBR.mdl@
        {inputs}
        token outputs:out
    }}
}}
def Mesh "box" (prepend apiSchemas = ["MaterialBindingAPI"])
{{
    rel material:binding = </paint>
    int[] faceVertexCounts = [3, 3]
    int[] faceVertexIndices = [0, 1, 2, 0, 2, 3]
    point3f[] points = [(0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, 0)]
    texCoord2f[] primvars:st = [(0, 0), (1, 0), (1, 1), (0, 1)] (interpolation = "vertex")
}}
"""


def test_mdl_textures_and_colors_are_read(tmp_path: Path) -> None:
    (tmp_path / "textures").mkdir()
    (tmp_path / "usd").mkdir()
    Image.new("RGB", (4, 4), (200, 30, 10)).save(tmp_path / "textures" / "skin.png")
    path = tmp_path / "usd" / "box.usda"
    path.write_text(_USD.format(unit=0.01, inputs="asset inputs:diffuse_texture = @C:/there/textures/skin.png@"))
    surface = read_surface(path, root=tmp_path)
    assert surface.texture.reshape(-1, 3)[0].tolist() == [200, 30, 10] and surface.metres == 0.01
    path.write_text(_USD.format(unit=0, inputs="color3f inputs:diffuse_color_constant = (1, 0, 0)"))
    surface = read_surface(path, root=tmp_path)
    assert surface.texture.reshape(-1, 3).max(axis=0).tolist() == [255, 0, 0]
    assert surface.notes == ("metersPerUnit is 0: the default of 0.01 is used",)
    path.write_text(_USD.format(unit=1, inputs=""))
    assert read_surface(path, root=tmp_path).notes == ("has no color and is shown in gray",)


@pytest.mark.parametrize("is_package", [True, False])
def test_brackets_lead_out_of_no_folder(tmp_path: Path, is_package: bool) -> None:
    folder, secret = tmp_path / "asset", tmp_path / "asset[1]"
    folder.mkdir()
    secret.mkdir()
    Image.new("RGB", (4, 4), (200, 30, 10)).save(secret / "skin.png")
    named = f"{secret}/skin.png"
    if is_package:
        with zipfile.ZipFile(secret / "a.usdz", "w") as package:
            package.write(secret / "skin.png", "skin.png")
        named = f"{secret}/a.usdz[skin.png]"
    path = folder / "box.usda"
    path.write_text(_USD.format(unit=1, inputs=f"asset inputs:diffuse_texture = @{named}@"))
    assert "outside its folder" in refusal(read_surface, path)
    surface = read_surface(path, root=folder)
    assert surface.texture.reshape(-1, 3).max(axis=0).tolist() == [170, 170, 172]
    (secret / "part.usda").write_text("#usda 1.0\n")
    path.write_text(f"#usda 1.0\n(\n    subLayers = [@{secret}/part.usda@]\n)\n")
    assert "outside its folder" in refusal(read_surface, path)


def test_a_texture_one_folder_up_is_found(tmp_path: Path) -> None:
    (tmp_path / "a" / "textures").mkdir(parents=True)
    (tmp_path / "a" / "meshes").mkdir()
    (tmp_path / "a" / "textures" / "soda.png").write_bytes(b"x")
    (tmp_path / "secret.png").write_bytes(b"x")
    folder = tmp_path / "a" / "meshes"
    for name in ("../textures/soda.png", "/mnt/assets/soda.png", "C:\\assets\\textures\\soda.png", "soda.png"):
        assert below(tmp_path / "a", folder, name) == "textures/soda.png", name
    for name in ("../../secret.png", "missing.png", "", "/"):
        assert not below(tmp_path / "a", folder, name), name


def test_a_missing_texture_costs_the_texture(tmp_path: Path) -> None:
    (tmp_path / "box.mtl").write_text("newmtl a\nmap_Kd /mnt/assets/skin.png\n")
    (tmp_path / "box.obj").write_text("mtllib box.mtl\nusemtl a\nv 0 0 0\nv 1 0 0\nv 0 1 0\nvt 0 0\nf 1/1 2/1 3/1\n")
    assert read_surface(tmp_path / "box.obj", root=tmp_path).notes == (
        "'/mnt/assets/skin.png' is missing below the root and is omitted",
    )
    assert "outside its folder" in refusal(read_surface, tmp_path / "box.obj")


def test_faces_at_full_edges_are_left_out(tmp_path: Path) -> None:
    """Loose triangles connect corners of a scan's surface; flipping and closing alone left 5 edges open."""
    ball = trimesh.creation.icosphere(subdivisions=2, radius=0.04)
    faces = np.vstack([ball.faces, [[137, 120, 140], [49, 51, 99], [28, 118, 112]]]).astype(np.int32)
    points, closed = close_mesh(np.asarray(ball.vertices), faces, tmp_path)
    made = trimesh.Trimesh(points, closed, process=False)
    assert made.is_watertight and made.volume == pytest.approx(ball.volume, rel=0.01)


def test_a_loose_face_leaves_no_flap(tmp_path: Path) -> None:
    """A triangle at one edge, closed by a separate fan, would be a flap with four faces at that edge."""
    ball = trimesh.creation.icosphere(subdivisions=2, radius=0.04)
    faces = np.vstack([ball.faces, [[*ball.faces[0][:2], len(ball.vertices)]]]).astype(np.int32)
    points, closed = close_mesh(np.vstack([ball.vertices, [[0.0, 0.0, 0.1]]]), faces, tmp_path)
    made = trimesh.Trimesh(points, closed, process=False)
    assert made.is_watertight and made.volume == pytest.approx(ball.volume, rel=0.01)


def test_a_doubled_box_is_refused(tmp_path: Path) -> None:
    """CoACD made over 150,000 faces from such surfaces, and did not end."""
    box = trimesh.creation.box()
    faces = np.vstack([box.faces, box.faces])
    told = refusal(check_folds, np.asarray(box.vertices), faces, tmp_path / "thing.obj", "thing.yaml")
    assert "folds onto itself: 18 edges have more than two faces" in told and "'pieces: 1' in thing.yaml" in told


def test_mujoco_meshes_are_read(tmp_path: Path) -> None:
    box = trimesh.creation.box((1, 2, 3))
    uvs = np.tile([0.25, 0.75], (len(box.vertices), 1)).astype("<f4")
    head = struct.pack("<4i", len(box.vertices), 0, len(uvs), len(box.faces))
    path = tmp_path / "box.msh"
    path.write_bytes(head + box.vertices.astype("<f4").tobytes() + uvs.tobytes() + box.faces.astype("<i4").tobytes())
    Image.new("RGB", (4, 4), (10, 200, 30)).save(tmp_path / "skin.png")
    surface = read_surface(path, root=tmp_path, look=OutsideLook(texture=tmp_path / "skin.png"))
    assert surface.corners.shape == (12, 3, 3) and surface.texture.reshape(-1, 3)[0].tolist() == [10, 200, 30]
    assert np.allclose(surface.uvs, (0.25, 0.25))  # v points down there
    path.write_bytes(head)
    assert "cannot be read as MSH" in refusal(read_surface, path, root=tmp_path)


def test_draco_is_refused_with_the_remedy(tmp_path: Path) -> None:
    path = tmp_path / "box.gltf"
    path.write_text('{"asset": {"version": "2.0"}, "extensionsRequired": ["KHR_draco_mesh_compression"]}')
    assert "export it without compression" in refusal(read_surface, path, root=tmp_path)


def test_many_holes_are_closed_in_one_pass():
    count = 20_000
    corner = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    points = np.tile(corner, (count, 1))
    points[:, 2] = np.repeat(np.arange(count), 3)
    begin = time.process_time()
    _, faces = _filled(points, np.arange(3 * count, dtype=np.int32).reshape(-1, 3))
    assert len(faces) == 4 * count and time.process_time() - begin < 5
