"""Types of NumPy arrays, one name per element type, and of quaternions. Docstrings of functions give the shapes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
"""Double-precision numbers: positions, joint values, times."""
Float32Array = NDArray[np.float32]
"""Single-precision numbers: meshes and images of the renderer."""
IntArray = NDArray[np.int64]
"""Integers: counts, steps, indices."""
IndexArray = NDArray[np.int32]
"""Indices of vertices: triangles of a mesh."""
ImageArray = NDArray[np.uint8]
"""Pixels with 8 bits per channel."""
BoolArray = NDArray[np.bool_]
"""Booleans: masks and flags."""
AnyArray = NDArray[Any]
"""Elements of any type."""
Quaternion = tuple[float, float, float, float]
"""Unit quaternion, wxyz."""
