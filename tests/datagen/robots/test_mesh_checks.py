"""Meshes of a robot: a missing, unreadable, flat or wrongly scaled mesh causes one line of output that names the line
of the URDF."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest
import trimesh

from nimbus.datagen.errors import InputError, StorageError
from nimbus.datagen.files.cache import full_disk
from nimbus.datagen.robots import mesh_checks
from nimbus.datagen.robots.mesh_checks import check_mesh_files, check_meshes
from nimbus.datagen.robots.robot import Piece, Robot

LINK = """<robot name="one">
<link name="base">
  <{tag}><geometry>
    <mesh filename="{file}"{scale}/></geometry></{tag}></link>
</robot>"""
MJCF = """<mujoco><asset><mesh name="part" file="{file}"/></asset><worldbody>
<body name="base"><geom type="mesh" mesh="part"/></body></worldbody></mujoco>"""


@pytest.fixture(scope="module")
def meshes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("meshes")
    trimesh.creation.box((0.1, 0.2, 0.3)).export(folder / "good.stl")
    trimesh.creation.box((100, 200, 300)).export(folder / "big.stl")
    corners = np.array([[0, 0, 0], [0.3, 0, 0.1], [0.3, 0.3, 0.2], [0, 0.3, 0.1]])
    trimesh.Trimesh(corners, [[0, 1, 2], [0, 2, 3]]).export(folder / "flat.stl")
    (folder / "text.stl").write_text("a part of a robot")
    (folder / "empty.stl").touch()
    (folder / "good.step").write_text("ISO-10303-21;")
    return folder


def check(folder: Path, text: str, name: str = "one.urdf") -> None:
    (folder / name).write_text(text)
    piece = Piece(urdf=str(folder / name))
    check_mesh_files(piece, robot="one")
    check_meshes(Robot.model_construct(name="one", pieces=(piece,)))


@pytest.mark.parametrize(
    ("tag", "file", "scale"),
    [
        ("collision", "good.stl", ""),
        ("collision", "big.stl", ' scale="0.001 0.001 -0.001"'),
        ("visual", "flat.stl", ""),
    ],
)
def test_what_is_legal_passes(tag: str, file: str, scale: str, meshes: Path):
    check(meshes, LINK.format(tag=tag, file=file, scale=scale))


@pytest.mark.parametrize(
    ("file", "scale", "said"),
    [
        ("nothere.stl", "", r"mesh 'nothere.stl' does not exist: .*/nothere.stl; put it there"),
        ("package://one/a.stl", "", r"mesh 'package://one/a.stl' does not exist: .*/one/a.stl; put it there"),
        ("empty.stl", "", r"mesh 'empty.stl' is an empty file; export it again"),
        ("text.stl", "", r"mesh 'text.stl' (contains no triangles|cannot be read as STL)"),
        ("good.step", "", r"mesh 'good.step' has an unknown format; export it as one of .stl, .obj, .dae"),
        ("big.stl", "", r'mesh .* is 300 m long; .*; write scale="0.001 0.001 0.001" in its <mesh>; it is then 0.3 m'),
        ("good.stl", ' scale="1000 1000 1000"', r'mesh .* is 300 m long; .*; write scale="1 1 1"'),
        ("good.stl", ' scale="0.001 0.001 0.001"', r'mesh .* is 0.0003 m long; .*; write scale="1 1 1"'),
        ("flat.stl", "", r"mesh 'flat.stl' is flat, but collision geometry needs a volume; give it a thickness"),
        ("good.stl", ' scale="1 1 0"', r"mesh 'good.stl' is flat"),
    ],
)
def test_what_cannot_be_a_part_is_one_line(file: str, scale: str, said: str, meshes: Path):
    with pytest.raises(InputError, match=rf"one\.urdf:4: {said}[^\n]*$"):
        check(meshes, LINK.format(tag="collision", file=file, scale=scale))


def test_a_full_disk_is_not_said_of_a_mesh(meshes: Path, monkeypatch: pytest.MonkeyPatch):
    def fill(*_: object, **__: object) -> None:
        raise full_disk(Path(tempfile.gettempdir(), "nimbus-meshes-a"))

    monkeypatch.setattr(mesh_checks, "run_limited", fill)
    with pytest.raises(StorageError, match=f"^{tempfile.gettempdir()}: the disk of the folder of temporary files"):
        check(meshes, LINK.format(tag="visual", file="good.stl", scale=""))


def test_a_mesh_of_an_mjcf_file_is_named_by_its_body(meshes: Path):
    check(meshes, MJCF.format(file="good.stl"), "one.xml")
    with pytest.raises(InputError, match=r"one\.xml:2: a mesh of body 'base' is 300 m long"):
        check(meshes, MJCF.format(file="big.stl"), "one.xml")
