"""Dots that mark places: one plain mesh a colour, which costs a browser without a GPU next to nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.textures.color import linear
from nimbus.datagen.ui.browser.baked_lighting import unlit_glb

RADIUS = 0.009
"""[m]"""

_FACES = np.array([[0, 1, 2], [1, 3, 2], [3, 4, 2], [4, 0, 2], [1, 0, 5], [3, 1, 5], [4, 3, 5], [0, 4, 5]])
"""Of an octahedron whose corners are +x, +y, +z, -x, -y, -z; counter-clockwise from outside."""

Color = tuple[int, int, int]


def markers_glb(places: NDArray[Any], colors: Sequence[Color]) -> bytes:
    """Octahedra at (N, 3) places [m] in sRGB colours, as GLB without lighting."""
    import trimesh
    from trimesh.visual import TextureVisuals
    from trimesh.visual.material import PBRMaterial

    corners = RADIUS * np.vstack([np.eye(3), -np.eye(3)])
    scene, light = trimesh.Scene(), {}
    for color in dict.fromkeys(colors):
        own = places[[one == color for one in colors]]
        name = "dots{:02x}{:02x}{:02x}".format(*color)
        light[name] = linear(np.array(color) / 255).tolist()
        mesh = trimesh.Trimesh(
            vertices=(own[:, None] + corners).reshape(-1, 3),
            faces=(np.arange(len(own))[:, None, None] * len(corners) + _FACES).reshape(-1, 3),
            visual=TextureVisuals(material=PBRMaterial(name=name)),
            process=False,
        )
        scene.add_geometry(mesh)
    return unlit_glb(scene, light)
