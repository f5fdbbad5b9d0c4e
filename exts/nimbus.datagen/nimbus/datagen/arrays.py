"""Types of NumPy arrays, one name for each element type, and of quaternions; docstrings of functions give shapes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
"""Numbers of double precision: positions, joint values, times."""
Float32Array = NDArray[np.float32]
"""Numbers of single precision: meshes and images of the renderer."""
IntArray = NDArray[np.int64]
"""Integers: counts, steps, indices."""
IndexArray = NDArray[np.int32]
"""Indices of vertices: triangles of a mesh."""
ImageArray = NDArray[np.uint8]
"""Pixels of 8 bits a channel."""
BoolArray = NDArray[np.bool_]
"""Truth values: masks."""
AnyArray = NDArray[Any]
"""Elements of any type."""
Quaternion = tuple[float, float, float, float]
"""Unit quaternion, wxyz."""
