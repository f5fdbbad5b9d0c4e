"""Cloths and cables in images: the geometry of a layout with its flexible objects bent as in one state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import warp as wp

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.episode.observation import CameraFrames
from nimbus.datagen.geometry.transforms import quat_to_matrix
from nimbus.datagen.meshes.triangles import Triangles
from nimbus.datagen.render.layout_states import LayoutStates
from nimbus.datagen.render.loaded_layout import LoadedLayout, find_outlines
from nimbus.datagen.render.raytracer.geometry import build_geometry
from nimbus.datagen.render.render_inputs import RenderPart


def has_flexible(layout: LoadedLayout) -> bool:
    """Return True if a part of the layout bends."""
    return any(part.vertex_bodies for part in layout.inputs.parts)


def bend(layout: LoadedLayout, states: LayoutStates, step: int, device: wp.Device) -> LoadedLayout:
    """Return a layout with its flexible objects bent as in one of its states.

    Args:
        layout: The layout.
        states: States of the layout.
        step: Number of the state.
        device: The device.
    """
    inputs = layout.inputs
    parts = tuple(
        replace(part, triangles=bend_part(part, states.rows, states.positions[step], states.wxyz[step]))
        if part.vertex_bodies
        else part
        for part in inputs.parts
    )
    geometry = build_geometry(parts, inputs.visual.surfaces, inputs.labels, device=device, baked=inputs.baked)
    return replace(layout, geometry=geometry, outlines=find_outlines(parts, inputs.labels))


def single_steps(states: LayoutStates) -> list[LayoutStates]:
    """Split K states of one layout into K layouts with one state each."""
    following = states.following
    return [
        LayoutStates(
            names=states.names,
            positions=states.positions[step : step + 1],
            wxyz=states.wxyz[step : step + 1],
            layout=step,
            first_step=states.first_step + step,
            following=None if following is None else (following[0][step : step + 1], following[1][step : step + 1]),
        )
        for step in range(len(states))
    ]


def join_steps(frames: list[dict[str, CameraFrames]]) -> dict[str, CameraFrames]:
    """Join the frames of consecutive steps, by camera."""
    return {name: CameraFrames.join([step[name] for step in frames]) for name in frames[0]}


def bend_part(part: RenderPart, rows: Mapping[str, int], positions: FloatArray, wxyz: FloatArray) -> Triangles:
    """Return the triangles of a part that bends, in the frame of its body.

    Args:
        part: Part with ``vertex_bodies``.
        rows: Row of each body by name.
        positions: (B, 3) of all bodies [m].
        wxyz: (B, 4) of all bodies.
    """
    body = rows[part.body]
    rotation = quat_to_matrix(wxyz[body])
    bound = [rows[name] for name in part.vertex_bodies]
    places = positions[bound]
    if part.vertex_offsets is not None:
        places = places + np.einsum("vij,vj->vi", quat_to_matrix(wxyz[bound]), part.vertex_offsets)
    points = (places - positions[body]) @ rotation
    faces = part.triangles.faces
    across = np.cross(points[faces[:, 1]] - points[faces[:, 0]], points[faces[:, 2]] - points[faces[:, 0]])
    normals = np.zeros_like(points)
    for corner in range(3):
        np.add.at(normals, faces[:, corner], across)
    normals /= np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-12)
    return replace(part.triangles, vertices=points.astype(np.float32), normals=normals.astype(np.float32))
