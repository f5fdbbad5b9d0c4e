"""Grains: many equal small spheres that fill a container, such as peas in a cup."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.files.quantities import Metres, Range
from nimbus.datagen.files.strict_yaml import StrictModel
from nimbus.datagen.objects.grains import GrainHeap
from nimbus.datagen.objects.shapes.ball import even_points
from nimbus.datagen.objects.shapes.contact import convex_hull
from nimbus.datagen.objects.shapes.shape import Shape, TextureRegion


class Grains(StrictModel):
    """Equal spheres in a column of layers, of which only the width counts. Its region is ``grains``."""

    family: Literal["grains"]
    count: Annotated[int, Field(ge=2, le=300)] = Field(
        200, description="number of grains; physics takes 1 CPU-s per s for 200"
    )
    diameter: Range[Annotated[Metres, Field(ge=0.003, le=0.02)]] = Field(
        (0.007, 0.007), description="diameter of the grains"
    )

    def build(self, size: FloatArray, rng: np.random.Generator) -> Shape:
        """Build one variant.

        Args:
            size: (3,) width of the column, unused depth and height [m].
            rng: Random stream of the variant.
        """
        heap = GrainHeap(count=self.count, radius=float(rng.uniform(*self.diameter)) / 2, width=float(size[0]))
        owners, offsets = heap.skin()
        vertices = heap.points()[owners] + offsets
        low, extent = vertices.min(axis=0), np.ptp(vertices, axis=0)
        _, faces = convex_hull(even_points())
        first = len(even_points()) * np.arange(self.count)[:, None, None]
        return Shape(
            vertices=vertices,
            faces=(first + faces).reshape(-1, 3).astype(np.int32),
            uvs=((vertices - low) / extent)[:, :2],
            crease=np.pi,
            pieces=(convex_hull(vertices),),
            regions={"grains": TextureRegion(u=(0.0, 1.0), v=(0.0, 1.0), size=(float(extent[0]), float(extent[1])))},
            heap=heap,
        )
