"""Arrays as Isaac Sim gives them: read by ``numpy()``, as Warp's are."""

from __future__ import annotations

from typing import Any

import numpy as np


class Warp(np.ndarray):
    """An array that is read as Warp's are."""

    def numpy(self) -> np.ndarray:
        return np.asarray(self)


def warp(values: Any, dtype: Any = None) -> Warp:
    return np.asarray(values, dtype=dtype).view(Warp)
