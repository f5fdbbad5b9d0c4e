"""Room around a table whose height differs from that in the scene's file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from nimbus.datagen.render.render_inputs import RenderPart

_ROOM = ("floor", "backdrop")
_TABLE = "table"
_LEGS = -0.3
"""Height below which table geometry counts as legs, whose ends stay on the floor [m]."""


def around_table(parts: Iterable[RenderPart], *, rise: float) -> Iterator[RenderPart]:
    """Lower the room by ``rise`` [m] relative to the table, which stays at the world's origin."""
    for part in parts:
        if not rise or part.body or not (part.is_furnishing or part.instance in (*_ROOM, _TABLE)):
            yield part
            continue
        vertices = part.triangles.vertices.copy()
        low = vertices[:, 2] < _LEGS if part.instance == _TABLE else np.ones(len(vertices), dtype=bool)
        vertices[low, 2] -= rise
        yield replace(part, triangles=replace(part.triangles, vertices=vertices)) if low.any() else part
