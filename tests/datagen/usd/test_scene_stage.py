"""A navigation scene as a USD stage: every part has a material and a collider, and scans show their captured light."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nimbus.datagen.meshes.triangles import Triangles
from nimbus.datagen.navigate.navigation_scene import NavigationScene, ScenePart
from nimbus.datagen.usd.scene_stage import write_scene_stage

IMAGE = np.arange(48, dtype=np.uint8).reshape(4, 4, 3)


def part(name: str, **values: Any) -> ScenePart:
    triangles = Triangles(
        vertices=np.eye(3, dtype=np.float32),
        faces=np.array([[0, 1, 2]], dtype=np.int32),
        normals=np.full((3, 3), 3**-0.5, dtype=np.float32),
        uvs=np.eye(3, 2, dtype=np.float32),
        colors=np.eye(3, dtype=np.float32),
    )
    return ScenePart(name=name, object_class="chair", room="hall", triangles=triangles, **values)


def written(folder: Path, **values: Any) -> Any:
    from pxr import Usd

    parts = (part("seat 1", picture=IMAGE), part("seat 1"), part("view", picture=IMAGE, is_open=True))
    scene = NavigationScene(name="s", content_hash="h", parts=parts, lamps=np.array([[0.0, 0.0, 2.0]]), **values)
    write_scene_stage(folder / "scene.usda", scene)
    return Usd.Stage.Open(str(folder / "scene.usda"))


def inputs(stage: Any, place: str) -> set[str]:
    """Return the inputs of a mesh's shader that an image or vertex colors provide."""
    from pxr import UsdShade

    binding: Any = UsdShade.MaterialBindingAPI(stage.GetPrimAtPath(place))
    material = binding.ComputeBoundMaterial()[0]
    surface: Any = UsdShade.Shader(stage.GetPrimAtPath(f"{material.GetPath()}/preview"))
    return {one.GetBaseName() for one in surface.GetInputs() if one.HasConnectedSource()}


@pytest.mark.parametrize(("is_lit", "expected"), [(False, "diffuseColor"), (True, "emissiveColor")])
def test_parts_are_painted_and_collide(tmp_path: Path, is_lit: bool, expected: str):
    from pxr import UsdPhysics

    stage = written(tmp_path, is_lit=is_lit)
    places = ["/World/scene/seat_1/part_0", "/World/scene/seat_1/part_1", "/World/scene/view/part_0"]
    assert [inputs(stage, place) for place in places] == [{expected}, {expected}, {"emissiveColor"}]
    collide = [stage.GetPrimAtPath(place).HasAPI(UsdPhysics.CollisionAPI) for place in places]
    assert collide == [True, True, False], "a view through a window is no wall"
    assert bool(stage.GetPrimAtPath("/World/Lights/lamp_0")) != is_lit
    assert stage.GetPrimAtPath("/World/scene/seat_1").GetCustomDataByKey("nimbus:class") == "chair"
    (picture,) = (tmp_path / "scene_textures").iterdir()
    assert picture.suffix == ".png"
