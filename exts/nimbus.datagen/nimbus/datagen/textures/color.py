"""Conversion between linear light and sRGB values, both 0 to 1."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def linear(srgb: NDArray[np.float64]) -> NDArray[np.float64]:
    """Turn sRGB values (...) of any shape into linear light (...), both [no unit, 0 to 1]."""
    return np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)


def encoded(light: NDArray[np.float64]) -> NDArray[np.float64]:
    """Turn linear light (...) of any shape into sRGB values (...), both [no unit, 0 to 1]."""
    return np.where(light <= 0.0031308, light * 12.92, 1.055 * np.maximum(light, 1e-9) ** (1 / 2.4) - 0.055)
