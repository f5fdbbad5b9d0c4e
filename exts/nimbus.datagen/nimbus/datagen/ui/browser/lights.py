"""The light of the scene in the browser: a sun without shadows, and a sky."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.textures.color import linear

SUN_FROM, SUN = (-0.2, 0.2, 1.0), 3.0
"""Where the sun stands, seen from the origin, and how bright it is."""
SKY, SKY_COLOR, GROUND_COLOR = 2.0, (255, 255, 255), (170, 165, 160)
"""How bright the sky is, its colour, and that of the ground, in sRGB."""


def add_lights(server: Any) -> None:
    """Put them into a ``viser.ViserServer``'s scene, in place of its own."""
    # Without a GPU, shadows, reflections and each further light take most of the time that a picture takes.
    server.scene.configure_environment_map(None)
    server.scene.configure_default_lights(enabled=False)
    server.scene.add_light_directional("/lights/sun", intensity=SUN, position=SUN_FROM)
    server.scene.add_light_hemisphere("/lights/sky", sky_color=SKY_COLOR, ground_color=GROUND_COLOR, intensity=SKY)


def brightness(normals: NDArray[Any]) -> NDArray[Any]:
    """(n, 3) linear RGB that a white matt surface shows, by its (n, 3) unit normals."""
    to_sun = np.array(SUN_FROM) / np.linalg.norm(SUN_FROM)
    sky, ground = (linear(np.array(color) / 255.0) for color in (SKY_COLOR, GROUND_COLOR))
    from_sun = SUN * np.maximum(0.0, normals @ to_sun)
    # The page's sky has no direction: each surface sees half of it and half of the ground.
    return (from_sun[:, None] + SKY * (sky + ground) / 2) / np.pi
