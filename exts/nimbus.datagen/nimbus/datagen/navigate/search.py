# type: ignore  # Warp's kernel language only looks like Python to a type checker.
"""Shortest paths over the cells of a free space, by A* in one Warp thread. Equal inputs give equal paths."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING

import numpy as np
import warp as wp

from nimbus.datagen.arrays import AnyArray, BoolArray, FloatArray, IndexArray, IntArray

if TYPE_CHECKING:
    from nimbus.datagen.navigate.free_space import FreeSpace

wp.set_module_options({"enable_backward": False})

_NONE = wp.constant(-1)


@wp.func
def _is_before(key: wp.float64, node: int, other_key: wp.float64, other: int):
    """Order entries of the heap by key, and equal ones by node; no path depends on the order of insertion."""
    return key < other_key or (key == other_key and node < other)


@wp.func
def _rise(
    keys: wp.array(dtype=wp.float64),
    heap: wp.array(dtype=wp.int32),
    place: wp.array(dtype=wp.int32),
    entry: int,
    key: wp.float64,
    node: int,
):
    """Insert a node into the heap, at an entry or above it; each entry of the heap has four children."""
    at, done = wp.int32(entry), wp.bool(False)
    while at > 0 and not done:
        above = (at - 1) / 4
        done = not _is_before(key, node, keys[above], heap[above])
        if not done:
            keys[at] = keys[above]
            heap[at] = heap[above]
            place[heap[at]] = at
            at = wp.int32(above)
    keys[at] = key
    heap[at] = node
    place[node] = at


@wp.func
def _drop_first(
    keys: wp.array(dtype=wp.float64), heap: wp.array(dtype=wp.int32), place: wp.array(dtype=wp.int32), size: int
):
    """Remove the first of ``size`` entries; the last one takes its place and sinks."""
    last = size - 1
    key, node = wp.float64(keys[last]), wp.int32(heap[last])
    at, done = wp.int32(0), wp.bool(False)
    while not done:
        child = 4 * at + 1
        least, least_key, least_node = wp.int32(-1), wp.float64(key), wp.int32(node)
        for entry in range(child, wp.min(child + 4, last)):
            if _is_before(keys[entry], heap[entry], least_key, least_node):
                least = wp.int32(entry)
                least_key = wp.float64(keys[entry])
                least_node = wp.int32(heap[entry])
        done = least < 0
        if not done:
            keys[at] = least_key
            heap[at] = least_node
            place[least_node] = at
            at = wp.int32(least)
    if last > 0:
        keys[at] = key
        heap[at] = node
        place[node] = at


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
    wanted: wp.array(dtype=wp.uint8),
    wanted_count: int,
    within: wp.float64,
    cost: wp.array(dtype=wp.float64),
    parent: wp.array(dtype=wp.int32),
    keys: wp.array(dtype=wp.float64),
    heap: wp.array(dtype=wp.int32),
    place: wp.array(dtype=wp.int32),
    seen: wp.array(dtype=wp.int32),
    seen_count: wp.array(dtype=wp.int32),
):
    """Search until the goal, all wanted nodes, or all nodes within a distance are reached."""
    _rise(keys, heap, place, 0, wp.float64(0.0), start)
    cost[start] = wp.float64(0.0)
    parent[start] = start
    seen[0] = start
    count, size, left = wp.int32(1), wp.int32(1), wp.int32(wanted_count)
    while size > 0:
        node, key = wp.int32(heap[0]), wp.float64(keys[0])
        if goal < 0 and wanted[node] == wp.uint8(1):
            left -= 1
        if node == goal or key > within or left == 0:
            seen_count[0] = count
            return
        _drop_first(keys, heap, place, size)
        size -= 1
        place[node] = -2
        for way in range(8):
            other = neighbors[node, way]
            if other != _NONE and _is_wide(neighbors, weight, node, way):
                if place[other] != -2 and weight[other] > wp.float64(0.0):
                    length = cell
                    if way % 2 == 1:
                        length = cell * wp.float64(1.4142135623730951)
                    there = cost[node] + length * wp.float64(0.5) * (weight[node] + weight[other])
                    is_new = parent[other] == _NONE
                    if is_new or there < cost[other]:
                        entry = wp.int32(place[other])
                        if is_new:
                            entry = wp.int32(size)
                            size += 1
                            seen[count] = other
                            count += 1
                        cost[other] = there
                        parent[other] = node
                        estimate = wp.float64(there)
                        if goal >= 0:
                            estimate = there + _octile(positions, cell, other, goal)
                        _rise(keys, heap, place, entry, estimate, other)
    seen_count[0] = count


class PathSearch:
    """Path search in one free space, for one thread at a time.

    Its arrays are kept between searches, and only the entries of visited nodes are reset, so that a search takes time
    in proportion to the nodes that it visits.

    Args:
        space: Free space to search.
        allowed: (N,) True for nodes that a path may use; by default those where the body fits.
    """

    def __init__(self, space: FreeSpace, allowed: BoolArray | None = None) -> None:
        self._space = space
        self._allowed = space.node_clearance >= space.limit if allowed is None else allowed
        self._positions = wp.array(space.positions.astype(np.float32), dtype=wp.vec3, device="cpu")
        self._neighbors = wp.array(space.neighbors, dtype=wp.int32, device="cpu")
        count = len(self._allowed)
        self._weights: dict[float, wp.array] = {}
        self._cost, self._keys = np.zeros(count), np.zeros(count)
        self._parent, self._place = (np.full(count, -1, dtype=np.int32) for _ in range(2))
        self._heap, self._seen = (np.zeros(count, dtype=np.int32) for _ in range(2))
        self._wanted = np.zeros(count, dtype=np.uint8)
        self._lock = Lock()

    def path(self, start: int, goal: int, *, wide: float = 0.0) -> IndexArray | None:
        """Return the nodes of the cheapest path, including both ends; None if there is no path.

        Args:
            start: First node.
            goal: Last node.
            wide: Clearance below which nodes cost more, so that the path keeps away from walls [m]; 0 for the shortest
                path.
        """
        return self._search(start, goal, wide)[0]

    def length(self, start: int, goal: int) -> float:
        """Return the length of the shortest eight-connected path [m]; infinite if there is none."""
        return self._search(start, goal, 0.0)[1]

    def distances(self, start: int, to: IntArray, *, within: float = float("inf")) -> FloatArray:
        """Return the lengths of the shortest eight-connected paths to nodes [m]; infinite if there is none.

        Args:
            start: First node.
            to: (n,) last nodes.
            within: Length up to which paths are searched for [m]; longer ones may be infinite or too long.
        """
        with self._lock:
            self._wanted[to] = 1
            seen = self._run(start, -1, 0.0, wanted=int(np.count_nonzero(self._wanted)), within=within)
            found = np.where(self._parent[to] >= 0, self._cost[to], np.inf)
            self._wanted[to] = 0
            self._reset(seen)
        return found

    def _weights_of(self, wide: float) -> wp.array:
        """Return the cost per meter (N,) at each node; 0 at nodes that no path may use."""
        if wide not in self._weights:
            space, limit = self._space, self._space.limit
            is_far = wide <= limit
            near = 0.0 if is_far else np.clip((wide - space.node_clearance) / max(wide - limit, 1e-9), 0.0, 1.0)
            values = np.where(self._allowed, 1.0 + 4.0 * np.square(near, dtype=float), 0.0)
            self._weights[wide] = wp.array(values, dtype=wp.float64, device="cpu")
        return self._weights[wide]

    def _search(self, start: int, goal: int, wide: float) -> tuple[IndexArray | None, float]:
        if not (self._allowed[start] and self._allowed[goal]):
            return None, float("inf")
        with self._lock:
            seen = self._run(start, goal, wide)
            nodes, length = None, float("inf")
            if self._parent[goal] >= 0:
                found = [goal]
                while found[-1] != start:
                    found.append(int(self._parent[found[-1]]))
                nodes, length = np.array(found[::-1], dtype=np.int32), float(self._cost[goal])
            self._reset(seen)
        return nodes, length

    def _run(self, start: int, goal: int, wide: float, *, wanted: int = -1, within: float = float("inf")) -> IndexArray:
        """Fill the cost and the parent of nodes, and return the nodes (n,) that have them.

        The cost of a node is not final if it is above that of the goal, above those of all wanted nodes, or above
        ``within``.

        Args:
            start: First node.
            goal: Node at which the search ends; -1 for none.
            wide: Clearance below which nodes cost more [m].
            wanted: Number of marked nodes after which the search ends; -1 for all nodes.
            within: Cost after which the search ends [m].
        """
        count = wp.zeros(1, dtype=wp.int32, device="cpu")
        inputs = [self._positions, self._neighbors, self._weights_of(wide), self._space.cell, start, goal]
        inputs += [_shared(self._wanted, wp.uint8), wanted, within]
        filled = [(self._cost, wp.float64), (self._parent, wp.int32), (self._keys, wp.float64)]
        filled += [(one, wp.int32) for one in (self._heap, self._place, self._seen)]
        outputs = [*(_shared(values, dtype) for values, dtype in filled), count]
        wp.launch(_search, dim=1, inputs=inputs, outputs=outputs, device="cpu")
        return self._seen[: int(count.numpy()[0])]

    def _reset(self, seen: IndexArray) -> None:
        """Forget the nodes (n,) that a search has visited."""
        self._parent[seen] = -1
        self._place[seen] = -1


def _shared(values: AnyArray, dtype: type) -> wp.array:
    """Return a Warp array that shares the memory of a NumPy array."""
    return wp.array(values, dtype=dtype, device="cpu", copy=False)
