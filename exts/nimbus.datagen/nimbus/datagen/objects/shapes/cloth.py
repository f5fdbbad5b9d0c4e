"""Cloth: a flexible sheet of square cells, such as a towel or a napkin, that lies flat at the start."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.files.strict_yaml import StrictModel
from nimbus.datagen.objects.model import Sheet
from nimbus.datagen.objects.shapes.contact import convex_hull
from nimbus.datagen.objects.shapes.shape import Shape, TextureRegion

Cells = Annotated[int, Field(ge=2, le=20)]


class Cloth(StrictModel):
    """Flexible sheet in the plane of x and y; the height of the size is its thickness. Its region is ``sheet``."""

    family: Literal["cloth"]
    cells: tuple[Cells, Cells] = Field(
        (14, 14), description="number of cells along the width and the depth; physics takes 1 CPU-s per s for 14 x 14"
    )

    firm: bool = Field(
        False, description="keep the lengths of edges under tension; physics takes up to 1.5 times as long"
    )

    def build(self, size: FloatArray, rng: np.random.Generator) -> Shape:
        """Build a flat sheet.

        Args:
            size: (3,) width, depth and thickness [m].
            rng: Unused: all sheets of a size are equal.
        """
        width, depth, thickness = (float(extent) for extent in size)
        sheet = Sheet(cells=self.cells, size=(width, depth), thickness=thickness, is_firm=self.firm)
        corners = np.stack(np.meshgrid(*[[-0.5, 0.5]] * 3, indexing="ij"), axis=-1).reshape(-1, 3)
        return Shape(
            vertices=sheet.points(),
            faces=sheet.faces(),
            uvs=sheet.points()[:, :2] / (width, depth) + 0.5,
            crease=1.0,
            pieces=(convex_hull(corners * size),),
            regions={"sheet": TextureRegion(u=(0.0, 1.0), v=(0.0, 1.0), size=(width, depth))},
            sheet=sheet,
        )
