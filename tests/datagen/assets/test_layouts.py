"""Recognition of datasets by their published file names, and reading of scales, textures and poses that are stored
outside of the meshes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import trimesh

from nimbus.datagen.assets.found import FoundAsset, found_from_plain
from nimbus.datagen.assets.layouts import recognize

_CUBE = trimesh.creation.box((1, 1, 1))


def found(root: Path, *names: str) -> dict[str, FoundAsset]:
    """Return the layout and name of each asset that is found for meshes with these paths."""
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        _CUBE.export(root / name) if name.endswith((".obj", ".glb", ".stl", ".ply")) else (root / name).write_text("x")
    assets = map(found_from_plain, recognize(str(root)))
    return {f"{asset.layout} {asset.name}": asset for asset in assets}


def test_published_layouts_are_recognized(tmp_path: Path) -> None:
    ycb = [f"ycb/003_cracker_box/{scan}/textured.obj" for scan in ("google_16k", "poisson", "tsdf")]
    ycb += ["ycb/005_tomato_soup_can/tsdf/nontextured.ply", "ycb/003_cracker_box/clouds/merged_cloud.ply"]
    gso = ["gso/Weisshai_Great_White_Shark/meshes/model.obj", "gso/Weisshai_Great_White_Shark/model.config"]
    hope = [f"hope/{name}/{name}.obj" for name in ("AlphabetSoup", "Milk", "Ketchup")]
    twin = ["robotwin/objects/001_bottle/visual/base0.glb", "robotwin/objects/001_bottle/collision/base0.glb"]
    uid = "0123456789abcdef0123456789abcdef"
    (tmp_path / "robotwin/objects/001_bottle").mkdir(parents=True)
    (tmp_path / "robotwin/objects/001_bottle/model_data0.json").write_text('{"scale": [0.1, 0.1, 0.1]}')
    (tmp_path / "lvis-annotations.json").write_text(json.dumps({"mug": [uid]}))
    loose = ["loose/teapot/textured.obj", "loose/teapot/textured_vhacd.obj", "loose/spoon.stl"]
    assets = found(tmp_path, *ycb, *gso, *hope, *twin, f"glbs/000-001/{uid}.glb", *loose)
    assert sorted(assets) == [
        "gso Weisshai_Great_White_Shark",
        "hope AlphabetSoup",
        "hope Ketchup",
        "hope Milk",
        "mesh spoon",
        "mesh teapot",
        f"objaverse mug_{uid[:8]}",
        "robotwin 001_bottle_0",
        "ycb 003_cracker_box",
        "ycb 005_tomato_soup_can",
    ]
    assert assets["ycb 003_cracker_box"].path == ycb[0]
    assert (assets["hope Milk"].metres, assets["robotwin 001_bottle_0"].metres) == (0.01, 0.1)


def test_mjcf_gives_scale_texture_and_place(tmp_path: Path) -> None:
    (tmp_path / "textures").mkdir()
    (tmp_path / "textures" / "soda.png").write_bytes(b"")
    (tmp_path / "objects" / "scene.xml").parent.mkdir()
    table = "<worldbody><body name='table'><geom type='box' size='1 1 1'/></body></worldbody>"
    (tmp_path / "objects" / "scene.xml").write_text(f"<mujocoinclude>{table}</mujocoinclude>")
    (tmp_path / "objects" / "can.xml").write_text("""<mujoco><compiler angle="degree"/>
      <include file="scene.xml"/>
      <default><default class="seen"><geom contype="0" conaffinity="0" type="mesh"/></default></default>
      <asset><mesh name="m" file="meshes/can.stl" scale="0.1 0.1 0.1"/>
        <texture name="t" type="2d" file="../textures/soda.png"/><material name="coke" texture="t"/></asset>
      <worldbody><body><freejoint/><body name="object" pos="0 0 1">
        <geom class="seen" mesh="m" material="coke" euler="0 0 90" pos="0.5 0 0"/><geom type="box" size="9 9 9"/>
      </body></body></worldbody></mujoco>""")
    (tmp_path / "objects" / "door.xml").write_text("""<mujoco><worldbody><body><geom type="box" size="1 1 1"/>
      <body><joint type="hinge"/><geom type="box" size="1 1 1"/></body></body></worldbody></mujoco>""")
    assets = found(tmp_path, "objects/meshes/can.stl")
    assert sorted(assets) == ["mjcf can", "mjcf door"]
    (part,) = assets["mjcf can"].parts
    assert (part.mesh, part.texture) == ("objects/meshes/can.stl", "textures/soda.png")
    expected = [[0, -0.1, 0, 0.5], [0.1, 0, 0, 0], [0, 0, 0.1, 1], [0, 0, 0, 1]]
    assert np.allclose(part.matrix(), expected)
    (joint,) = assets["mjcf door"].joints
    assert (joint.kind, joint.flaw) == ("hinge", "") and [part.link for part in assets["mjcf door"].parts] == [
        "",
        joint.link,
    ]


def test_articulated_urdf_claims_its_meshes(tmp_path: Path) -> None:
    (tmp_path / "45780").mkdir()
    (tmp_path / "45780" / "mobility.urdf").write_text("""<robot name="p"><link name="a"/><link name="b"><visual>
      <geometry><mesh filename="textured_objs/original-1.obj"/></geometry></visual></link>
      <joint name="j" type="revolute"><parent link="a"/><child link="b"/></joint></robot>""")
    assets = found(tmp_path, "45780/textured_objs/original-1.obj")
    assert list(assets) == ["partnet 45780"]
    assert assets["partnet 45780"].joints[0].flaw == "otherwise all parts would move"
