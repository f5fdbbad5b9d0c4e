"""Generated homes as splats, sampled from their surfaces; their exact geometry is known."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from pydantic import Field

from nimbus.datagen.files.quantities import Range
from nimbus.datagen.navigate.homes import home_scene
from nimbus.datagen.navigate.splat_source import PlacedSplats, SplatSource, upright
from nimbus.datagen.registry import register
from nimbus.datagen.rooms.home import HOME_VERSION
from nimbus.datagen.splats.cloud import MOST_SPLATS
from nimbus.datagen.splats.sample import VERSION, discs_of, place_samples


@register("scene", "splat_homes")
class SplatHomesSource(SplatSource):
    """Homes with generated rooms and furniture, as splats; the mesh of the home is the proxy."""

    splat_homes: Annotated[int, Field(ge=1, le=100_000)] = Field(description="Number of homes.")
    rooms: Range[Annotated[int, Field(ge=1, le=60)]] = Field(
        (3, 5), description="Smallest and largest number of rooms of a home."
    )
    seed: Annotated[int, Field(ge=0, lt=2**31)] = Field(0, description="Number of the first home.")
    per_home: Annotated[int, Field(ge=1000, le=MOST_SPLATS)] = Field(
        300_000, description="Number of splats of each home."
    )

    @property
    def count(self) -> int:
        """Number of homes."""
        return self.splat_homes

    def read(self, number: int) -> PlacedSplats:
        """Sample splats from the home with the given number; they are gray until they are lit."""
        scene = home_scene(self.seed + number, self.rooms)
        samples = place_samples(scene.corners, self.per_home)
        cloud = discs_of(samples, np.full((self.per_home, 3), 0.5))
        return PlacedSplats(scene=scene, cloud=cloud, world_T_cloud=upright(), has_mesh=True, samples=samples)

    def fingerprint(self) -> dict[str, str]:
        """Return the versions of the home generator and of the sampling; the task's hash covers the rest."""
        return {"homes": str(HOME_VERSION), "splat samples": str(VERSION)}
