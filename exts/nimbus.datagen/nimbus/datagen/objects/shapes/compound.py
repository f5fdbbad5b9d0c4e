"""Objects made of several shapes: mugs with handles, hammers, brushes, books."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.files.quantities import Metres, Radians
from nimbus.datagen.files.strict_yaml import Name, StrictModel
from nimbus.datagen.objects.shapes.ball import Ball
from nimbus.datagen.objects.shapes.block import Block
from nimbus.datagen.objects.shapes.contact import Piece
from nimbus.datagen.objects.shapes.hole_board import HoleBoard
from nimbus.datagen.objects.shapes.hollow import Hollow
from nimbus.datagen.objects.shapes.loft import Loft
from nimbus.datagen.objects.shapes.ring import Ring
from nimbus.datagen.objects.shapes.shape import Shape, TextureRegion, frame_at

_INSET = 0.006
"""Gap between the windows of two parts, as a fraction of the texture's width."""
_LEAST = 0.35
"""Smallest width of a part's window, as a fraction of its width if all parts had equal windows."""

PartShape = Annotated[Loft | Block | Hollow | Ring | Ball | HoleBoard, Field(discriminator="family")]


class CompoundPart(StrictModel):
    """Shape of a part, and its pose in the compound."""

    shape: PartShape
    size: tuple[Metres, Metres, Metres] = Field(description="width, depth and height of the part before its rotation")
    at: tuple[Metres, Metres, Metres] = Field((0.0, 0.0, 0.0), description="position of the part's center")
    turn: tuple[Radians, Radians, Radians] = Field(
        (0.0, 0.0, 0.0), description="rotation of the part about x, then y, then z"
    )
    weight: Annotated[float, Field(gt=0, le=100)] = Field(1.0, description="density relative to the other parts")


class Compound(StrictModel):
    """Parts by name. All parts use the same arbitrary unit; the whole is scaled to the drawn size.

    Each part adds a texture region with its name, and its own regions under names such as ``handle.top``. It also adds
    a frame with its name at its center, with z along its upright axis. Frames and cavities of the parts keep their
    names.
    """

    family: Literal["compound"]
    parts: Annotated[dict[Name, CompoundPart], Field(min_length=1, max_length=24)]

    def build(self, size: FloatArray, rng: np.random.Generator) -> Shape:
        """Build one variant that fills a box.

        Args:
            size: (3,) width, depth and height of the box [m].
            rng: Random stream of the variant.
        """
        made = {name: part.shape.build(np.array(part.size), rng) for name, part in self.parts.items()}
        placed = {name: _placed(shape, self.parts[name]) for name, shape in made.items()}
        every = np.vstack([vertices for vertices, _ in placed.values()])
        low, high = every.min(axis=0), every.max(axis=0)
        scale, middle = np.asarray(size) / (high - low), (low + high) / 2

        def fit(points: FloatArray) -> FloatArray:
            """Move and scale points, (N, 3) or (3,), from the parts' own units into the box [m]."""
            return (points - middle) * scale

        windows = _windows([_area(shape) for shape in made.values()])
        regions, frames, cavities, uvs = {}, {}, {}, []
        for (name, shape), window in zip(made.items(), windows, strict=True):
            part = self.parts[name]
            regions |= _regions(name, shape, window)
            uvs.append(np.column_stack([window[0] + shape.uvs[:, 0] * (window[1] - window[0]), shape.uvs[:, 1]]))
            for key, frame in {name: frame_at((0, 0, 0)), **shape.frames}.items():
                turned = _transform(part) @ frame
                turned[:3, 3] = fit(turned[:3, 3])
                frames[key] = turned
            for key, box in shape.cavities.items():
                corners = fit(_moved(np.array([box[0], box[1]]), part))
                cavities[key] = np.array([corners.min(axis=0), corners.max(axis=0)])
        counts = np.cumsum([0] + [len(shape.vertices) for shape in made.values()])
        pieces: list[Piece] = [(fit(points), faces) for _, parts in placed.values() for points, faces in parts]
        weights = [np.full(len(shape.faces), self.parts[name].weight) for name, shape in made.items()]
        return Shape(
            vertices=fit(every),
            faces=np.vstack([shape.faces + first for shape, first in zip(made.values(), counts, strict=False)]),
            uvs=np.vstack(uvs),
            crease=min(shape.crease for shape in made.values()),
            pieces=tuple(pieces),
            regions=regions,
            frames=frames,
            cavities=cavities,
            weights=np.concatenate(weights),
        )


def _transform(part: CompoundPart) -> FloatArray:
    from scipy.spatial.transform import Rotation

    pose = np.eye(4)
    pose[:3, :3] = Rotation.from_euler("xyz", part.turn).as_matrix()
    pose[:3, 3] = part.at
    return pose


def _moved(points: FloatArray, part: CompoundPart) -> FloatArray:
    pose = _transform(part)
    return points @ pose[:3, :3].T + pose[:3, 3]


def _placed(shape: Shape, part: CompoundPart) -> tuple[FloatArray, list[Piece]]:
    return _moved(shape.vertices, part), [(_moved(points, part), faces) for points, faces in shape.pieces]


def _area(shape: Shape) -> float:
    corners = shape.vertices[shape.faces]
    cross = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    return float(np.linalg.norm(cross, axis=1).sum()) / 2


def _windows(areas: list[float]) -> list[tuple[float, float]]:
    """Assign each part a strip of the texture's width, in proportion to the square root of its area."""
    shares = np.maximum(np.sqrt(areas) / np.sqrt(areas).sum(), _LEAST / len(areas))
    edges = np.r_[0.0, np.cumsum(shares / shares.sum())]
    return [(float(low) + _INSET, float(high) - _INSET) for low, high in zip(edges[:-1], edges[1:], strict=True)]


def _regions(name: str, shape: Shape, window: tuple[float, float]) -> dict[str, TextureRegion]:
    width = window[1] - window[0]
    inner = {
        f"{name}.{key}": TextureRegion(
            u=(window[0] + region.u[0] * width, window[0] + region.u[1] * width), v=region.v, size=region.size
        )
        for key, region in shape.regions.items()
    }
    first = next(iter(shape.regions.values()))
    whole = (first.size[0] / (first.u[1] - first.u[0]), first.size[1] / (first.v[1] - first.v[0]))
    return {name: TextureRegion(u=window, v=(0.0, 1.0), size=whole), **inner}
