"""Maps of scenes: paths lie in the free area, and the covered area is colored."""

from __future__ import annotations

import numpy as np

from nimbus.datagen.navigate.body import BodyShape
from nimbus.datagen.navigate.free_space import free_space_of_grid
from nimbus.datagen.navigate.map_picture import MapPaths, draw_map


def test_maps_color_what_paths_cover():
    """A straight path through a room of 4 m by 2 m covers the area within 50 cm of it."""
    space = free_space_of_grid(np.ones((80, 40), dtype=bool), BodyShape(radius=0.1, height=1.0, step=0.03))
    path = np.column_stack([np.linspace(0.2, 3.8, 50), np.full(50, 1.0), np.zeros(50)])
    found = MapPaths(paths=[path], starts=path[:1, :2], goals=path[-1:, :2], failed=np.zeros((0, 2)))
    picture, share = draw_map(found, space)
    assert picture.shape == (320, 640, 3) and share is not None and 0.5 < share < 0.65
    assert picture[160, 320].tolist() == [60, 110, 200]
    assert picture[160 - 40, 320].tolist() == [176, 214, 186] and picture[40, 320].tolist() == [196, 205, 214]
    alone, nothing = draw_map(found, None)
    assert nothing is None and (alone.reshape(-1, 3) == (60, 110, 200)).all(axis=1).any()
