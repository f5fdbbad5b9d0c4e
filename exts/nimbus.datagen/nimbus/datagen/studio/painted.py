"""Parts that never move, with their light painted on: a browser without a GPU need not compute it for every pixel."""

from __future__ import annotations

from typing import Any

import numpy as np

from nimbus.datagen.studio.lights import brightness

_MOST_SIDES = 24
"""Directions that the faces of a part may have: what has more is round, and its light is computed."""


def painted_glb(mesh: Any) -> bytes | None:
    """A ``trimesh.Trimesh`` with a picture as GLB without lighting; None where it has too many sides.

    Unlit materials are the glTF extension KHR_materials_unlit.
    """
    import trimesh
    from trimesh.exchange.gltf import export_glb

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

    def unlit(tree: dict[str, Any]) -> None:
        tree["extensionsUsed"] = ["KHR_materials_unlit"]
        for material in tree["materials"]:
            material["extensions"] = {"KHR_materials_unlit": {}}
            material["pbrMetallicRoughness"]["baseColorFactor"] = [*light[material["name"]], 1.0]

    return export_glb(scene, tree_postprocessor=unlit)
