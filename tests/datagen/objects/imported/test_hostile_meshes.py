"""Meshes whose parser allocates too much memory, waits or never ends are refused in one line, because a child process
with limits parses them."""

from __future__ import annotations

import json
import os
import re
import struct
import subprocess
import sys
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import trimesh
from PIL import Image
from trimesh.exchange.gltf import export_gltf
from trimesh.visual import TextureVisuals
from trimesh.visual.material import PBRMaterial

from nimbus.datagen.errors import InputError
from nimbus.datagen.objects.imported import gltf_sizes
from nimbus.datagen.objects.imported.composition import check_growth
from nimbus.datagen.objects.imported.folds import count_full_edges, passes_through_itself
from nimbus.datagen.objects.imported.gltf_sizes import gltf_files
from nimbus.datagen.objects.imported.read import read_nodes
from tests.support.refusals import refusal

_FACES = "int[] faceVertexCounts = [2000000000]\nint[] faceVertexIndices = [0, 1, 2]\n"
_MESH = f'#usda 1.0\ndef Mesh "box"\n{{\n{_FACES}point3f[] points = [(0, 0, 0), (1, 0, 0), (0, 1, 0)]\n}}\n'
_TRIANGLE = "int[] faceVertexCounts = [3]\nint[] faceVertexIndices = [0, 1, 2]\n"
_AXIS = _MESH.replace("1.0\n", '1.0\n(\n    upAxis = "Q"\n)\n').replace(_FACES, _TRIANGLE)
MEMORY = 2 << 30
"""Largest growth of a process's memory [bytes]."""


def accessor_without_a_view(folder: Path) -> None:
    """Write an accessor of 5.6 GB of zeros that are not stored."""
    path = folder / "thing.glb"
    trimesh.creation.box((0.05, 0.04, 0.06)).export(path)
    data = path.read_bytes()
    length = struct.unpack("<I", data[12:16])[0]
    told = json.loads(data[20 : 20 + length])
    for accessor in told["accessors"]:
        accessor.pop("bufferView", None)
        accessor["count"] = 466_666_666
    text = json.dumps(told).encode()
    text += b" " * (-len(text) % 4)
    rest = data[20 + length :]
    head = data[:8] + struct.pack("<II", 20 + len(text) + len(rest), len(text)) + data[16:20]
    path.write_bytes(head + text + rest)


def doubled_references(folder: Path, levels: int = 40) -> None:
    """Write a stage in which each level refers to the next one twice."""
    twice = (
        'class "c{0}"\n{{\n def "a" (references = </c{1}>)\n {{\n }}\n def "b" (references = </c{1}>)\n {{\n }}\n}}\n'
    )
    text = "".join(twice.format(level, level + 1) for level in range(levels))
    end = f'class "c{levels}"\n{{\n}}\ndef "d" (references = </c0>)\n{{\n}}\n'
    (folder / "thing.usda").write_text("#usda 1.0\n" + text + end)


def texture_that_is(make: Callable[[Path], object]) -> Callable[[Path], None]:
    """Write a triangle whose texture is something else."""

    def write(folder: Path) -> None:
        make(folder / "skin.png")
        (folder / "thing.mtl").write_text("newmtl m\nmap_Kd skin.png\n")
        box = trimesh.creation.box((0.05, 0.04, 0.06))
        lines = [f"v {x} {y} {z}" for x, y, z in box.vertices] + ["vt 0 0", "usemtl m"]
        lines += [f"f {a + 1}/1 {b + 1}/1 {c + 1}/1" for a, b, c in box.faces]
        (folder / "thing.obj").write_text("mtllib thing.mtl\n" + "\n".join(lines) + "\n")

    return write


HOSTILE: dict[str, Callable[[Path], object]] = {
    "accessor without a view": accessor_without_a_view,
    "doubled references": doubled_references,
    "axis that is none": lambda folder: (folder / "thing.usda").write_text(_AXIS),
    "faces of 2e9 corners": lambda folder: (folder / "thing.usda").write_text(_MESH),
    "mesh that is a pipe": lambda folder: os.mkfifo(folder / "thing.obj"),
    "texture that is a pipe": texture_that_is(os.mkfifo),
    "texture that is a device": texture_that_is(lambda path: path.symlink_to("/dev/zero")),
}


