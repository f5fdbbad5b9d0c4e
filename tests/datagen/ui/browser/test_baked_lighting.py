from __future__ import annotations

import json

import numpy as np

from nimbus.datagen.ui.browser.baked_lighting import baked_glb


def table() -> object:
    import trimesh
    from PIL import Image
    from trimesh.visual import TextureVisuals
    from trimesh.visual.material import PBRMaterial

    box = trimesh.creation.box((1, 1, 1))
    picture = PBRMaterial(baseColorTexture=Image.new("RGB", (4, 4), (90, 200, 90)), metallicFactor=0.0)
    corners = np.asarray(box.vertices)[np.asarray(box.faces)].reshape(-1, 3)
    faces = np.arange(len(corners)).reshape(-1, 3)
    visual = TextureVisuals(uv=corners[:, :2] + 0.5, material=picture)
    return trimesh.Trimesh(vertices=corners, faces=faces, visual=visual, process=False)


def test_each_side_is_unlit_and_as_bright_as_the_sun_makes_it() -> None:
    glb = baked_glb(table())
    assert glb
    tree = json.loads(glb[20 : 20 + int.from_bytes(glb[12:16], "little")])
    assert tree["extensionsUsed"] == ["KHR_materials_unlit"]
    assert all("KHR_materials_unlit" in material["extensions"] for material in tree["materials"])
    greys = sorted(material["pbrMetallicRoughness"]["baseColorFactor"][1] for material in tree["materials"])
    assert len(greys) == 6
    assert greys[-1] > 2 * greys[0] > 0, "the top beside those that are turned away"


def test_what_is_round_is_lit() -> None:
    import trimesh

    assert baked_glb(trimesh.creation.icosphere(subdivisions=3)) is None
