"""Convex hulls. SciPy's geometry is imported on first use, because its import takes longer than a task's checks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from scipy.spatial import ConvexHull


def qhull(points: NDArray[np.floating]) -> ConvexHull:
    """Compute the convex hull of points (n, d), with its ``simplices``, ``vertices``, ``equations`` and ``volume``.

    Raises:
        scipy.spatial.QhullError: The points lie in one plane, or there are too few of them.
    """
    from scipy.spatial import ConvexHull

    return ConvexHull(points)