MESSAGES = {
    "accessor without a view": "declares .* GiB of numbers that the file does not contain",
    "doubled references": "has more than 100,000 prims",
    "axis that is none": "upAxis 'q' is not an axis",
    "faces of 2e9 corners": "more corners than faceVertexIndices",
    "texture that is a device": "this is a link out of its folder",
}


_REFUSED = """
import json, resource, sys
from nimbus.datagen.files import limited_process
from nimbus.datagen.objects.libraries import open_library
from tests.support.refusals import refusal

told = refusal(open_library, sys.argv[1])
for server in limited_process._known:
    server.end()
print(json.dumps([told, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss << 10]))
"""


@pytest.mark.parametrize("name", sorted(HOSTILE))
def test_a_hostile_mesh_is_one_line(name: str, tmp_path: Path) -> None:
    """A small process opens the library: a process that starts another counts for it with its own memory."""
    folder = tmp_path / "things"
    folder.mkdir()
    HOSTILE[name](folder)
    given = os.environ | {"NIMBUS_CACHE": str(tmp_path / "cache"), "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-P", "-c", _REFUSED, f"{folder}/"]
    told, memory = json.loads(subprocess.run(command, env=given, capture_output=True, check=True).stdout)
    assert re.search(MESSAGES.get(name, "is not a regular file|no mesh in this folder"), told), told
    assert memory < MEMORY


def test_a_scene_without_its_numbers_is_refused_at_once(tmp_path: Path) -> None:
    """Navigation scenes are read in the process of the command."""
    accessor_without_a_view(tmp_path)
    assert "that the file does not contain" in refusal(read_nodes, tmp_path / "thing.glb")


def test_a_mesh_of_very_many_nodes_is_refused(tmp_path: Path) -> None:
    shown = [{"mesh": 0}] * 1000
    told = {
        "accessors": [{"count": 100_000, "type": "SCALAR", "componentType": 5125, "bufferView": 0}],
        "meshes": [{"primitives": [{"attributes": {"POSITION": 0}, "indices": 0}]}],
    }
    (tmp_path / "thing.gltf").write_text(json.dumps(told | {"nodes": shown}))
    assert "its nodes contain 100,000,000 face corners" in refusal(read_nodes, tmp_path / "thing.gltf")


def test_references_within_reason_are_counted(tmp_path: Path) -> None:
    """Each further level doubles the prims."""
    for levels, is_refused in ((10, False), (16, True)):
        folder = tmp_path / str(levels)
        folder.mkdir()
        doubled_references(folder, levels)
        with pytest.raises(InputError) if is_refused else nullcontext():
            check_growth(folder / "thing.usda")


def test_surfaces_that_pass_through_themselves_are_told_apart() -> None:
    box, ball = trimesh.creation.box((0.05, 0.04, 0.06)), trimesh.creation.icosphere(radius=0.03)
    for mesh in (box, ball, trimesh.creation.torus(0.03, 0.01)):
        assert not passes_through_itself(mesh.vertices, mesh.faces) and not count_full_edges(mesh.faces)
    apart: Any = trimesh.util.concatenate([box, ball.copy().apply_translation((0.1, 0, 0))])
    assert not passes_through_itself(apart.vertices, apart.faces)
    notched = box.faces.copy()
    vertices = np.vstack([box.vertices, box.vertices[box.edges_unique[0]].mean(axis=0)])
    notched[(notched == 7).any(axis=1).argmax()] = [8, 7, 6]
    assert passes_through_itself(vertices, notched)  # a corner lies on an edge
    both: Any = trimesh.util.concatenate([box, ball])
    assert passes_through_itself(both.vertices, both.faces)


def test_references_between_files_are_counted(tmp_path: Path) -> None:
    """Each file refers to the next one twice."""
    for level in range(20):
        pair = "".join(f'def "{name}" (references = @./{level + 1}.usda@)\n{{\n}}\n' for name in "ab")
        text = f'#usda 1.0\n(\n    defaultPrim = "c"\n)\ndef "c"\n{{\n{pair}}}\n'
        (tmp_path / f"{level}.usda").write_text(text)
    (tmp_path / "20.usda").write_text('#usda 1.0\n(\n    defaultPrim = "c"\n)\ndef "c"\n{\n}\n')
    check_growth(tmp_path / "10.usda")
    with pytest.raises(InputError, match="has more than 100,000 prims"):
        check_growth(tmp_path / "0.usda")


