"""Free space of a scene: the floors of all storeys on which a body can stand, and the clearance at each position."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.ndimage import distance_transform_edt
from scipy.spatial import KDTree

from nimbus.datagen.arrays import BoolArray, Float32Array, FloatArray, IndexArray, IntArray
from nimbus.datagen.errors import InputError
from nimbus.datagen.navigate.body import BodyShape
from nimbus.datagen.navigate.links import NEIGHBORS, connected_sets, link_nodes
from nimbus.datagen.navigate.triangle_tests import CollisionMesh

CELL = 0.05
"""Side of a cell [m]."""
CELL_SLACK = 0.71
"""Distance from the center of a cell to its corner [cells]. It is added to limits, because clearance is measured
between centers of cells."""
LAYERS = 14
"""Largest number of floors above each other, including tops of furniture."""
_SLOPE = np.radians(45.0)
"""Steepest slope of a floor [rad]."""
_WIDE = 0.25
"""Weight of height differences in distances where floors overlap; it keeps the edges of other storeys out of reach."""
_FEWEST_CELLS = 40
"""Smallest connected floor that counts, 10 dm^2 [cells]; on smaller ones the clearance is 0."""
_LEAST_AREA = 4.0
"""Smallest free area of a usable scene [m^2]."""
_MOSTLY = 0.5
"""Smallest fraction of a roof's cells that are above other floors, and of its upward rays that hit nothing."""
_FEWEST_RAYS = 500
"""Smallest number of upward rays; all cells are tested if a component has fewer cells."""
_MOST_CELLS = 4_000_000
"""Largest number of cells in the plan of a scene, as for 100 m by 100 m."""


@dataclass(frozen=True, kw_only=True, eq=False)
class FreeSpace:
    """Grid of the positions that the center of a body's foot may have, in L layers; indices are ``(layer, i, j)``.

    A cell is free if it has a floor with no obstacle above it between the step and the height of the body. Each free
    cell is a node; N nodes are numbered in the order of their indices.
    """

    body: BodyShape
    origin: tuple[float, float]
    """Position (x, y) of the lower corner of cell (0, 0) [m]."""
    cell: float
    """Side of a cell [m]."""
    heights: Float32Array
    """(L, X, Y) heights of free floors [m]; NaN where there is none."""
    clearance: Float32Array
    """(L, X, Y) distance from the center of the cell to the nearest cell that is not free [m]; 0 without a free
    floor."""
    component: IndexArray
    """(L, X, Y) number of the connected component of cells in which the body fits; -1 where it does not fit.

    Component 0 is the largest one that is not a roof.
    """
    neighbors: IndexArray
    """(N, 8) neighbor of each node in each direction of :data:`NEIGHBORS`; -1 for none."""
    node: IndexArray
    """(L, X, Y) number of each free cell's node; -1 for other cells."""

    @property
    def limit(self) -> float:
        """Clearance at which the body fits in a cell, whatever the position in the cell [m]."""
        return self.body.radius + CELL_SLACK * self.cell

    @property
    def area(self) -> float:
        """Area of component 0 [m^2]."""
        return float(np.count_nonzero(self.component == 0)) * self.cell**2

    @cached_property
    def nodes(self) -> IndexArray:
        """(N, 3) layer, i, j of each node."""
        return np.argwhere(self.node >= 0).astype(np.int32)

    @cached_property
    def positions(self) -> FloatArray:
        """(N, 3) center of each node's cell, on the floor [m]."""
        layer, i, j = self.nodes.T
        found = np.empty((len(layer), 3))
        found[:, :2] = (self.nodes[:, 1:] + 0.5) * self.cell + self.origin
        found[:, 2] = self.heights[layer, i, j]
        return found

    @cached_property
    def node_clearance(self) -> Float32Array:
        """(N,) clearance at each node [m]."""
        return self.clearance[tuple(self.nodes.T)]

    @cached_property
    def main_nodes(self) -> IntArray:
        """(M,) nodes of component 0, in ascending order."""
        return np.flatnonzero(self.component[tuple(self.nodes.T)] == 0)

    def locate(self, points: FloatArray) -> IndexArray:
        """Find the node at each point.

        Args:
            points: (n, 3) points [m].

        Returns:
            (n,) nodes, each on the floor that is nearest in height; -1 where there is no floor near the point.
        """
        points = np.asarray(points, dtype=float).reshape(-1, 3)
        layers, width, depth = self.heights.shape
        ij = np.floor((points[:, :2] - self.origin) / self.cell).astype(int)
        inside = np.all((ij >= 0) & (ij < (width, depth)), axis=1)
        i, j = np.clip(ij, 0, (width - 1, depth - 1)).T
        rise = np.abs(self.heights[:, i, j] - points[:, 2])
        rise = np.where(np.isnan(rise), np.inf, rise)
        best = rise.argmin(axis=0)
        has_floor = rise[best, np.arange(len(points))] < max(self.body.step, 0.1) + 0.3
        return np.where(inside & has_floor, self.node[best, i, j], -1).astype(np.int32)

    def clearance_at(self, points: FloatArray) -> Float32Array:
        """Return the clearance (n,) at points (n, 3) [m]; 0 outside the free space."""
        found = self.locate(points)
        return np.where(found >= 0, self.node_clearance[np.maximum(found, 0)], 0.0).astype(np.float32)


