# type: ignore  # Warp's kernel language only looks like Python to a type checker.
"""Straight walks over free cells, and any-angle shortest paths, found by pulling a path of cells taut."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import warp as wp

from nimbus.datagen.arrays import BoolArray, FloatArray, IndexArray, IntArray

if TYPE_CHECKING:
    from nimbus.datagen.navigate.free_space import FreeSpace

wp.set_module_options({"enable_backward": False})

_SPACING = 4
"""Number of nodes between candidate bends of a path; the bends are moved to better positions afterwards."""
_ROUNDS = 16
"""Largest number of rounds in which the bends are moved."""
_AROUND = np.array([(i, j) for i in (-2, -1, 0, 1, 2) for j in (-2, -1, 0, 1, 2)], dtype=np.int32)
"""Offsets (i, j) of the cells to which a bend may move in one round."""


@wp.func
def _step(neighbors: wp.array2d(dtype=wp.int32), allowed: wp.array(dtype=wp.uint8), node: int, di: int, dj: int):
    """Return the neighbor on one of the four sides of a node; -1 if there is no allowed one."""
    way = wp.where(di > 0, 0, wp.where(dj > 0, 2, wp.where(di < 0, 4, 6)))
    other = neighbors[node, way]
    if other < 0:
        return -1
    return wp.where(allowed[other] == wp.uint8(1), other, -1)


@wp.kernel
def _walk(
    cells: wp.array(dtype=wp.vec2i),
    neighbors: wp.array2d(dtype=wp.int32),
    allowed: wp.array(dtype=wp.uint8),
    first: wp.array(dtype=wp.int32),
    last: wp.array(dtype=wp.int32),
    found: wp.array(dtype=wp.uint8),
):
    """Visit every cell on the line between two centers; at a corner, both adjacent cells must be free."""
    line = wp.tid()
    node = wp.int32(first[line])
    goal = last[line]
    a, b = cells[node], cells[goal]
    nx, ny = wp.abs(b[0] - a[0]), wp.abs(b[1] - a[1])
    sx, sy = wp.where(b[0] > a[0], 1, -1), wp.where(b[1] > a[1], 1, -1)
    ix, iy = wp.int32(0), wp.int32(0)
    while ix < nx or iy < ny:
        side = (1 + 2 * ix) * ny - (1 + 2 * iy) * nx
        if side < 0:
            node = _step(neighbors, allowed, node, sx, 0)
            ix += 1
        elif side > 0:
            node = _step(neighbors, allowed, node, 0, sy)
            iy += 1
        else:
            one, other = _step(neighbors, allowed, node, sx, 0), _step(neighbors, allowed, node, 0, sy)
            if one < 0 or other < 0:
                return
            node = _step(neighbors, allowed, one, 0, sy)
            ix += 1
            iy += 1
        if node < 0:
            return
    found[line] = wp.where(node == goal, wp.uint8(1), wp.uint8(0))


class LineOfSight:
    """Tests of straight walks in one free space.

    Args:
        space: Free space to walk in.
        allowed: (N,) True for nodes that may be crossed; by default those where the body fits.
    """

    def __init__(self, space: FreeSpace, allowed: BoolArray | None = None) -> None:
        self.space = space
        self.allowed = space.node_clearance >= space.limit if allowed is None else allowed
        self._cells = wp.array(np.ascontiguousarray(space.nodes[:, 1:]), dtype=wp.vec2i, device="cpu")
        self._neighbors = wp.array(space.neighbors, dtype=wp.int32, device="cpu")
        self._allowed = wp.array(self.allowed.astype(np.uint8), dtype=wp.uint8, device="cpu")

    def is_free(self, first: IndexArray, last: IndexArray) -> BoolArray:
        """Return True (n,) for the pairs of nodes (n,) between which a straight walk is possible."""
        found = wp.zeros(len(first), dtype=wp.uint8, device="cpu")
        ends = [
            wp.array(np.ascontiguousarray(one, dtype=np.int32), dtype=wp.int32, device="cpu") for one in (first, last)
        ]
        inputs = [self._cells, self._neighbors, self._allowed, *ends, found]
        wp.launch(_walk, dim=len(first), inputs=inputs, device="cpu")
        return found.numpy().astype(bool)

    def taut(self, *paths: IndexArray) -> IndexArray:
        """Shorten paths of nodes (n,) between the same ends; return the bends (m,) of the shortest, with both ends.

        Each round replaces a bend by up to two cells near it, because a walk around a blunt corner bends twice.
        """
        found = min((self._pull(path) for path in paths), key=self.length)
        for _ in range(_ROUNDS):
            if len(found) < 3:
                break
            before = found
            inner = [near for node in found[1:-1] for near in [self._around(node)] * 2]
            found = self._skip(self._cheapest([found[:1], *inner, found[-1:]], skip=False))
            if np.array_equal(found, before):
                break
        return found

    def _pull(self, path: IndexArray) -> IndexArray:
        """Return the shortest chain of straight walks over every fourth node of a path (n,) and its turns."""
        if len(path) < 3:
            return path
        steps = np.diff(self.space.nodes[path, 1:], axis=0)
        turns = np.flatnonzero(np.any(steps[1:] != steps[:-1], axis=1)) + 1
        return self._skip(path[np.unique(np.concatenate([np.arange(0, len(path), _SPACING), turns, [len(path) - 1]]))])

    def _skip(self, nodes: IndexArray) -> IndexArray:
        """Leave out those of the nodes (n,) that the shortest chain of straight walks does not need."""
        return self._cheapest([np.array([node]) for node in nodes], skip=True)

    def length(self, bends: IndexArray) -> float:
        """Return the total horizontal length of the straight walks between successive nodes (n,) [m]."""
        cells = self.space.nodes[bends, 1:].astype(float)
        return float(np.linalg.norm(np.diff(cells, axis=0), axis=1).sum()) * self.space.cell

    def _around(self, node: int) -> IndexArray:
        """Return the allowed nodes near a node, on the same layer; the node itself is first."""
        layer, i, j = self.space.nodes[node]
        _, width, depth = self.space.node.shape
        places = np.array([i, j]) + _AROUND
        places = places[np.all((places >= 0) & (places < (width, depth)), axis=1)]
        found = self.space.node[layer, places[:, 0], places[:, 1]]
        found = found[found >= 0]
        return np.append(node, found[self.allowed[found]]).astype(np.int32)

    def _cheapest(self, choices: list[IndexArray], *, skip: bool) -> IndexArray:
        """Choose one node of each set so that the chain of straight walks between them is shortest.

        Args:
            choices: Sets of nodes; the first and the last have one node each.
            skip: Allow chains that leave sets out.
        """
        count = len(choices)
        starts = np.cumsum([0, *(len(one) for one in choices)])
        every = np.concatenate(choices).astype(np.int32)
        group = np.repeat(np.arange(count), [len(one) for one in choices])
        one, other = np.nonzero((group[:, None] < group) if skip else (group[:, None] + 1 == group))
        kept = self.is_free(every[one], every[other])
        one, other = one[kept], other[kept]
        cells = self.space.nodes[every, 1:].astype(float)
        lengths = np.linalg.norm(cells[one] - cells[other], axis=1)
        return every[_shortest_chain(one, other, lengths, starts)]


def _shortest_chain(one: IntArray, other: IntArray, lengths: FloatArray, starts: IntArray) -> list[int]:
    """Return the entries of the shortest chain from the first to the last entry.

    Args:
        one: (L,) lower entry of each link.
        other: (L,) higher entry of each link.
        lengths: (L,) length of each link [m].
        starts: First entry of each set, and the total number of entries.
    """
    total = np.full(starts[-1], np.inf)
    before = np.full(starts[-1], -1)
    total[0] = 0.0
    order = np.argsort(other, kind="stable")
    edges = np.searchsorted(other[order], np.arange(starts[-1] + 1))
    for entry in range(1, starts[-1]):
        rows = order[edges[entry] : edges[entry + 1]]
        if len(rows):
            reached = total[one[rows]] + lengths[rows]
            best = int(reached.argmin())
            total[entry], before[entry] = reached[best], one[rows][best]
    if np.isinf(total[-1]):
        raise ValueError("the path crosses cells that are not free")
    chain = [int(starts[-1]) - 1]
    while chain[-1] != 0:
        chain.append(int(before[chain[-1]]))
    return chain[::-1]
