"""Randomizers of cameras: pose, lens, sensor, depth and latency."""

from __future__ import annotations

import dataclasses
import math
from typing import Annotated, Literal

import numpy as np

from nimbus.datagen.plugin import (
    Field,
    Metres,
    Radians,
    Range,
    Ratio,
    Seconds,
    Streams,
    quat_from_axis_angle,
    quat_multiply,
    register,
)
from nimbus.datagen.randomize.base import Draft, Draws, LayoutRandomization

_Bend = Annotated[float, Field(ge=-0.12, le=0.3)]


@register("randomizer", "camera")
class CameraRandomization(LayoutRandomization):
    """Small shift, rotation and zoom of every camera relative to its nominal pose."""

    part = "visual"
    position: Metres = Field(0.05, ge=0, le=10, description="largest shift along each axis, in both directions")
    mounted: Metres = Field(0.01, ge=0, le=1, description="largest shift of cameras that are bolted to the robot")
    rotation: Radians = Field(math.radians(5), ge=0, le=math.pi, description="largest rotation, about any axis")
    fov: Radians = Field(
        math.radians(2), ge=0, le=1, description="largest change of the vertical field of view, in both directions"
    )

    def draw(self, draft: Draft, streams: Streams) -> Draws:
        """Draw a shift, a rotation and a zoom for each camera."""
        drawn: Draws = {}
        for place, camera in enumerate(draft.cameras):
            rng = streams(camera.name)
            shift = (self.mounted if camera.mount else self.position) * rng.uniform(-1.0, 1.0, 3)
            axis = rng.normal(size=3)
            angle = float(rng.uniform(-self.rotation, self.rotation))
            zoom = float(rng.uniform(-self.fov, self.fov))
            turn = quat_from_axis_angle(axis, angle)
            x, y, z = (float(value) for value in np.add(camera.position, shift))
            draft.cameras[place] = dataclasses.replace(
                camera,
                position=(x, y, z),
                wxyz=quat_multiply(camera.wxyz, turn),
                vertical_fov=max(camera.vertical_fov + zoom, 0.2 * camera.vertical_fov),
            )
            drawn[camera.name] = {"shift": shift.tolist(), "turn_wxyz": list(turn), "fov_change": zoom}
        return drawn


@register("randomizer", "lens")
class LensRandomization(LayoutRandomization):
    """Lens distortion of the images and labels of every camera: barrel below 0, pincushion above."""

    part = "visual"
    bend: Range[_Bend] = Field(
        (-0.06, 0.02), description="shift of the image's corners, relative to their distance from the center"
    )

    def draw(self, draft: Draft, streams: Streams) -> Draws:
        """Draw a distortion for each camera; k1 follows from the shift of the image's corners."""
        drawn: Draws = {}
        for place, camera in enumerate(draft.cameras):
            bend = float(streams(camera.name).uniform(*self.bend))
            tangent = math.tan(0.5 * camera.vertical_fov)
            corner = tangent * math.hypot(1.0, camera.width / camera.height)
            draft.cameras[place] = dataclasses.replace(camera, distortion=(bend / corner**2, 0.0))
            drawn[camera.name] = {"bend": bend}
        return drawn


@register("randomizer", "sensor")
class SensorRandomization(LayoutRandomization):
    """Exposure, blur and noise of every camera's color images."""

    part = "visual"
    exposure: Range[Annotated[float, Field(ge=-4, le=4)]] = Field((-0.4, 0.4), description="exposure [stops]")
    blur: Range[Annotated[float, Field(ge=0, le=10)]] = Field(
        (0.0, 0.6), description="standard deviation of a Gaussian blur [px]"
    )
    grain: Range[Annotated[Ratio, Field(ge=0, le=0.5)]] = Field(
        (0.0, 0.015), description="standard deviation of the noise, as a fraction of the full scale"
    )
    antialiasing: Annotated[int, Field(ge=1, le=4)] | None = Field(
        None,
        exclude_if=lambda value: value is None,
        description="color samples along each side of a pixel; by default the camera's",
    )
    tone: Literal["plain", "filmic"] | None = Field(
        None,
        exclude_if=lambda value: value is None,
        description="curve from light to colors; by default the camera's",
    )

    def draw(self, draft: Draft, streams: Streams) -> Draws:
        """Draw each property for every camera."""
        drawn: Draws = {}
        for place, camera in enumerate(draft.cameras):
            rng = streams(camera.name)
            values = {name: float(rng.uniform(*getattr(self, name))) for name in ("exposure", "blur", "grain")}
            seed = int(rng.integers(2**31 - 1))
            options = {name: value for name in ("antialiasing", "tone") if (value := getattr(self, name)) is not None}
            draft.cameras[place] = dataclasses.replace(
                camera, sensor=dataclasses.replace(camera.sensor, seed=seed, **values, **options)
            )
            drawn[camera.name] = values
        return drawn


@register("randomizer", "depth")
class DepthRandomization(LayoutRandomization):
    """Noise and holes in the depth of every camera."""

    part = "visual"
    noise: Range[Annotated[Metres, Field(ge=0, le=0.1)]] = Field((0.0, 0.003), description="noise at a depth of 1 m")
    holes: Range[Annotated[Ratio, Field(ge=0, le=0.5)]] = Field(
        (0.0, 0.03), description="fraction of the pixels without a depth"
    )

    def draw(self, draft: Draft, streams: Streams) -> Draws:
        """Draw noise and holes for each camera."""
        drawn: Draws = {}
        for place, camera in enumerate(draft.cameras):
            rng = streams(camera.name)
            noise, holes = float(rng.uniform(*self.noise)), float(rng.uniform(*self.holes))
            seed = int(rng.integers(2**31 - 1))
            sensor = dataclasses.replace(camera.sensor, depth_noise=noise, depth_holes=holes, depth_seed=seed)
            draft.cameras[place] = dataclasses.replace(camera, sensor=sensor)
            drawn[camera.name] = {"noise": noise, "holes": holes}
        return drawn


@register("randomizer", "latency")
class LatencyRandomization(LayoutRandomization):
    """Delay of all camera images, as by exposure, transfer and decoding."""

    part = "visual"
    cameras: Range[Annotated[Seconds, Field(ge=0, le=0.5)]] = Field((0.0, 0.05), description="age of all images")

    def draw(self, draft: Draft, streams: Streams) -> Draws:
        """Draw the age of the episode's images."""
        draft.latency = float(streams("cameras").uniform(*self.cameras))
        return {"cameras": draft.latency}
