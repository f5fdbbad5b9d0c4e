"""Broken mesh files of 42 kinds, which an import must refuse in one line or repair."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import trimesh


def _box(change: Callable[[trimesh.Trimesh], object], **options: Any) -> Callable[[Path], None]:
    """Write a block with a modification."""

    def write(path: Path) -> None:
        mesh = trimesh.creation.box((0.05, 0.04, 0.06))
        change(mesh)
        mesh.export(path, **options)

    return write


def _text(text: str) -> Callable[[Path], None]:
    return _bytes(text.encode())


def _bytes(content: bytes) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        path.write_bytes(content)

    return write


def _scaled(*factors: float) -> Callable[[Path], None]:
    return _box(lambda mesh: mesh.apply_scale(factors))


def _cut(keep: float, suffix: str) -> Callable[[Path], None]:
    """Write the first part of a valid file."""

    def write(path: Path) -> None:
        content: Any = trimesh.creation.icosphere(subdivisions=2, radius=0.03).export(file_type=suffix)
        content = content.encode() if isinstance(content, str) else content
        path.write_bytes(content[: int(keep * len(content))])

    return write


def _nan(path: Path) -> None:
    path.write_text("v nan 0 0\nv 1 nan 0\nv 0 1 nan\nv 0 0 1\nf 1 2 3\nf 1 2 4\nf 1 3 4\nf 2 3 4\n")


def _half_ball(path: Path) -> None:
    ball = trimesh.creation.icosphere(subdivisions=4, radius=0.03)
    ball.update_faces(ball.triangles_center[:, 2] > 0.004 * np.sin(9 * ball.triangles_center[:, 0] * 100))
    ball.export(path)


_TRIANGLE = "v 0 0 0\nv 0.05 0 0\nv 0 0.05 0\n"
_GLTF = '{"asset": {"version": "2.0"}, "meshes": [{"primitives": [{"attributes": {"POSITION": 0}%s}]}]%s}'
_USD = '#usda 1.0\ndef Mesh "a"\n{\n%s}\n'
FAULTS: dict[str, Callable[[Path], None]] = {
    "empty.obj": _text(""),
    "empty.glb": _bytes(b""),
    "empty.stl": _bytes(b""),
    "empty.ply": _bytes(b""),
    "empty.usda": _text("#usda 1.0\n"),
    "points.obj": _text(_TRIANGLE),
    "lines.obj": _text(_TRIANGLE + "l 1 2\nl 2 3\n"),
    "one_triangle.obj": _text(_TRIANGLE + "f 1 2 3\n"),
    "one_point.obj": _text("v 1 1 1\n" * 4 + "f 1 2 3\nf 2 3 4\nf 1 2 4\nf 1 3 4\n"),
    "nan.obj": _nan,
    "infinite.obj": _text(_TRIANGLE.replace("0.05", "inf") + "v 0 0 1\nf 1 2 3\nf 1 2 4\nf 1 3 4\nf 2 3 4\n"),
    "huge_numbers.obj": _scaled(1e30, 1e30, 1e30),
    "index_beyond.obj": _text(_TRIANGLE + "f 1 2 900\n"),
    "index_zero.obj": _text(_TRIANGLE + "f 0 0 0\n"),
    "index_words.obj": _text(_TRIANGLE + "f a b c\n"),
    "flat.stl": _scaled(1, 1, 1e-6),
    "line.stl": _scaled(1, 1e-7, 1e-7),
    "kilometres.glb": _scaled(2e4, 2e4, 2e4),
    "micrometres.glb": _scaled(1e-6, 1e-6, 1e-6),
    "open_half.obj": _box(lambda mesh: mesh.update_faces(np.arange(12) < 6)),
    "half_a_ball.stl": _half_ball,
    "words.glb": _text("this is no model\n" * 50),
    "words.stl": _text("this is no model\n" * 50),
    "words.ply": _text("this is no model\n" * 50),
    "words.obj": _text("this is no model\n" * 50),
    "words.usda": _text("this is no model\n" * 50),
    "zip.usdz": _bytes(b"PK\x03\x04" + b"\0" * 200),
    "page.glb": _text("<html><body>404 Not Found</body></html>"),
    "pointer.glb": _text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 12345\n"),
    "cut.glb": _cut(0.5, "glb"),
    "cut.stl": _cut(0.5, "stl"),
    "cut.ply": _cut(0.5, "ply"),
    "cut_head.glb": _cut(0.02, "glb"),
    "noise.glb": _bytes(np.random.default_rng(0).bytes(5000)),
    "noise.stl": _bytes(np.random.default_rng(1).bytes(5000)),
    "noise.ply": _bytes(
        b"ply\nformat binary_little_endian 1.0\nelement vertex 99\n" + np.random.default_rng(2).bytes(999)
    ),
    "draco.gltf": _text(_GLTF % ("", ', "extensionsRequired": ["KHR_draco_mesh_compression"]')),
    "no_accessor.gltf": _text(_GLTF % (', "indices": 7', "")),
    "no_points.usda": _text(_USD % "int[] faceVertexCounts = [3]\nint[] faceVertexIndices = [0, 1, 2]\n"),
    "two_billion.usda": _text(
        _USD
        % "int[] faceVertexCounts = [2000000000]\nint[] faceVertexIndices = [0, 1, 2]\npoint3f[] points = [(0, 0, 0)]\n"
    ),
    "cyclic.urdf": _text(
        '<robot name="a"><link name="b"/><link name="c"/><joint type="fixed"><parent link="b"/><child link="c"/>'
        '</joint><joint type="fixed"><parent link="c"/><child link="b"/></joint></robot>'
    ),
    "entities.urdf": _text('<!DOCTYPE a [<!ENTITY b "c">]><robot/>'),
}
"""Functions that write the files, by name."""
