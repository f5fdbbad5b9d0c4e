"""Valid but unusual files: inverted surfaces, rare image formats, bones, lamps, dangling links."""

from __future__ import annotations

import json
import struct
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import trimesh
from PIL import Image
from trimesh.visual import TextureVisuals
from trimesh.visual.material import PBRMaterial

from nimbus.datagen.objects.imported import read
from nimbus.datagen.objects.imported.mesh_repair import close_mesh
from nimbus.datagen.objects.imported.read import read_surface
from tests.support.refusals import refusal

SIZE = (0.05, 0.04, 0.06)
VOLUME = float(np.prod(SIZE))


def box() -> trimesh.Trimesh:
    return trimesh.creation.box(SIZE)


def volume(points: np.ndarray, faces: np.ndarray) -> float:
    return float(trimesh.Trimesh(points, faces, process=False).volume)


def changed_glb(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Write a box as GLB with changed JSON."""
    box().export(path)
    data = path.read_bytes()
    length = struct.unpack("<I", data[12:16])[0]
    content = json.loads(data[20 : 20 + length])
    change(content)
    text = json.dumps(content).encode()
    text += b" " * (-len(text) % 4)
    rest = data[20 + length :]
    path.write_bytes(data[:8] + struct.pack("<II", 20 + len(text) + len(rest), len(text)) + data[16:20] + text + rest)


def with_texture(folder: Path, image: Image.Image, name: str) -> Path:
    image.save(folder / name)
    (folder / "box.mtl").write_text(f"newmtl m\nmap_Kd {name}\n")
    lines = [f"v {x} {y} {z}" for x, y, z in box().vertices] + ["vt 0 0", "usemtl m"]
    lines += [f"f {a + 1}/1 {b + 1}/1 {c + 1}/1" for a, b, c in box().faces]
    (folder / "box.obj").write_text("mtllib box.mtl\n" + "\n".join(lines) + "\n")
    return folder / "box.obj"


def test_a_surface_inside_out_is_turned(tmp_path: Path) -> None:
    points, faces = close_mesh(box().vertices, np.asarray(box().faces)[:, ::-1].astype(np.int32), tmp_path)
    assert volume(points, faces) == pytest.approx(VOLUME)


def test_a_negative_scale_turns_nothing_out(tmp_path: Path) -> None:
    def mirror(content: dict[str, Any]) -> None:
        node = next(node for node in content["nodes"] if "mesh" in node)
        node.pop("matrix", None)
        node["scale"] = [-1, 1, 1]

    changed_glb(tmp_path / "box.glb", mirror)
    surface = read_surface(tmp_path / "box.glb")
    points, faces = surface.points()
    assert volume(*close_mesh(points, faces, tmp_path)) == pytest.approx(VOLUME, rel=1e-4)


@pytest.mark.parametrize(
    ("name", "image"),
    [
        ("deep.png", Image.fromarray(np.full((4, 4), 40000, dtype=np.uint16))),
        ("press.jpg", Image.new("CMYK", (4, 4), (0, 200, 200, 20))),
        ("palette.png", Image.new("P", (4, 4), 3)),
        ("mask.png", Image.new("1", (4, 4), 1)),
        ("alpha.png", Image.new("LA", (4, 4), (90, 10))),
    ],
)
def test_rare_pictures_become_colors(tmp_path: Path, name: str, image: Image.Image) -> None:
    surface = read_surface(with_texture(tmp_path, image, name), root=tmp_path)
    assert surface.texture.dtype == np.uint8 and surface.texture.shape[-1] == 3
    if name == "deep.png":
        assert abs(int(surface.texture.reshape(-1, 3)[0, 0]) - 40000 // 257) <= 1
    if name == "press.jpg":
        red, green, _ = surface.texture.reshape(-1, 3)[0].tolist()
        assert red > 180 and green < 90


def test_bones_and_lamps_are_passed_over(tmp_path: Path) -> None:
    def change(content: dict[str, Any]) -> None:
        lights = {"lights": [{"type": "point", "intensity": 1e9}]}
        content |= {"extensionsUsed": ["KHR_lights_punctual"], "extensions": {"KHR_lights_punctual": lights}}
        content["nodes"].append({"name": "lamp", "extensions": {"KHR_lights_punctual": {"light": 0}}})
        content["skins"] = [{"joints": [0]}]
        content["animations"] = []

    changed_glb(tmp_path / "box.glb", change)
    assert len(read_surface(tmp_path / "box.glb").corners) == 12


def test_a_payload_that_is_missing_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "thing.usda"
    path.write_text('#usda 1.0\ndef Xform "thing" (payload = @./gone.usda@</thing>)\n{\n}\n')
    assert "contains no triangles" in refusal(read_surface, path, root=tmp_path)


def test_too_many_triangles_are_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read, "_MOST_FACES", 11)
    box().export(tmp_path / "box.stl")
    assert "12 triangles; the limit is 11" in refusal(read_surface, tmp_path / "box.stl")


def test_a_data_uri_that_lies_is_one_line(tmp_path: Path) -> None:
    buffer = {"byteLength": 1 << 40, "uri": "data:application/octet-stream;base64," + b64encode(bytes(99)).decode()}
    view = {"buffer": 0, "byteLength": 1 << 40}
    accessor = {"bufferView": 0, "componentType": 5126, "count": 1 << 34, "type": "VEC3"}
    mesh = {"primitives": [{"attributes": {"POSITION": 0}}]}
    content = {"asset": {"version": "2.0"}, "buffers": [buffer], "bufferViews": [view], "accessors": [accessor]}
    (tmp_path / "box.gltf").write_text(json.dumps(content | {"meshes": [mesh], "nodes": [{"mesh": 0}]}))
    assert "box.gltf: " in refusal(read_surface, tmp_path / "box.gltf", root=tmp_path)


def test_forty_textures_become_one(tmp_path: Path) -> None:
    scene = trimesh.Scene()
    for number in range(40):
        image = Image.new("RGB", (8, 8), (6 * number, 100, 100))
        part = box().apply_translation((0.06 * number, 0, 0))
        part.visual = TextureVisuals(uv=np.zeros((8, 2)), material=PBRMaterial(baseColorTexture=image))
        scene.add_geometry(part)
    scene.export(tmp_path / "row.glb")
    surface = read_surface(tmp_path / "row.glb")
    assert len(surface.corners) == 480 and surface.texture.ndim == 3
