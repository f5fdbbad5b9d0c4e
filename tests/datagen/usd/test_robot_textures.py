"""Images of a user's robot: the converter copies only those that the robot's hash covers."""

from __future__ import annotations

from pathlib import Path

import pytest

from nimbus.datagen.robots.robot import Robot, load_robot
from nimbus.datagen.usd.robot import robot_hash, write_usd
from tests.support.refusals import refusal

FACE = "v 0 0 0\nv 1 0 0\nv 0 1 0\nvt 0 0\nusemtl m\nf 1/1 2/1 3/1\n"
COLLADA = """<?xml version="1.0"?>
<COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1"><asset/>
<library_images><image id="i"><init_from>IMAGE</init_from></image></library_images>
<library_effects><effect id="e"><profile_COMMON>
<newparam sid="s"><surface type="2D"><init_from>i</init_from></surface></newparam>
<newparam sid="t"><sampler2D><source>s</source></sampler2D></newparam>
<technique sid="c"><lambert><diffuse><texture texture="t" texcoord="UV"/></diffuse></lambert></technique>
</profile_COMMON></effect></library_effects>
<library_materials><material id="m" name="m"><instance_effect url="#e"/></material></library_materials>
</COLLADA>"""


def robot(folder: Path, mesh: str) -> Robot:
    """Write a robot of one mesh."""
    shape = f'<visual><geometry><mesh filename="{mesh}"/></geometry></visual>'
    (folder / "mine.urdf").write_text(f'<robot name="mine"><link name="a">{shape}</link></robot>')
    panda = load_robot("panda")
    piece = panda.pieces[0].model_copy(update={"package": "", "urdf": str(folder / "mine.urdf")})
    return panda.model_copy(update={"pieces": (piece,)})


def obj(folder: Path, *, materials: str = "look.mtl", image: str) -> Robot:
    (folder / "thing.obj").write_text(f"mtllib {materials}\n{FACE}")
    (folder / materials.replace("\\", "")).write_text(f"newmtl m\nmap_Kd {image}\n")
    return robot(folder, "thing.obj")


def collada(folder: Path, image: str) -> Robot:
    (folder / "thing.dae").write_text(COLLADA.replace("IMAGE", image))
    return robot(folder, "thing.dae")


@pytest.mark.parametrize(
    "make",
    [
        lambda folder: obj(folder, image="-o 0 0 0 " * 10 + "../private.png"),
        lambda folder: obj(folder, image="./" * 700 + "../private.png"),
        lambda folder: collada(folder, "<![CDATA[../private.png]]>"),
        lambda folder: collada(folder, "../pri<!-- x -->vate.png"),
    ],
)
def test_an_image_that_the_hash_does_not_cover_is_not_copied(tmp_path: Path, make):
    """It could be a private image of the user, drawn into a dataset."""
    (tmp_path / "private.png").write_bytes(b"mine")
    (tmp_path / "robot").mkdir()
    mine = make(tmp_path / "robot")
    robot_hash(mine)
    told = refusal(write_usd, mine.model_dump_json(), str(tmp_path / "robot"))
    assert "private.png' in an unusual way" in told
    assert [path.parent.name for path in tmp_path.rglob("private.png")] == [tmp_path.name]


@pytest.mark.parametrize(
    "name",
    [
        "my\\ look.mtl",
        ".\\./look.mtl",
        ".\\./.\\./private/look.mtl",
        "../look.mtl\0",
        "a " * 40 + "../look.mtl",
        "a\tb",
    ],
)
def test_a_material_that_the_converter_reads_differently_is_refused(tmp_path: Path, name: str):
    """The converter would open a file outside of the robot's folder, and draw its colors."""
    (tmp_path / "thing.obj").write_text(f"mtllib {name}\n{FACE}")
    assert "which is not a plain path" in refusal(robot_hash, robot(tmp_path, "thing.obj"))


def test_a_listed_image_is_copied(tmp_path: Path):
    (tmp_path / "look.png").write_bytes(b"mine")
    write_usd(obj(tmp_path, image="look.png").model_dump_json(), str(tmp_path))
    assert (tmp_path / "usd/Textures/look.png").is_file()
