"""Arrays as Isaac Sim returns them, which are read by ``numpy()`` like Warp's."""

from __future__ import annotations

from typing import Any

import numpy as np


class Warp(np.ndarray):
    """An array that is read like a Warp array."""

    def numpy(self) -> np.ndarray:
        return np.asarray(self)


def warp(values: Any, dtype: Any = None) -> Warp:
    return np.asarray(values, dtype=dtype).view(Warp)
