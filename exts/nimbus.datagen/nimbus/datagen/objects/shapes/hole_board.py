"""Boards with holes for pegs: a block of convex pieces around each hole."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from pydantic import Field, model_validator

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.errors import InputError
from nimbus.datagen.files.quantities import Metres, Range
from nimbus.datagen.files.strict_yaml import StrictModel
from nimbus.datagen.objects.shapes.contact import Piece, convex_hull
from nimbus.datagen.objects.shapes.shape import Shape, TextureRegion, frame_at

_SIDES = 0.3
"""Fraction of the texture's height for the sides."""
_CORNERS = {"square": (4, 4), "round": (16, 32)}
"""Numbers of corners of a hole's outline, for contact and for appearance."""
_U = {"top": (0.0, 0.5), "bottom": (0.5, 0.8), "holes": (0.8, 1.0)}
_V = (_SIDES, 1.0)


class Hole(StrictModel):
    """Hole at the center of its cell of the board."""

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")] = Field(
        "hole", description="name of the hole's frame and cavity"
    )
    shape: Literal["round", "square"] = "round"
    fits: Annotated[Metres, Field(gt=0)] = Field(description="width of the matching peg, between flats")
    clearance: Range[Metres] = Field((0.001, 0.002), description="hole's width minus the peg's width")


class HoleBoard(StrictModel):
    """Board of equal cells with a hole in each; the holes open to the top.

    Each hole has a frame in its mouth, z up, and a cavity. Regions of the surface are ``top``, ``sides``, ``bottom``
    and ``holes``.
    """

    family: Literal["hole_board"]
    holes: Annotated[tuple[Hole, ...], Field(min_length=1, max_length=16)]
    rows: Annotated[int, Field(ge=1, le=4)] = Field(1, description="rows of holes, from front to back")
    floor: Annotated[Metres, Field(ge=0)] = Field(
        0.004, description="thickness of the board below the holes; 0 for holes that go through"
    )
    chamfer: Annotated[Metres, Field(ge=0)] = Field(0.0015, description="chamfer of the edge of a hole")

    @model_validator(mode="after")
    def _names_differ(self) -> HoleBoard:
        names = [hole.name for hole in self.holes]
        if len(set(names)) < len(names):
            raise ValueError("two holes have the same name; give each its own name")
        if len(names) % self.rows:
            raise ValueError(f"{len(names)} holes do not fill {self.rows} rows evenly")
        return self

    def build(self, size: FloatArray, rng: np.random.Generator) -> Shape:
        """Build a board.

        Args:
            size: (3,) width, depth and height [m].
            rng: Stream that draws the width of each hole.
        """
        size = np.asarray(size, dtype=np.float64)
        low, top = -size[2] / 2, size[2] / 2
        ground = low + min(self.floor, size[2] / 2)
        skin, pieces, frames, cavities = _Skin(size), [], {}, {}
        for hole, (center, half) in zip(self.holes, self._cells(size), strict=True):
            radius = (hole.fits + float(rng.uniform(*hole.clearance))) / 2
            chamfer = min(self.chamfer, 0.8 * (float(half.min()) - radius))
            if chamfer < 0:
                what = f"hole '{hole.name}' is {2 * radius * 1000:.0f} mm wide, wider than its cell of the board"
                raise InputError(what, instead="enlarge the board, or spread the holes over other rows")
            felt, seen = (_Cell(count, radius, chamfer, center, half) for count in _CORNERS[hole.shape])
            pieces += felt.pieces(ground, top)
            skin.add(seen, low, ground, top)
            frames[hole.name] = frame_at((*center, top))
            cavities[hole.name] = np.array([[*(center - radius), ground], [*(center + radius), top]])
        if ground > low:
            corners = np.stack(np.meshgrid(*([-extent, extent] for extent in size / 2), indexing="ij"), axis=-1)
            corners = corners.reshape(-1, 3)
            corners[:, 2] = np.where(corners[:, 2] > 0, ground, low)
            pieces.append(convex_hull(corners))
        vertices, uvs = np.array(skin.points), np.array(skin.uvs)
        return Shape(
            vertices=vertices,
            faces=np.arange(len(vertices), dtype=np.int32).reshape(-1, 3),
            uvs=uvs,
            crease=0.6,
            pieces=tuple(pieces),
            regions=skin.regions(),
            frames=frames,
            cavities=cavities,
        )

    def _cells(self, size: FloatArray) -> list[tuple[FloatArray, FloatArray]]:
        """Return center and half extent (2,) [m] of each hole's cell, from left to right, front row first."""
        columns = len(self.holes) // self.rows
        half = size[:2] / (2 * columns, 2 * self.rows)
        places = [(column, row) for row in range(self.rows) for column in range(columns)]
        return [(half * (2 * np.array(place) + 1) - size[:2] / 2, half) for place in places]


