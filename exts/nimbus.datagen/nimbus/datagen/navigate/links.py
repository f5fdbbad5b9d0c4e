# type: ignore  # Warp's kernel language only looks like Python to a type checker.
"""Links between the cells of free floors, and the connected sets of cells, in Warp. Equal inputs give equal numbers."""

from __future__ import annotations

import numpy as np
import warp as wp

from nimbus.datagen.arrays import BoolArray, Float32Array, IndexArray, IntArray

wp.set_module_options({"enable_backward": False})

NEIGHBORS = np.array([(1, 0), (1, 1), (0, 1), (-1, 1), (-1, 0), (-1, -1), (0, -1), (1, -1)], dtype=np.int32)
"""Offsets (i, j) to the neighbors of a cell, counter-clockwise."""


@wp.kernel
def _link(
    heights: wp.array3d(dtype=wp.float32),
    node: wp.array3d(dtype=wp.int32),
    nodes: wp.array2d(dtype=wp.int32),
    offsets: wp.array2d(dtype=wp.int32),
    rise: wp.float32,
    found: wp.array2d(dtype=wp.int32),
):
    """Link a node to the floor nearest in height in each neighboring cell; on a tie, to the higher floor."""
    own = wp.tid()
    i, j = nodes[own, 1], nodes[own, 2]
    z = heights[nodes[own, 0], i, j]
    for way in range(8):
        ni, nj = i + offsets[way, 0], j + offsets[way, 1]
        if ni >= 0 and ni < heights.shape[1] and nj >= 0 and nj < heights.shape[2]:
            least = wp.float32(rise)
            for layer in range(heights.shape[0]):
                off = wp.abs(heights[layer, ni, nj] - z)
                if off < least or (off == least and found[own, way] < 0):
                    least = off
                    found[own, way] = node[layer, ni, nj]
    for half in range(4):
        way = 2 * half + 1
        if found[own, way - 1] < 0 or found[own, (way + 1) % 8] < 0:
            found[own, way] = -1


@wp.func
def _root(parent: wp.array(dtype=wp.int32), node: int):
    at = wp.int32(node)
    while parent[at] != at:
        parent[at] = parent[parent[at]]
        at = wp.int32(parent[at])
    return at


@wp.kernel
def _join(neighbors: wp.array2d(dtype=wp.int32), chosen: wp.array(dtype=wp.uint8), label: wp.array(dtype=wp.int32)):
    """Join linked nodes in one thread; the root of a set is its smallest node."""
    count = wp.int32(0)
    for node in range(label.shape[0]):
        label[node] = node
    for node in range(label.shape[0]):
        if chosen[node] == wp.uint8(1):
            for way in range(8):
                other = neighbors[node, way]
                if other >= 0:
                    if chosen[other] == wp.uint8(1):
                        one, two = _root(label, node), _root(label, other)
                        label[wp.max(one, two)] = wp.min(one, two)
    for node in range(label.shape[0]):
        # The root of a set comes before its other nodes, so a parent already has its number.
        if label[node] == node:
            label[node] = -1 - count
            count += 1
        else:
            label[node] = label[label[node]]
    for node in range(label.shape[0]):
        label[node] = -1 - label[node]


def link_nodes(heights: Float32Array, node: IndexArray, rise: float) -> IndexArray:
    """Find the neighbors (N, 8) that the body can reach from each node; -1 for none.

    Their heights differ by at most ``rise``. A diagonal neighbor also requires that both cells beside the diagonal
    can be reached.

    Args:
        heights: (L, X, Y) heights of free floors [m]; NaN where there is none.
        node: (L, X, Y) number of each free cell's node; -1 for other cells.
        rise: Largest difference of heights [m].
    """
    nodes = np.argwhere(node >= 0).astype(np.int32)
    found = np.full((len(nodes), 8), -1, dtype=np.int32)
    inputs = [
        wp.array(np.ascontiguousarray(heights, dtype=np.float32), dtype=wp.float32, device="cpu", copy=False),
        *(wp.array(one, dtype=wp.int32, device="cpu", copy=False) for one in (node, nodes, NEIGHBORS)),
        rise,
    ]
    filled = wp.array(found, dtype=wp.int32, device="cpu", copy=False)
    wp.launch(_link, dim=len(nodes), inputs=inputs, outputs=[filled], device="cpu")
    return found


def connected_sets(neighbors: IndexArray, chosen: BoolArray) -> IntArray:
    """Return the connected set (N,) of each node among the chosen ones, numbered in the order of the first nodes.

    Every node that is not chosen forms its own set.

    Args:
        neighbors: (N, 8) neighbors of each node; -1 for none.
        chosen: (N,) True for the nodes that may be linked.
    """
    label = np.empty(len(chosen), dtype=np.int32)
    inputs = [
        wp.array(neighbors, dtype=wp.int32, device="cpu", copy=False),
        wp.array(chosen.astype(np.uint8), dtype=wp.uint8, device="cpu", copy=False),
    ]
    filled = wp.array(label, dtype=wp.int32, device="cpu", copy=False)
    wp.launch(_join, dim=1, inputs=inputs, outputs=[filled], device="cpu")
    return label.astype(np.int64)
