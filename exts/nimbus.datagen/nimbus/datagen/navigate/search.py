# type: ignore  # Warp's kernel language only looks like Python to a type checker.
"""Shortest paths over the cells of a free space, by A* in one Warp thread. Equal inputs give equal paths."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import warp as wp

from nimbus.datagen.arrays import BoolArray, FloatArray, IndexArray

if TYPE_CHECKING:
    from nimbus.datagen.navigate.free_space import FreeSpace

wp.set_module_options({"enable_backward": False})

_NONE = wp.constant(-1)


@wp.func
def _is_before(key: wp.array(dtype=wp.float64), heap: wp.array(dtype=wp.int32), one: int, other: int):
    """Order two entries of the heap by key, and equal ones by node; no path depends on the order of insertion."""
    a, b = heap[one], heap[other]
    return key[a] < key[b] or (key[a] == key[b] and a < b)


@wp.func
def _swap(heap: wp.array(dtype=wp.int32), place: wp.array(dtype=wp.int32), one: int, other: int):
    a = wp.int32(heap[one])
    b = wp.int32(heap[other])
    heap[one] = b
    heap[other] = a
    place[a] = other
    place[b] = one


@wp.func
def _rise(key: wp.array(dtype=wp.float64), heap: wp.array(dtype=wp.int32), place: wp.array(dtype=wp.int32), entry: int):
    at = wp.int32(entry)
    while at > 0 and _is_before(key, heap, at, (at - 1) / 2):
        _swap(heap, place, at, (at - 1) / 2)
        at = (at - 1) / 2


@wp.func
def _sink(key: wp.array(dtype=wp.float64), heap: wp.array(dtype=wp.int32), place: wp.array(dtype=wp.int32), size: int):
    at, done = wp.int32(0), wp.bool(False)
    while not done:
        least = wp.int32(at)
        for child in range(2 * at + 1, wp.min(2 * at + 3, size)):
            if _is_before(key, heap, child, least):
                least = wp.int32(child)
        done = least == at
        if not done:
            _swap(heap, place, at, least)
            at = wp.int32(least)


@wp.func
def _octile(positions: wp.array(dtype=wp.vec3), cell: wp.float64, one: int, other: int):
    """Return the length of the shortest eight-connected path without obstacles."""
    x = wp.abs(wp.float64(positions[one][0]) - wp.float64(positions[other][0])) / cell
    y = wp.abs(wp.float64(positions[one][1]) - wp.float64(positions[other][1])) / cell
    x, y = wp.round(x), wp.round(y)
    return cell * (wp.max(x, y) + wp.float64(0.41421356237309515) * wp.min(x, y))


@wp.func
def _is_wide(neighbors: wp.array2d(dtype=wp.int32), weight: wp.array(dtype=wp.float64), node: int, way: int):
    """Test the two cells beside a diagonal, so that no path cuts a corner."""
    if way % 2 == 0:
        return True
    one, other = neighbors[node, way - 1], neighbors[node, (way + 1) % 8]
    return weight[one] > wp.float64(0.0) and weight[other] > wp.float64(0.0)


@wp.kernel
def _search(
    positions: wp.array(dtype=wp.vec3),
    neighbors: wp.array2d(dtype=wp.int32),
    weight: wp.array(dtype=wp.float64),
    cell: wp.float64,
    start: int,
    goal: int,
    cost: wp.array(dtype=wp.float64),
    key: wp.array(dtype=wp.float64),
    parent: wp.array(dtype=wp.int32),
    heap: wp.array(dtype=wp.int32),
    place: wp.array(dtype=wp.int32),
):
    heap[0] = start
    place[start] = 0
    cost[start] = wp.float64(0.0)
    parent[start] = start
    size = wp.int32(1)
    while size > 0:
        node = wp.int32(heap[0])
        if node == goal:
            return
        size -= 1
        _swap(heap, place, 0, size)
        place[node] = -2
        _sink(key, heap, place, size)
        for way in range(8):
            other = neighbors[node, way]
            if other != _NONE and _is_wide(neighbors, weight, node, way):
                if place[other] != -2 and weight[other] > wp.float64(0.0):
                    length = cell
                    if way % 2 == 1:
                        length = cell * wp.float64(1.4142135623730951)
                    there = cost[node] + length * wp.float64(0.5) * (weight[node] + weight[other])
                    if parent[other] == _NONE or there < cost[other]:
                        if parent[other] == _NONE:
                            heap[size] = other
                            place[other] = size
                            size += 1
                        cost[other] = there
                        key[other] = there
                        if goal >= 0:
                            key[other] = there + _octile(positions, cell, other, goal)
                        parent[other] = node
                        _rise(key, heap, place, place[other])


class PathSearch:
    """Path search in one free space.

    Args:
        space: Free space to search.
        allowed: (N,) True for nodes that a path may use; by default those where the body fits.
    """

    def __init__(self, space: FreeSpace, allowed: BoolArray | None = None) -> None:
        self._space = space
        self._allowed = space.node_clearance >= space.limit if allowed is None else allowed
        self._positions = wp.array(space.positions.astype(np.float32), dtype=wp.vec3, device="cpu")
        self._neighbors = wp.array(space.neighbors, dtype=wp.int32, device="cpu")

    def path(self, start: int, goal: int, *, wide: float = 0.0) -> IndexArray | None:
        """Return the nodes of the cheapest path, including both ends; None if there is no path.

        Args:
            start: First node.
            goal: Last node.
            wide: Clearance below which nodes cost more, so that the path keeps away from walls [m]; 0 for the shortest
                path.
        """
        return self._search(start, goal, self._weights(wide))[0]

    def length(self, start: int, goal: int) -> float:
        """Return the length of the shortest eight-connected path [m]; infinite if there is none."""
        return self._search(start, goal, self._weights(0.0))[1]

    def distances(self, start: int) -> FloatArray:
        """Return the length (N,) of the shortest eight-connected path to each node [m]; infinite if there is none."""
        cost, parents = self._run(start, -1, self._weights(0.0))
        return np.where(parents >= 0, cost, np.inf)

    def _weights(self, wide: float) -> FloatArray:
        """Return the cost per meter (N,) at each node; 0 at nodes that no path may use."""
        space, limit = self._space, self._space.limit
        near = np.clip((wide - space.node_clearance) / max(wide - limit, 1e-9), 0.0, 1.0) if wide > limit else 0.0
        return np.where(self._allowed, 1.0 + 4.0 * np.square(near, dtype=float), 0.0)

    def _search(self, start: int, goal: int, weights: FloatArray) -> tuple[IndexArray | None, float]:
        if not (self._allowed[start] and self._allowed[goal]):
            return None, float("inf")
        cost, parents = self._run(start, goal, weights)
        if parents[goal] < 0:
            return None, float("inf")
        found = [goal]
        while found[-1] != start:
            found.append(int(parents[found[-1]]))
        return np.array(found[::-1], dtype=np.int32), float(cost[goal])

    def _run(self, start: int, goal: int, weights: FloatArray) -> tuple[FloatArray, IndexArray]:
        """Return the cost (N,) and the parent (N,) of each node; the parent is -1 for nodes that were not reached.

        If ``goal`` is -1, the search visits all nodes that it can reach.
        """
        count = len(weights)
        cost, key = (wp.zeros(count, dtype=wp.float64, device="cpu") for _ in range(2))
        parent, place = (wp.full(count, -1, dtype=wp.int32, device="cpu") for _ in range(2))
        heap = wp.zeros(count + 1, dtype=wp.int32, device="cpu")
        inputs = [self._positions, self._neighbors, wp.array(weights, dtype=wp.float64, device="cpu"), self._space.cell]
        wp.launch(_search, dim=1, inputs=[*inputs, start, goal, cost, key, parent, heap, place], device="cpu")
        return cost.numpy(), parent.numpy()
