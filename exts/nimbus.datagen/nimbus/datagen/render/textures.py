"""Procedural textures."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def procedural_texture(name: str, seed: int) -> NDArray[np.uint8]:
    """A texture (H, W, 3) sRGB."""
    rng = np.random.default_rng(seed)
    return np.broadcast_to(rng.integers(90, 200, 3, dtype=np.uint8), (33, 33, 3)).copy()
