"""Convex hulls. SciPy's geometry is imported by the first of them: it takes longer than all of a task's checks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from scipy.spatial import ConvexHull


def qhull(points: NDArray[np.floating]) -> ConvexHull:
    """Compute the convex hull of points (n, d), with its ``simplices``, ``vertices``, ``equations`` and ``volume``.

    Raises:
        scipy.spatial.QhullError: They lie in one plane, or there are too few.
    """
    from scipy.spatial import ConvexHull

    return ConvexHull(points)
