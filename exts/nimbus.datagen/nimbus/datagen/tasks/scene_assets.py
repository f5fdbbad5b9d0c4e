"""Opened assets of a task, created by its load component and used by the later stages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

if TYPE_CHECKING:
    from nimbus.datagen.objects.library import ObjectLibrary
    from nimbus.datagen.robots.robot import Robot
    from nimbus.datagen.tasks.task import Task
    from nimbus.datagen.usd.stage import StageInfo

REACH_CELL = 0.05
"""Cell size of the reach map [m]."""


@dataclass(frozen=True)
class ReachMap:
    """Cells of a region over which the robot can point its tool down."""

    origin: tuple[float, float]
    """Lower corner of the region, x and y in the world [m]."""
    cells: np.ndarray
    """(X, Y) True for reachable cells."""

    def __call__(self, x: float, y: float) -> bool:
        """Return True if the cell of a point [m] is reachable."""
        i, j = (int((value - low) // REACH_CELL) for value, low in zip((x, y), self.origin, strict=True))
        return 0 <= i < self.cells.shape[0] and 0 <= j < self.cells.shape[1] and bool(self.cells[i, j])

    def to_plain(self, size: tuple[float, float]) -> dict[str, Any]:
        """Return plain data for a report; ``size`` is the size of the region [m]."""
        rows = ["".join("1" if cell else "0" for cell in row) for row in self.cells]
        return {"origin": list(self.origin), "size": list(size), "cell": REACH_CELL, "reached": rows}


class VisibleAssets(Protocol):
    """Part of a loaded scene that renderers use."""

    @property
    def stage(self) -> StageInfo:
        """Names and positions in the scene's file."""
        ...

    @property
    def robot(self) -> Robot:
        """The robot."""
        ...

    @property
    def libraries(self) -> Mapping[str, ObjectLibrary]:
        """Object libraries by the name that the task gives them."""
        ...


@dataclass(frozen=True, kw_only=True)
class SceneAssets:
    """Scene of a task, opened and checked."""

    task: Task
    stage: StageInfo
    robot: Robot
    libraries: Mapping[str, ObjectLibrary]
    """Object libraries by the name that the task gives them."""
    reach: Mapping[str, ReachMap]
    """Reach map of each region."""