def test_references_through_sublayers_and_variants_are_counted(tmp_path: Path) -> None:
    """Classes of even levels are in one layer, those of odd levels in another, and half of them in a variant."""
    layers = ["", ""]
    for level in range(24):
        arcs = "".join(f'def "{name}" (references = </c{level + 1}>)\n{{\n}}\n' for name in "ab")
        body = f'variantSet "v" = {{\n"x" {{\n{arcs}}}\n}}\n' if level % 3 == 0 else arcs
        layers[level % 2] += f'def "c{level}" (\nvariants = {{\nstring v = "x"\n}}\nprepend variantSets = "v"\n)\n'
        layers[level % 2] += f"{{\n{body}}}\n"
    (tmp_path / "odd.usda").write_text("#usda 1.0\n" + layers[1] + 'def "c24"\n{\n}\n')
    (tmp_path / "even.usda").write_text("#usda 1.0\n(\n    subLayers = [@./odd.usda@]\n)\n" + layers[0])
    with pytest.raises(InputError, match="has more than 100,000 prims"):
        check_growth(tmp_path / "even.usda")


def test_a_file_outside_is_not_opened_to_count_it(tmp_path: Path) -> None:
    (tmp_path / "inside").mkdir()
    (tmp_path / "inside" / "a.usda").write_text('#usda 1.0\ndef "c" (references = @../secret.usda@)\n{\n}\n')
    with pytest.raises(InputError, match="outside its folder"):
        check_growth(tmp_path / "inside" / "a.usda")


DAMAGED = '{"images": [], "extras": "\xff"}'.encode("latin-1")


def test_a_gltf_that_parsers_read_differently_is_refused(tmp_path: Path) -> None:
    """The list of its files would be empty, while the parser of meshes opens them."""
    (tmp_path / "thing.gltf").write_bytes(DAMAGED)
    (tmp_path / "thing.glb").write_bytes(struct.pack("<4sIIII", b"glTF", 2, 52, 32, 0x4E4F534A) + DAMAGED.ljust(32))
    for name in ("thing.gltf", "thing.glb"):
        assert "its JSON is damaged" in refusal(gltf_files, tmp_path / name)


@pytest.mark.parametrize("uri", ["nosuch/../look.png", "data:/../look.png"])
def test_a_gltf_opens_only_files_that_are_listed(tmp_path: Path, uri: str) -> None:
    """The hash of a scene covers those alone."""
    mesh = trimesh.creation.box((1, 1, 1))
    image = Image.new("RGB", (2, 2), "red")
    mesh.visual = TextureVisuals(uv=np.zeros((8, 2)), material=PBRMaterial(baseColorTexture=image))
    for name, content in export_gltf(trimesh.Scene(mesh)).items():
        (tmp_path / name).write_bytes(content)
    path = tmp_path / "model.gltf"
    told = json.loads(path.read_text())
    assert read_nodes(path)
    image.save(tmp_path / "look.png")
    told["images"] = [{"uri": uri}]
    path.write_text(json.dumps(told))
    assert tmp_path / "look.png" not in gltf_files(path)
    assert "which is not a plain path" in refusal(read_nodes, path)


def test_a_file_of_a_gltf_counts_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hashes read each file whole: many spellings of one large file would take days."""
    (tmp_path / "d").mkdir()
    (tmp_path / "d/look.png").touch()
    path = tmp_path / "model.gltf"
    names = ["nosuch/../d/look.png", *("d/../" * count + "d/look.png" for count in range(100))]
    path.write_text(json.dumps({"images": [{"uri": name} for name in names]}))
    assert gltf_files(path) == [path, tmp_path / "d/look.png"]
    monkeypatch.setattr(gltf_sizes, "MOST_NAMES", 100)
    assert "names 101 files; the limit is 100" in refusal(gltf_files, path)