def find_free_space(mesh: CollisionMesh, body: BodyShape, *, cell: float = CELL, where: str = "") -> FreeSpace:
    """Compute the free space of a body in a scene.

    Args:
        mesh: All triangles of the scene.
        body: Shape of the body.
        cell: Side of a cell [m].
        where: Name of the scene, for errors.

    Raises:
        InputError: The scene has no floor or too little free area, or is too large.
    """
    low, high = mesh.corners.min(axis=(0, 1)), mesh.corners.max(axis=(0, 1))
    count = np.ceil((high - low)[:2] / cell).astype(int)
    if not np.isfinite(low).all() or np.prod(count, dtype=float) > _MOST_CELLS:
        what = f"the scene is too large: {high[0] - low[0]:.0f} m by {high[1] - low[1]:.0f} m"
        raise InputError(what, where=where, instead="cut it to 100 m by 100 m, or check that its unit is meters")
    origin = (float(low[0]), float(low[1]))
    middles = np.stack(np.meshgrid(*((np.arange(n) + 0.5) * cell for n in count), indexing="ij"), -1).reshape(-1, 2)
    columns = middles + origin
    heights = mesh.find_floors(columns, most=LAYERS, slope=float(_SLOPE))
    heights = heights[~np.isnan(heights).all(axis=1)]
    if not len(heights):
        raise InputError(
            "the scene has no floor",
            where=where,
            instead="rotate it so that z points up, and check that floors face up",
        )
    mesh.drop_blocked(heights, columns, half=cell / 2, low=body.step, high=body.height)
    space = _below_roofs(mesh, _connected(body, origin, cell, heights.reshape(-1, *count)))
    if space.area < _LEAST_AREA:
        what = f"the free area for a body of {body.radius * 200:.0f} cm diameter is {space.area:.1f} m^2"
        instead = f"give a scene with at least {_LEAST_AREA:g} m^2 of free area, or a smaller body"
        raise InputError(what, where=where, instead=instead)
    return space


def free_space_of_grid(is_free: BoolArray, body: BodyShape, *, cell: float = CELL) -> FreeSpace:
    """Return the free space of a single flat floor, given its free cells (X, Y)."""
    heights = np.where(is_free, 0.0, np.nan).astype(np.float32)[None]
    return _connected(body, (0.0, 0.0), cell, heights)


def _connected(body: BodyShape, origin: tuple[float, float], cell: float, heights: Float32Array) -> FreeSpace:
    """Complete a free space, given the heights (L, X, Y) of its free floors; layers without a free cell are dropped."""
    heights = heights[~np.isnan(heights).all(axis=(1, 2))]
    if not len(heights):
        heights = np.full((1, *heights.shape[1:]), np.nan, dtype=np.float32)
    node = np.full(heights.shape, -1, dtype=np.int32)
    free = ~np.isnan(heights)
    node[free] = np.arange(np.count_nonzero(free), dtype=np.int32)
    neighbors = link_nodes(heights, node, max(body.step, 0.02) + 0.02)
    clearance = np.zeros(heights.shape, dtype=np.float32)
    clearance[free] = _measure_clearance(heights, free, neighbors, cell)
    component = np.full(heights.shape, -1, dtype=np.int32)
    wide = clearance[free] >= body.radius + CELL_SLACK * cell
    component[free] = _components(neighbors, wide)
    return FreeSpace(
        body=body,
        origin=origin,
        cell=cell,
        heights=heights,
        clearance=clearance,
        component=component,
        neighbors=neighbors,
        node=node,
    )


