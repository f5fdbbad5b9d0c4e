"""Links between cells of floors, and connected sets of cells."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from nimbus.datagen.navigate.links import NEIGHBORS, connected_sets, link_nodes


def layers(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw heights of two layers of floors and number their cells."""
    rng = np.random.default_rng(seed)
    heights = np.where(rng.uniform(size=(2, 12, 9)) > 0.3, rng.integers(0, 5, (2, 12, 9)) * 0.03, np.nan)
    node = np.full(heights.shape, -1, dtype=np.int32)
    node[~np.isnan(heights)] = np.arange(np.count_nonzero(~np.isnan(heights)))
    return heights.astype(np.float32), node


def test_links_lead_to_the_floor_of_nearest_height():
    heights, node = layers(0)
    found, rise = link_nodes(heights, node, 0.05), np.float32(0.05)
    for own, (layer, i, j) in enumerate(np.argwhere(node >= 0)):
        expected = []
        for x, y in NEIGHBORS + (i, j):
            off = np.abs(heights[:, x, y] - heights[layer, i, j]) if 0 <= x < 12 and 0 <= y < 9 else np.array([np.nan])
            best = int(np.where(np.isnan(off), np.inf, off).argmin())
            expected.append(node[best, x, y] if off[best] <= rise else -1)
        for way in (1, 3, 5, 7):
            if min(expected[way - 1], expected[(way + 1) % 8]) < 0:
                expected[way] = -1
        assert found[own].tolist() == expected


def test_connected_sets_equal_those_of_scipy():
    heights, node = layers(1)
    neighbors = link_nodes(heights, node, 0.05)
    chosen = np.random.default_rng(2).uniform(size=len(neighbors)) > 0.3
    rows, ways = np.nonzero((neighbors >= 0) & chosen[:, None] & chosen[neighbors])
    graph = csr_array((np.ones(len(rows)), (rows, neighbors[rows, ways])), shape=(len(chosen),) * 2)
    expected = connected_components(graph, directed=False)[1]
    assert connected_sets(neighbors, chosen).tolist() == expected.tolist()
