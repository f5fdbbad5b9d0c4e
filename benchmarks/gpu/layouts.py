"""Layouts drawn from a recording: other objects, sizes, poses, looks, lights and cameras in each, as a run has them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.gpu.recording import Recording
from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.episode.layout import Camera, Light, SurfaceLook, Vector, VisualLayout
from nimbus.datagen.episode.observation import Labels
from nimbus.datagen.render.layout_states import LayoutStates
from nimbus.datagen.render.render_inputs import RenderInputs, RenderPart

MOST_ITEMS = 6
"""Largest number of movable objects in a layout; each is a copy of a recorded one with another size."""
_ITEM = "items_"
_TEXTURES = ("", "concrete", "wood", "paint")


@dataclass(frozen=True, kw_only=True, eq=False)
class DrawnLayout:
    """Render inputs of a layout, and T states of its bodies."""

    inputs: RenderInputs
    bodies: tuple[str, ...]
    positions: FloatArray
    """(T, B, 3) [m], world frame"""
    wxyz: FloatArray
    """(T, B, 4)"""

    def state(self, step: int, layout: int = 0) -> LayoutStates:
        """Return one state; after the last state, the first one follows."""
        row = step % len(self.positions)
        rows = slice(row, row + 1)
        return LayoutStates(
            names=self.bodies, positions=self.positions[rows], wxyz=self.wxyz[rows], layout=layout, first_step=step
        )


def draw_layout(recording: Recording, seed: int, *, cameras: int, width: int, height: int) -> DrawnLayout:
    """Draw a layout.

    Args:
        recording: The recorded episode, whose robot and stage it has.
        seed: Seed of the layout.
        cameras: Number of cameras.
        width: [px]
        height: [px]
    """
    rng = np.random.default_rng(seed)
    inputs = recording.seen_by(cameras, width, height)
    known = [name for name in recording.bodies if name.startswith(_ITEM)]
    chosen = [known[place] for place in rng.integers(0, len(known), rng.integers(1, MOST_ITEMS + 1))]
    names = {f"{_ITEM}{place}": name for place, name in enumerate(chosen)}
    parts = [part for part in inputs.parts if part.instance not in known]
    for name, source in names.items():
        size = np.float32(rng.uniform(0.8, 1.25))
        parts += [_scaled(part, name, size) for part in inputs.parts if part.instance == source]
    rows = [recording.bodies.index(name) for name in recording.bodies if name not in known]
    moving = [recording.bodies.index(source) for source in chosen]
    positions = np.concatenate([recording.positions[:, rows], recording.positions[:, moving]], axis=1)
    positions[:, len(rows) :, :2] += rng.uniform(-0.12, 0.12, (len(chosen), 2))
    wxyz = np.concatenate([recording.wxyz[:, rows], recording.wxyz[:, moving]], axis=1)
    return DrawnLayout(
        inputs=RenderInputs(
            parts=tuple(parts), labels=_labels(inputs.labels, names), visual=_visual(rng, inputs.visual, [*names])
        ),
        bodies=(*(recording.bodies[row] for row in rows), *names),
        positions=positions,
        wxyz=wxyz,
    )


def _scaled(part: RenderPart, name: str, size: np.float32) -> RenderPart:
    triangles = replace(part.triangles, vertices=part.triangles.vertices * size)
    return replace(part, instance=name, body=name, triangles=triangles)


def _labels(labels: Labels, names: dict[str, str]) -> Labels:
    """Return the labels of a layout with copies of recorded items; the other labels keep their order."""
    kept = [place for place, name in enumerate(labels.instance_names) if not name.startswith(_ITEM)]
    rows = [kept[0], *(labels.instance_names.index(source) for source in names.values()), *kept[1:]]
    shown = [*names]
    return replace(
        labels,
        instance_names=(labels.instance_names[kept[0]], *shown, *(labels.instance_names[row] for row in kept[1:])),
        instance_bodies=(labels.instance_bodies[kept[0]], *shown, *(labels.instance_bodies[row] for row in kept[1:])),
        instance_semantics=labels.instance_semantics[rows],
        boxes_3d=labels.boxes_3d[rows],
    )


def _visual(rng: np.random.Generator, visual: VisualLayout, items: Sequence[str]) -> VisualLayout:
    looks = {name: look for name, look in visual.surfaces.items() if not name.startswith(_ITEM)} | dict.fromkeys(
        items, SurfaceLook()
    )
    surfaces = {name: replace(look, color=_vector(rng.uniform(0.6, 1.0, 3))) for name, look in looks.items()}
    # Only a few seeds, because making a texture takes more time than everything else here.
    table = replace(surfaces["table"], texture=str(rng.choice(_TEXTURES)), texture_seed=int(rng.integers(2)))
    away = rng.normal(size=3) * (0.6, 0.6, 0.2)
    direction = np.array([away[0], away[1], -1.0 + abs(away[2])])
    light = Light(
        direction=_vector(direction / np.linalg.norm(direction)),
        color=_vector(rng.uniform(0.4, 1.0, 3)),
        sky=_vector(rng.uniform(0.2, 0.5, 3)),
        ground=_vector(rng.uniform(0.1, 0.3, 3)),
    )
    return replace(
        visual,
        light=light,
        cameras=tuple(_moved(rng, camera) for camera in visual.cameras),
        surfaces=surfaces | {"table": table},
    )


def _moved(rng: np.random.Generator, camera: Camera) -> Camera:
    position = np.asarray(camera.position) + rng.uniform(-0.01, 0.01, 3) * (1.0 if camera.mount else 3.0)
    return replace(
        camera,
        position=_vector(position),
        vertical_fov=camera.vertical_fov * float(rng.uniform(0.95, 1.05)),
        sensor=replace(camera.sensor, tone="filmic" if rng.random() < 0.5 else "plain"),
    )


def _vector(values: FloatArray) -> Vector:
    x, y, z = (float(value) for value in values)
    return x, y, z