def _below_roofs(mesh: CollisionMesh, space: FreeSpace) -> FreeSpace:
    """Give number 0 to the largest component that is not a roof, unless it is too small."""
    least = int(np.ceil(_LEAST_AREA / space.cell**2))
    sizes = np.bincount(space.component[space.component >= 0])
    rank = 0
    while rank < len(sizes) and sizes[rank] >= least and is_roof(mesh, space, rank):
        rank += 1
    if not 0 < rank < len(sizes) or sizes[rank] < least:
        return space
    order = np.arange(len(sizes), dtype=np.int32)
    order[: rank + 1] = [*range(1, rank + 1), 0]
    return replace(space, component=np.where(space.component >= 0, order[space.component], -1).astype(np.int32))


def is_roof(mesh: CollisionMesh, space: FreeSpace, component: int) -> bool:
    """Return True if most of a component is above floors of other components, with nothing above it."""
    nodes = np.argwhere(space.component == component)
    other = (space.component >= 0) & (space.component != component)
    # Layers are ordered from the highest floor down, so that lower floors have higher layer numbers.
    below = np.cumsum(other[::-1], axis=0)[::-1] > 0
    if below[tuple(nodes.T)].mean() < _MOSTLY:
        return False
    nodes = nodes[:: max(1, len(nodes) // _FEWEST_RAYS)]
    layer, i, j = nodes.T
    standing = (nodes[:, 1:] + 0.5) * space.cell + space.origin
    heads = np.column_stack([standing, space.heights[layer, i, j]]).astype(float)
    faces = mesh.first_faces(heads + (0.0, 0.0, 0.1), np.tile((0.0, 0.0, 1.0), (len(heads), 1)))
    return float(np.mean(faces < 0)) > _MOSTLY


def _measure_clearance(heights: Float32Array, free: BoolArray, neighbors: IndexArray, cell: float) -> FloatArray:
    """Return the distance (N,) from the center of each node to the nearest cell that is not free [m]."""
    layer, i, j = np.nonzero(free)
    found = np.zeros(len(i))
    label = connected_sets(neighbors, np.ones(len(i), dtype=bool))
    order = np.argsort(label, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(label[order])) + 1):
        if len(rows) < _FEWEST_CELLS:
            continue
        low, high = np.array([i[rows].min(), j[rows].min()]), np.array([i[rows].max(), j[rows].max()])
        mask = np.zeros(high - low + 3, dtype=bool)
        at = i[rows] - low[0] + 1, j[rows] - low[1] + 1
        mask[at] = True
        if np.count_nonzero(mask) == len(rows):  # no two cells of this floor are above each other
            found[rows] = np.asarray(distance_transform_edt(mask))[at] * cell
            continue
        places = np.column_stack([i[rows], j[rows]]).astype(float) * cell
        found[rows] = _stacked(rows, places, heights[layer[rows], i[rows], j[rows]], neighbors, cell)
    return found


def _stacked(rows: IntArray, places: FloatArray, z: Float32Array, neighbors: IndexArray, cell: float) -> FloatArray:
    """Return the clearance (n,) at the nodes of a floor that is partly above itself, as at stairs [m].

    It is the distance to the nearest edge of the floor.

    Edges are found by straight neighbors that are missing. Diagonal neighbors can be missing although their cell is
    free. Straight ones suffice: next to the nearest cell that is not free, there is always a free cell that is nearer
    to the node.
    """
    weighed = np.column_stack([places, z.astype(float) * _WIDE])
    steps = np.column_stack([NEIGHBORS * cell, np.zeros(8)])
    edges = [weighed[neighbors[rows, way] < 0] + steps[way] for way in range(0, 8, 2)]
    return KDTree(np.unique(np.round(np.concatenate(edges), 6), axis=0)).query(weighed)[0]


def _components(neighbors: IndexArray, wide: BoolArray) -> IndexArray:
    """Return the component (N,) of each node in ``wide``, numbered by descending size; -1 for the other nodes."""
    found = np.full(len(wide), -1, dtype=np.int32)
    if not wide.any():
        return found
    label = connected_sets(neighbors, wide)
    sizes = np.bincount(label[wide], minlength=label.max() + 1)
    rank = np.empty(len(sizes), dtype=np.int32)
    rank[np.argsort(-sizes, kind="stable")] = np.arange(len(sizes))
    found[wide] = rank[label[wide]]
    return found
