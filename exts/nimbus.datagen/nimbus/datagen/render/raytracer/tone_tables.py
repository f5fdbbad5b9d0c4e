"""Tables between linear light and sRGB bytes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.episode.layout import Tone
from nimbus.datagen.render.raytracer.kernel_data import BRIGHTEST, TINTS, TONES
from nimbus.datagen.textures.color import encoded, linear

_SHOULDER = 0.7
"""Light above which the tone curve bends toward white, so that it never clips hard."""
_FILM_EXPOSURE = 0.7232
"""Factor on light before the film curve, which keeps 0.18 at 0.18."""


def _toned(light: NDArray[np.float64]) -> NDArray[np.float64]:
    room = 1.0 - _SHOULDER
    return np.where(light < _SHOULDER, light, 1.0 - room * np.exp(-np.maximum(light - _SHOULDER, 0.0) / room))


def _filmic(light: NDArray[np.float64]) -> NDArray[np.float64]:
    """Apply the film curve of K. Narkowicz, "ACES filmic tone mapping curve" (2015), with middle gray preserved."""
    x = _FILM_EXPOSURE * light
    return np.clip(x * (2.51 * x + 0.03) / (x * (2.43 * x + 0.59) + 0.14), 0.0, 1.0)


LINEAR_OF_SRGB = linear(np.arange(TINTS) * (256.0 / 255.0) / TINTS).astype(np.float32)
"""(TINTS,) linear light over sRGB values from 0 to 256 / 255."""
_light = (np.arange(TONES) + 0.5) / TONES * BRIGHTEST
BYTE_OF_LIGHT: dict[Tone, NDArray[np.uint8]] = {
    "plain": np.rint(encoded(_toned(_light)) * 255.0).astype(np.uint8),
    "filmic": np.rint(encoded(_filmic(_light)) * 255.0).astype(np.uint8),
}
"""(TONES,) sRGB bytes over linear light from 0 to BRIGHTEST, by tone curve."""
TONE_STARTS: dict[Tone, int] = {tone: place * TONES for place, tone in enumerate(BYTE_OF_LIGHT)}
"""Start of each curve in the tables of :data:`BYTE_OF_LIGHT`, one after the other."""
