"""Paths of the tools in the scene, in the colors of the subtasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.ui.browser.timeline import color_of

if TYPE_CHECKING:
    from nimbus.datagen.datasets.multiply.cuts import SubtaskCut

_FREE = (95, 95, 95)
"""Color of free motion."""
_THIN, _THICK = 0.004, 0.009
"""Widths of a path, and of the part that shows the selected subtask [m]."""


class ToolPaths:
    """Lines in the scene along which the tools move in a demonstration.

    Args:
        server: A ``viser.ViserServer``.
    """

    def __init__(self, server: Any) -> None:
        self._scene = server.scene
        self._lines: list[Any] = []
        self._shown: tuple[Mapping[str, FloatArray], tuple[SubtaskCut, ...], int] | None = None

    def show(self, paths: Mapping[str, FloatArray], cuts: Sequence[SubtaskCut], *, chosen: int) -> None:
        """Show the paths of a demonstration, unless they are shown already.

        Args:
            paths: Positions (T, 3) of the tools [m], by arm.
            cuts: Subtasks of the demonstration.
            chosen: Index of the selected subtask.
        """
        wanted = tuple(cuts), chosen
        if self._shown is not None and self._shown[0] is paths and self._shown[1:] == wanted:
            return
        self.remove()
        for arm, path in paths.items():
            colors = np.tile(np.array(_FREE, dtype=np.uint8), (len(path) - 1, 2, 1))
            for index, cut in enumerate(cuts):
                if arm in cut.arms:
                    colors[cut.start : cut.stop - 1] = color_of(index)
            segments = np.stack([path[:-1], path[1:]], axis=1).astype(np.float32)
            self._add(f"{arm}/all", segments, colors, _THIN)
            if chosen < len(cuts) and arm in cuts[chosen].arms:
                rows = slice(cuts[chosen].start, cuts[chosen].stop - 1)
                self._add(f"{arm}/chosen", segments[rows], colors[rows], _THICK)
        self._shown = (paths, *wanted)

    def remove(self) -> None:
        """Remove the paths from the scene."""
        for line in self._lines:
            line.remove()
        self._lines.clear()
        self._shown = None

    def _add(self, name: str, segments: Any, colors: Any, width: float) -> None:
        self._lines.append(self._scene.add_line_segments(f"/cuts/{name}", segments, colors, thickness=width))
