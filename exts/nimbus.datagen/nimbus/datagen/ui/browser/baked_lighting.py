"""Meshes without lighting, which a browser without a GPU need not compute for every pixel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from nimbus.datagen.ui.browser.lights import brightness

_MOST_SIDES = 24
"""Directions that the faces of a part may have: what has more is round, and its light is computed."""


def baked_glb(mesh: Any) -> bytes | None:
    """A ``trimesh.Trimesh`` with a picture that never moves as GLB, its light painted on; None with too many sides."""
    import trimesh

    sides, of_face = np.unique(mesh.face_normals.round(2), axis=0, return_inverse=True)
    if len(sides) > _MOST_SIDES:
        return None
    scene = trimesh.Scene()
    for number in range(len(sides)):
        side = mesh.submesh([np.flatnonzero(of_face.ravel() == number)], append=True, repair=False)
        side.visual.material = mesh.visual.material.copy()
        side.visual.material.name = f"side{number}"
        scene.add_geometry(side)
    light = dict(zip((f"side{number}" for number in range(len(sides))), brightness(sides).tolist(), strict=True))
    return unlit_glb(scene, light)


def unlit_glb(scene: Any, colors: Mapping[str, Sequence[float]]) -> bytes:
    """A ``trimesh.Scene`` as GLB without lighting: the glTF extension KHR_materials_unlit.

    Args:
        scene: Its materials have names.
        colors: Linear red, green and blue that each material's picture is multiplied by, by the material's name.
    """
    from trimesh.exchange.gltf import export_glb

    def unlit(tree: dict[str, Any]) -> None:
        tree["extensionsUsed"] = ["KHR_materials_unlit"]
        for material in tree["materials"]:
            material["extensions"] = {"KHR_materials_unlit": {}}
            material.setdefault("pbrMetallicRoughness", {})["baseColorFactor"] = [*colors[material["name"]], 1.0]

    return export_glb(scene, tree_postprocessor=unlit)
