"""Sensor model of a camera: exposure, blur and noise, and noise and holes in the depth."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.episode.layout import Camera, Sensor
from nimbus.datagen.episode.observation import CameraFrames
from nimbus.datagen.random_streams import generator
from nimbus.datagen.textures.color import encoded, linear

_BLOB = 3.0
"""Size of holes in the depth [px]."""


def shown_poses(
    positions: FloatArray, wxyz: FloatArray, *, rate: float, latency: float
) -> tuple[FloatArray, FloatArray]:
    """Return the body poses at a latency before each step; the scene is static before the first step.

    Args:
        positions: (T, B, 3) [m].
        wxyz: (T, B, 4) unit quaternions.
        rate: Steps per second [Hz].
        latency: Delay [s]; at 0 the inputs themselves are returned.
    """
    if latency <= 0.0 or len(positions) < 2:
        return positions, wxyz
    late = np.maximum(np.arange(len(positions)) - latency * rate, 0.0)
    before = np.floor(late).astype(int)
    after = np.minimum(before + 1, len(positions) - 1)
    share = (late - before)[:, None, None]
    one, other = wxyz[before], wxyz[after]
    # q and -q are the same rotation; the sign is chosen for interpolation along the shorter arc.
    other = np.where(np.sum(one * other, axis=-1, keepdims=True) < 0.0, -other, other)
    turned = (1.0 - share) * one + share * other
    turned /= np.linalg.norm(turned, axis=-1, keepdims=True)
    return (1.0 - share) * positions[before] + share * positions[after], turned


class SensorModel:
    """Sensor of one camera in one episode.

    Noise is drawn once per episode, on a torus larger than the image, and shifted at random for every step. A step's
    noise therefore depends only on the seed and the step.

    Args:
        camera: Camera with its sensor.
    """

    def __init__(self, camera: Camera) -> None:
        self._sensor: Sensor = camera.sensor
        self._shape = camera.height, camera.width
        sensor, rng = self._sensor, generator(camera.sensor.seed, "grain")
        self._curve = _exposed(sensor.exposure)
        if sensor.grain:
            self._grain = np.rint(255.0 * sensor.grain * rng.standard_normal((*self._shape, 3))).astype(np.int16)
        # Color and depth have separate seeds, so that one can be redrawn without the other.
        rng = generator(sensor.depth_seed, "depth")
        self._holes, self._depth_noise = np.zeros(self._shape, bool), np.zeros(self._shape, np.float32)
        if sensor.depth_noise:
            self._depth_noise = (sensor.depth_noise * rng.standard_normal(self._shape)).astype(np.float32)
        if sensor.depth_holes:
            from scipy import ndimage

            blobs = ndimage.gaussian_filter(rng.standard_normal(self._shape), _BLOB, mode="wrap")
            self._holes = blobs < np.quantile(blobs, sensor.depth_holes)

    def take(self, frames: CameraFrames, *, first_step: int) -> CameraFrames:
        """Apply the sensor to frames; labels are unchanged.

        Args:
            frames: Ideal frames.
            first_step: Step of the episode of the first frame.
        """
        sensor, depth = self._sensor, frames.depth
        rgb: NDArray[np.uint8] = frames.rgb
        if sensor.blur:
            from scipy import ndimage

            rgb = np.asarray(ndimage.gaussian_filter(rgb, (0, sensor.blur, sensor.blur, 0), mode="nearest"), np.uint8)
        if sensor.exposure:
            rgb = self._curve[rgb]
        if sensor.grain:
            grain = _shifted(self._grain, (sensor.seed, "grain"), len(rgb), first_step)
            rgb = np.clip(rgb + grain, 0, 255).astype(np.uint8)
        if sensor.depth_noise and len(depth):
            noise = _shifted(self._depth_noise, (sensor.depth_seed, "noise"), len(depth), first_step)
            # Noise grows with the square of the depth, as in stereo and structured light. The depth is clamped above 0,
            # because 0 means no hit.
            depth = np.where(depth > 0, np.maximum(depth + noise * depth**2, 1e-3), 0).astype(np.float32)
        if sensor.depth_holes and len(depth):
            lost = _shifted(self._holes, (sensor.depth_seed, "holes"), len(depth), first_step)
            depth = np.where(lost, np.float32(0.0), depth)
        return replace(frames, rgb=rgb, depth=depth)


def _shifted(noise: NDArray, address: tuple[int, str], count: int, first_step: int) -> NDArray:
    """Return the noise (K, H, W, …) of some steps."""
    seed, name = address
    moves = (generator(seed, name, first_step + step).integers(noise.shape[:2]) for step in range(count))
    return np.stack([np.roll(noise, tuple(move), axis=(0, 1)) for move in moves])


def _exposed(stops: float) -> NDArray[np.uint8]:
    """Return (256,) sRGB values after an exposure change in stops, which scales linear light and clips at white."""
    light = np.clip(linear(np.arange(256) / 255.0) * 2.0**stops, 0.0, 1.0)
    return np.rint(255 * encoded(light)).astype(np.uint8)
