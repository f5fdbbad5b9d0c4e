"""Meshes with baked lighting, so that a browser without a GPU need not light every pixel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.textures.color import linear

_MOST_SIDES = 24
"""Largest number of face directions of a part with baked light; the browser lights round parts, with more."""
SUN_FROM, SUN = (-0.2, 0.2, 1.0), 3.0
"""Direction from the origin to the sun, and its brightness."""
SKY, SKY_COLOR, GROUND_COLOR = 2.0, (255, 255, 255), (170, 165, 160)
"""Brightness of the sky, and sRGB colors of sky and ground."""


def baked_glb(mesh: Any) -> bytes | None:
    """Convert a static textured mesh to GLB with baked light; return None if there are too many face directions."""
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
    """Convert a ``trimesh.Scene`` to GLB without lighting: the glTF extension KHR_materials_unlit.

    Args:
        scene: Scene whose materials have names.
        colors: Linear RGB factors of each material's image, by the material's name.
    """
    from trimesh.exchange.gltf import export_glb

    def unlit(tree: dict[str, Any]) -> None:
        tree["extensionsUsed"] = ["KHR_materials_unlit"]
        for material in tree["materials"]:
            material["extensions"] = {"KHR_materials_unlit": {}}
            material.setdefault("pbrMetallicRoughness", {})["baseColorFactor"] = [*colors[material["name"]], 1.0]

    return export_glb(scene, tree_postprocessor=unlit)


def add_lights(server: Any) -> None:
    """Replace the lights of a ``viser.ViserServer``'s scene by sun and sky of this module."""
    # Shadows, reflections and further lights are left out: without a GPU, they take most of the time per frame.
    server.scene.configure_environment_map(None)
    server.scene.configure_default_lights(enabled=False)
    server.scene.add_light_directional("/lights/sun", intensity=SUN, position=SUN_FROM)
    server.scene.add_light_hemisphere("/lights/sky", sky_color=SKY_COLOR, ground_color=GROUND_COLOR, intensity=SKY)


def brightness(normals: NDArray[Any]) -> NDArray[Any]:
    """Return (n, 3) linear RGB of a white matte surface by its (n, 3) unit normals."""
    to_sun = np.array(SUN_FROM) / np.linalg.norm(SUN_FROM)
    sky, ground = (linear(np.array(color) / 255.0) for color in (SKY_COLOR, GROUND_COLOR))
    from_sun = SUN * np.maximum(0.0, normals @ to_sun)
    # The page's sky has no direction: each surface receives half of it and half of the ground.
    return (from_sun[:, None] + SKY * (sky + ground) / 2) / np.pi
