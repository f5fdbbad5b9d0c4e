"""Cameras: where each stands, where it looks, how wide."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
from pydantic import Field

from nimbus.datagen.files.quantities import Metres, Radians
from nimbus.datagen.random_streams import Streams
from nimbus.datagen.randomize.draft import Draft, Draws, LayoutRandomization
from nimbus.datagen.registry import register
from nimbus.datagen.transforms import quat_from_axis_angle, quat_multiply


@register("randomizer", "camera")
class CameraRandomization(LayoutRandomization):
    """Moves, turns and zooms every camera a little about its nominal pose."""

    part = "visual"
    position: Metres = Field(0.05, ge=0, le=10, description="largest shift along each axis, either way")
    mounted: Metres = Field(0.01, ge=0, le=1, description="the same for cameras on the robot, which are bolted on")
    rotation: Radians = Field(math.radians(5), ge=0, le=math.pi, description="largest turn, about any axis")
    fov: Radians = Field(
        math.radians(2), ge=0, le=1, description="largest change of the vertical field of view, either way"
    )

    def draw(self, draft: Draft, streams: Streams) -> Draws:
        """Draw a shift, a turn and a zoom for each camera."""
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
