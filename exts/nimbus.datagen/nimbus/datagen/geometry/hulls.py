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


def narrowest_width(points: NDArray[np.floating]) -> float:
    """Return the width of the narrowest strip that contains points (n, 2).

    One side of the polygon lies on the border of that strip. Sampled directions would overestimate the width by an
    amount that depends on the heading.

    Raises:
        scipy.spatial.QhullError: The points lie on one line, or there are too few of them.
    """
    return float(np.ptp(points @ qhull(points).equations[:, :2].T, axis=0).min())