class _Cell:
    """Rectangle around one hole, cut into sectors: one per edge of the hole's polygon.

    The flats of the polygon touch the circle with the given radius, so that the hole is nowhere narrower.
    """

    def __init__(self, corners: int, radius: float, chamfer: float, center: FloatArray, half: FloatArray) -> None:
        angle = (np.arange(corners) + 0.5) * 2 * np.pi / corners
        directions = np.stack([np.cos(angle), np.sin(angle)], axis=-1)
        self.wall = center + directions * radius / np.cos(np.pi / corners)
        self.mouth = center + directions * (radius + chamfer) / np.cos(np.pi / corners)
        self.chamfer = chamfer
        self.paths = [center + path for path in _paths(directions, half)]

    def pieces(self, ground: float, top: float) -> list[Piece]:
        """Return a convex piece for each edge."""
        found = []
        for index, path in enumerate(self.paths):
            pair = [index, (index + 1) % len(self.wall)]
            flat = [(self.wall[pair], ground), (self.wall[pair], top - self.chamfer), (self.mouth[pair], top)]
            flat += [(path, ground), (path, top)]
            found.append(convex_hull(np.vstack([_lifted(points, height) for points, height in flat])))
        return found


def _paths(directions: FloatArray, half: FloatArray) -> list[FloatArray]:
    """Return, for each edge of the polygon, the points of the cell's border in its sector, seen from the center."""
    reach = np.min(half / np.maximum(np.abs(directions), 1e-9), axis=1)
    points, corners = directions * reach[:, None], half * np.array([[1, 1], [-1, 1], [-1, -1], [1, -1]])
    paths = []
    for start, end in zip(points, np.roll(points, -1, axis=0), strict=True):
        between = [corner for corner in corners if _turn(start, corner) > 1e-9 and _turn(corner, end) > 1e-9]
        paths.append(np.array([start, *between, end]))
    return paths


def _turn(one: FloatArray, two: FloatArray) -> float:
    return float(one[0] * two[1] - one[1] * two[0])


def _lifted(points: FloatArray, height: float) -> FloatArray:
    return np.column_stack([points, np.full(len(points), height)])


class _Skin:
    """Triangles of the board, with their texture coordinates."""

    def __init__(self, size: FloatArray) -> None:
        self._size = size
        self.points: list[FloatArray] = []
        self.uvs: list[tuple[float, float]] = []

    def add(self, cell: _Cell, low: float, ground: float, top: float) -> None:
        """Add a cell: its top, the hole, its bottom, and its side at the border."""
        mouth = top - cell.chamfer
        blind = ground > low
        for index, path in enumerate(cell.paths):
            after = (index + 1) % len(cell.wall)
            wall, edge = cell.wall[[index, after]], cell.mouth[[index, after]]
            self._fan("top", [edge[0], *path, edge[1]], top)
            below = [np.mean(cell.wall, axis=0), *path] if blind else [wall[0], *path, wall[1]]
            self._fan("bottom", below[::-1], low)
            self._quad(wall[1], wall[0], mouth, edge[1], edge[0], top)
            self._quad(wall[1], wall[0], ground, wall[1], wall[0], mouth)
            if blind:
                self._fan("holes", [np.mean(cell.wall, axis=0), *wall], ground)
            for one, two in zip(path[:-1], path[1:], strict=True):
                if np.any(np.abs(np.abs(one + two) - self._size[:2]) < 1e-7):
                    self._side(one, two, low, top)

    def regions(self) -> dict[str, TextureRegion]:
        """Return the regions of the texture."""
        width, depth, height = (float(extent) for extent in self._size)
        extents = {"top": (width, depth), "bottom": (width, depth), "holes": (width, depth)}
        sides = TextureRegion(u=(0.0, 1.0), v=(0.0, _SIDES), size=(2 * (width + depth), height))
        return {"sides": sides} | {
            name: TextureRegion(u=_U[name], v=_V, size=extent) for name, extent in extents.items()
        }

    def _fan(self, part: str, corners: list[FloatArray], height: float) -> None:
        for one, two in zip(corners[1:-1], corners[2:], strict=True):
            if abs(_turn(one - corners[0], two - corners[0])) > 1e-12:
                triangle = _lifted(np.array([corners[0], one, two]), height)
                self._emit(triangle, [self._flat(part, point) for point in triangle])

    def _quad(self, a: FloatArray, b: FloatArray, low: float, c: FloatArray, d: FloatArray, high: float) -> None:
        """Add a quad from ``a`` to ``b`` at the lower height, and from ``c`` to ``d`` above them."""
        if high - low < 1e-7:
            return
        points = np.array([[*a, low], [*b, low], [*d, high], [*c, high]])
        for corners in ([0, 1, 2], [0, 2, 3]):
            self._emit(points[corners], [self._flat("holes", point) for point in points[corners]])

    def _side(self, one: FloatArray, two: FloatArray, low: float, high: float) -> None:
        points = np.array([[*one, low], [*two, low], [*two, high], [*one, high]])
        axis = 0 if abs(one[0] - two[0]) > abs(one[1] - two[1]) else 1
        start = 0.0 if axis == 0 else 0.5
        shares = [(start + 0.5 * (point[axis] / self._size[axis] + 0.5)) for point in points]
        uvs = [(share, _SIDES * height) for share, height in zip(shares, (0.02, 0.02, 0.96, 0.96), strict=True)]
        for corners in ([0, 1, 2], [0, 2, 3]):
            self._emit(points[corners], [uvs[corner] for corner in corners])

    def _flat(self, part: str, point: FloatArray) -> tuple[float, float]:
        share = np.clip(point[:2] / self._size[:2] + 0.5, 0.01, 0.99)
        u, v = _U[part], _V
        return float(u[0] + share[0] * (u[1] - u[0])), float(v[0] + share[1] * (v[1] - v[0]))

    def _emit(self, triangle: FloatArray, uvs: list[tuple[float, float]]) -> None:
        self.points += list(triangle)
        self.uvs += uvs
