"""Layout on a device: geometry, light, cameras and labels, ready to be rendered at any state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.episode.layout import Camera, Light, Sensor
from nimbus.datagen.episode.observation import Labels
from nimbus.datagen.render.camera_model.lens import Lens
from nimbus.datagen.render.camera_model.sensor import SensorModel
from nimbus.datagen.render.raytracer.geometry import Geometry, build_geometry
from nimbus.datagen.render.raytracer.kernel_data import DeviceLight
from nimbus.datagen.render.render_inputs import RenderInputs, RenderPart
from nimbus.datagen.render.silhouette import outline_points


@dataclass(frozen=True, kw_only=True, eq=False)
class LoadedLayout:
    """Layout on a device."""

    geometry: Geometry
    light: Any
    """``DeviceLight`` of the kernels."""
    cameras: tuple[Camera, ...]
    lenses: Mapping[str, Lens]
    """Lenses by camera; none for pinhole cameras."""
    sensors: Mapping[str, SensorModel]
    """Sensors by camera; none for ideal ones."""
    labels: Labels
    outlines: Mapping[int, tuple[str, FloatArray]]
    """Body and outline points (n, 3) [m] of each rigid instance."""
    inputs: RenderInputs


def load_layout(inputs: RenderInputs, device: wp.Device, *, shadows: bool) -> LoadedLayout:
    """Upload a layout.

    Args:
        inputs: Its parts, labels and looks.
        device: The device.
        shadows: Let the light cast shadows.
    """
    visual, labels = inputs.visual, inputs.labels
    return LoadedLayout(
        geometry=build_geometry(inputs.parts, visual.surfaces, labels, device=device, baked=inputs.baked),
        light=_upload_light(visual.light, device, shadows=shadows),
        cameras=visual.cameras,
        lenses={camera.name: Lens(camera) for camera in visual.cameras if any(camera.distortion)},
        sensors={camera.name: SensorModel(camera) for camera in visual.cameras if camera.sensor != Sensor()},
        labels=labels,
        outlines=find_outlines(inputs.parts, labels),
        inputs=inputs,
    )


def _upload_light(given: Light, device: wp.Device, *, shadows: bool) -> Any:
    light = DeviceLight()
    towards = -np.asarray(given.direction, dtype=float)
    # Any two axes across the light will do; the second reference avoids a cross product of nearly parallel vectors.
    across = np.cross(towards, (0.0, 0.0, 1.0) if abs(towards[2]) < 0.9 else (1.0, 0.0, 0.0))
    across /= np.linalg.norm(across)
    axes = np.stack([across, np.cross(towards, across), towards])
    light.across, light.along, light.towards = (wp.vec3(*axis) for axis in axes)
    light.axes = wp.mat33d(*axes.ravel())
    light.color, light.sky, light.ground = wp.vec3(*given.color), wp.vec3(*given.sky), wp.vec3(*given.ground)
    light.shadows, light.lamp_count = shadows, len(given.lamps)
    towards_lamps = -np.array([lamp.direction for lamp in given.lamps], dtype=float).reshape(-1, 3)
    colors = np.array([lamp.color for lamp in given.lamps], dtype=float).reshape(-1, 3)
    light.lamps_towards = wp.array(towards_lamps, dtype=wp.vec3, device=device)
    light.lamp_colors = wp.array(colors, dtype=wp.vec3, device=device)
    return light


def find_outlines(parts: Sequence[RenderPart], labels: Labels) -> dict[int, tuple[str, FloatArray]]:
    """Return body and outline points (n, 3) [m] of each instance that moves as a whole."""
    found = {}
    for place, body in enumerate(labels.instance_bodies):
        if body:
            name = labels.instance_names[place]
            vertices = np.concatenate([part.triangles.vertices for part in parts if part.instance == name])
            found[place] = body, outline_points(vertices)
    return found
