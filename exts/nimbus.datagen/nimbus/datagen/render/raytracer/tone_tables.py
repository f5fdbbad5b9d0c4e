"""Tables between linear light and sRGB bytes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.render.raytracer.kernel_data import BRIGHTEST, TINTS, TONES
from nimbus.datagen.textures.color import encoded, linear

_SHOULDER = 0.7
"""Light above which the tone curve bends toward white, so that it never clips hard."""


def _toned(light: NDArray[np.float64]) -> NDArray[np.float64]:
    room = 1.0 - _SHOULDER
    return np.where(light < _SHOULDER, light, 1.0 - room * np.exp(-np.maximum(light - _SHOULDER, 0.0) / room))


LINEAR_OF_SRGB = linear(np.arange(TINTS) * (256.0 / 255.0) / TINTS).astype(np.float32)
"""(TINTS,) over sRGB values from 0 to 256 / 255."""
_light = (np.arange(TONES) + 0.5) / TONES * BRIGHTEST
BYTE_OF_LIGHT = np.rint(encoded(_toned(_light)) * 255.0).astype(np.uint8)
"""(TONES,) over light from 0 to BRIGHTEST."""
