"""Cable: a flexible cord, such as a charging cable or a rope, that lies flat along an arc at the start."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from nimbus.datagen.arrays import FloatArray, IndexArray
from nimbus.datagen.files.quantities import Radians, Range
from nimbus.datagen.files.strict_yaml import StrictModel
from nimbus.datagen.objects.cable import SIDES, CableChain, used_vertices
from nimbus.datagen.objects.shapes.contact import convex_hull
from nimbus.datagen.objects.shapes.shape import Shape, TextureRegion

Stiffness = Annotated[float, Field(ge=0, le=0.01)]
Damping = Annotated[float, Field(gt=0, le=0.01)]


class Cable(StrictModel):
    """Flexible cord; the width of the size is its length, and the height its thickness. Its region is ``sheath``."""

    family: Literal["cable"]
    links: Annotated[int, Field(ge=4, le=40)] = Field(
        24, description="number of stiff links; physics takes 0.3 CPU-s per s for 24"
    )
    bend: Range[Annotated[Radians, Field(ge=-2.0, le=2.0)]] = Field(
        (0.0, 0.0), description="angle between the directions of its two ends at rest"
    )
    stiffness: Range[Stiffness] = Field((2e-6, 2e-5), description="bending stiffness EI [N m²]")
    damping: Damping = Field(5e-5, description="damping of each joint [N m s/rad]")

    def build(self, size: FloatArray, rng: np.random.Generator) -> Shape:
        """Build one variant.

        Args:
            size: (3,) length, unused depth, and thickness [m].
            rng: Random stream of the variant.
        """
        chain = CableChain(
            links=self.links,
            length=float(size[0]),
            radius=float(size[2]) / 2,
            bend=float(rng.uniform(*self.bend)),
            stiffness=float(rng.uniform(*self.stiffness)),
            damping=self.damping,
        )
        links, offsets = chain.skin()
        frames = chain.frames()[links]
        vertices = np.einsum("vij,vj->vi", frames[:, :3, :3], offsets) + frames[:, :3, 3]
        rings = 2 * chain.links + 4
        used = used_vertices(rings)
        along = np.repeat(np.linspace(0.0, 1.0, rings), SIDES + 1)
        around = np.tile(np.linspace(0.0, 1.0, SIDES + 1), rings)
        girth = 2.0 * np.pi * chain.radius
        return Shape(
            vertices=vertices,
            faces=_faces(rings),
            uvs=np.column_stack([along, around])[used],
            crease=np.pi,
            pieces=(convex_hull(vertices),),
            regions={"sheath": TextureRegion(u=(0.0, 1.0), v=(0.0, 1.0), size=(chain.length, girth))},
            chain=chain,
        )


def _faces(rings: int) -> IndexArray:
    """Return the triangles (F, 3) with an area between consecutive rings, counter-clockwise from outside."""
    row = SIDES + 1
    first = (np.arange(rings - 1)[:, None] * row + np.arange(SIDES)[None, :]).ravel()
    one, other = [first, first + 1, first + row + 1], [first, first + row + 1, first + row]
    faces = [np.column_stack(one)[SIDES:], np.column_stack(other)[:-SIDES]]
    return (np.cumsum(used_vertices(rings)) - 1)[np.vstack(faces)].astype(np.int32)
