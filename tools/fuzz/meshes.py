"""Damaged folders of meshes: OBJ, STL, PLY, GLB and USD, with the files that they reference."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import numpy as np

from tools.fuzz.mutations import OUTSIDE, TEXTS, files_of, pick, replace_file, spoil_file, spoil_plain, spoil_text
from tools.fuzz.sort import Sort, command

_USD = """#usda 1.0
(
    defaultPrim = "box"
    metersPerUnit = 1
    upAxis = "Z"
)

def Mesh "box"
{
    int[] faceVertexCounts = [4, 4, 4, 4, 4, 4]
    int[] faceVertexIndices = [0, 3, 2, 1, 4, 5, 6, 7, 0, 1, 5, 4, 1, 2, 6, 5, 2, 3, 7, 6, 3, 0, 4, 7]
    point3f[] points = [(0, 0, 0), (0.05, 0, 0), (0.05, 0.05, 0), (0, 0.05, 0),
        (0, 0, 0.05), (0.05, 0, 0.05), (0.05, 0.05, 0.05), (0, 0.05, 0.05)]
}
"""


def make(folder: Path) -> None:
    """Write a box in every format, one with a texture."""
    import trimesh
    from PIL import Image
    from trimesh.visual import TextureVisuals
    from trimesh.visual.material import SimpleMaterial

    folder.mkdir()
    box = trimesh.creation.box((0.05, 0.04, 0.06))
    for suffix in ("stl", "ply", "glb"):
        box.export(folder / f"box_{suffix}.{suffix}")
    uv = np.zeros((len(box.vertices), 2))
    image = Image.new("RGB", (4, 4), (200, 30, 30))
    box.visual = TextureVisuals(uv=uv, material=SimpleMaterial(image=image))
    box.export(folder / "box_obj.obj")
    (folder / "box_usd.usda").write_text(_USD)


def spoil(folder: Path, random: np.random.Generator) -> str:
    """Keep one mesh with the files that it references, and damage it."""
    mesh = pick(files_of(folder, ".obj", ".stl", ".ply", ".glb", ".usda"), random)
    referred = (".mtl", ".png") if mesh.suffix == ".obj" else ()
    for path in files_of(folder):
        if path != mesh and path.suffix not in referred:
            path.unlink()
    path = pick(files_of(folder), random)
    kind = pick(("bytes", "text", "known", "known", "file"), random)
    if kind == "file":
        return f"{path.name} is a {replace_file(path, random)}"
    if kind == "known" and mesh.suffix in _KNOWN:
        return _KNOWN[mesh.suffix](mesh, random)
    if kind == "text" and path.suffix in (".obj", ".mtl", ".usda"):
        path.write_text(spoil_text(path.read_text(), random), errors="replace")
        return f"text of {path.name}"
    spoil_file(path, random)
    return f"bytes of {path.name}"


def _spoil_glb(path: Path, random: np.random.Generator) -> str:
    """Change the JSON part of a GLB file: accessors, views or images."""
    data = path.read_bytes()
    length = struct.unpack("<I", data[12:16])[0]
    told = json.loads(data[20 : 20 + length])
    what = pick(("an accessor without a view", "plain", "an image", "many nodes", "a circle of nodes"), random)
    if what == "an accessor without a view":
        accessor = pick(told["accessors"], random)
        accessor.pop("bufferView", None)
        accessor["count"] = 466_666_666
    elif what == "an image":
        told["images"] = [{"uri": pick((f"{OUTSIDE}/x.png", "/dev/zero", "pipe.png", *TEXTS[:6]), random)}]
    elif what == "many nodes":
        told["nodes"] = [{"children": [1, 1]}] + [{"children": [n + 1, n + 1]} for n in range(1, 30)] + [{"mesh": 0}]
        told["scenes"] = [{"nodes": [0]}]
    elif what == "a circle of nodes":
        told["nodes"] = [{"children": [1], "mesh": 0}, {"children": [0]}]
        told["scenes"] = [{"nodes": [0]}]
    else:
        told = spoil_plain(told, random)
    text = json.dumps(told).encode()
    text += b" " * (-len(text) % 4)
    rest = data[20 + length :]
    head = data[:8] + struct.pack("<I", 20 + len(text) + len(rest)) + struct.pack("<I", len(text)) + data[16:20]
    path.write_bytes(head + text + rest)
    return f"GLB with {what}"


def _spoil_usd(path: Path, random: np.random.Generator) -> str:
    """Write an invalid stage, or one that needs much memory when it is opened."""
    arc = 'def "{0}" (references = </c{1}>)\n{{\n}}\n'
    levels = "".join(f'class "c{n}"\n{{\n{arc.format("a", n + 1)}{arc.format("b", n + 1)}}}\n' for n in range(26))
    nested = "".join(f'class "c{n}"\n{{\n{arc.format("a", n + 1)}' for n in range(26)) + "}\n" * 26
    end = f'class "c26"\n{{\n}}\n{arc.format("d", 0)}'
    changes = {
        "doubled references": _USD + levels + end,
        "nested references": _USD + nested + end,
        "faces of 2e9 corners": _USD.replace("[4, 4, 4, 4, 4, 4]", "[2000000000, 4, 4, 4, 4, 4]"),
        "negative faces": _USD.replace("[4, 4, 4, 4, 4, 4]", "[-4, 4, 4, 4, 4, 4]"),
        "few points": _USD.replace("(0, 0, 0), ", ""),
        "a reference to itself": _USD.replace('def Mesh "box"', 'def Mesh "box" (references = </box>)'),
        "a layer of its own": _USD.replace("(\n", f"(\n    subLayers = [@{path.name}@]\n", 1),
        "a device as a layer": _USD.replace("(\n", "(\n    subLayers = [@/dev/zero@]\n", 1),
        "a secret as a layer": _USD.replace("(\n", f"(\n    subLayers = [@{OUTSIDE}/x.usda@]\n", 1),
        "no unit": _USD.replace("metersPerUnit = 1", "metersPerUnit = nan"),
        "another axis": _USD.replace('"Z"', '"Q"'),
        "a huge instancer": _USD + 'def PointInstancer "p"\n{\n    int[] protoIndices = [0]\n}\n',
    }
    name = pick(sorted(changes), random)
    path.write_text(changes[name])
    return f"USD with {name}"


def _spoil_obj(path: Path, random: np.random.Generator) -> str:
    lines = {
        "a face of no point": "f 1 2 999999999\n",
        "a point far away": "v 1e300 1e300 1e300\nf 1 2 -1\n",
        "no number": "v nan inf 0\nf 1 2 -1\n",
        "a library elsewhere": f"mtllib {OUTSIDE}/x.mtl\n",
        "a device as a library": "mtllib /dev/zero\n",
        "a large face": "f " + " ".join(map(str, range(1, 9))) * 5000 + "\n",
        "many groups": "".join(f"g g{n}\nf 1 2 3\n" for n in range(5000)),
    }
    name = pick(sorted(lines), random)
    path.write_text(path.read_text() + lines[name])
    return f"OBJ with {name}"


def _spoil_counts(path: Path, random: np.random.Generator) -> str:
    """Declare more faces than the file contains."""
    data = bytearray(path.read_bytes())
    if path.suffix == ".stl":
        data[80:84] = struct.pack("<I", int(pick((2**32 - 1, 10**8, 0), random)))
    else:
        count = pick((b"999999999", b"-1", b"0", b"1e9"), random)
        data = bytearray(data.replace(b"face 12", b"face " + count).replace(b"vertex 8", b"vertex " + count))
    path.write_bytes(bytes(data))
    return f"{path.suffix} with other counts"


_KNOWN = {".glb": _spoil_glb, ".usda": _spoil_usd, ".obj": _spoil_obj, ".stl": _spoil_counts, ".ply": _spoil_counts}


def read(folder: Path, random: np.random.Generator) -> None:
    """Open the folder as an object library."""
    command("objects", f"{folder}/")


SORT = Sort(name="meshes", make=make, spoil=spoil, read=read)
