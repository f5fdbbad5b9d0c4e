"""A recorded episode as input of a renderer: parts, labels, looks and body poses in one file of plain arrays.

The file is a compressed ``.npz`` without pickled objects; names and looks are JSON in the array ``about``.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from pathlib import Path

import msgspec
import numpy as np

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.episode.layout import Camera, VisualLayout
from nimbus.datagen.episode.observation import Labels
from nimbus.datagen.errors import InputError
from nimbus.datagen.meshes.triangles import Triangles
from nimbus.datagen.render.render_inputs import RenderInputs, RenderPart

RECORDED = Path(__file__).with_name("recorded.npz")
"""An episode of ``sort_trash``; made by ``benchmarks/gpu/record.py``."""
_SHIFT = (0.0, 0.15, 0.1)
"""Distance of an additional camera from the first [m]."""
_ATTRIBUTES = tuple(field.name for field in fields(Triangles))


@dataclass(frozen=True, kw_only=True, eq=False)
class Recording:
    """Render inputs of an episode and T states of its B bodies."""

    inputs: RenderInputs
    bodies: tuple[str, ...]
    positions: FloatArray
    """(T, B, 3) [m], world frame"""
    wxyz: FloatArray
    """(T, B, 4)"""

    def states(self, count: int) -> tuple[tuple[str, ...], FloatArray, FloatArray]:
        """Return names, positions and orientations of ``count`` consecutive states; the first follows the last."""
        rows = np.arange(count) % len(self.positions)
        return self.bodies, self.positions[rows], self.wxyz[rows]

    def seen_by(self, count: int, width: int, height: int) -> RenderInputs:
        """Return the same inputs with ``count`` cameras of one size: the recorded ones, then copies of the first one.

        Args:
            count: Cameras.
            width: [px]
            height: [px]
        """
        recorded = self.inputs.visual.cameras
        cameras: list[Camera] = []
        for place in range(count):
            turns, index = divmod(place, len(recorded))
            camera = recorded[index] if not turns else recorded[0]
            at = np.asarray(camera.position) + turns * (1 + index) * np.asarray(_SHIFT)
            position = (float(at[0]), float(at[1]), float(at[2]))
            cameras.append(replace(camera, name=f"camera_{place}", position=position, width=width, height=height))
        return replace(self.inputs, visual=replace(self.inputs.visual, cameras=tuple(cameras)))


class _About(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Names and looks of a recording."""

    parts: tuple[tuple[str, str], ...]
    """Instance and body of each part."""
    bodies: tuple[str, ...]
    instance_names: tuple[str, ...]
    instance_bodies: tuple[str, ...]
    semantic_names: tuple[str, ...]
    visual: VisualLayout


def save(recording: Recording, path: Path) -> None:
    """Write a recording.

    Raises:
        InputError: A surface has an image from a file, which would be lost.
    """
    inputs, labels = recording.inputs, recording.inputs.labels
    visual = replace(inputs.visual, drawn={}, instruction="")
    if any(surface.picture for surface in visual.surfaces.values()):
        raise InputError("a surface wears a picture", where=str(path), instead="record an episode without pictures")
    about = _About(
        parts=tuple((part.instance, part.body) for part in inputs.parts),
        bodies=recording.bodies,
        instance_names=labels.instance_names,
        instance_bodies=labels.instance_bodies,
        semantic_names=labels.semantic_names,
        visual=visual,
    )
    arrays = {
        f"{name}_{place}": getattr(part.triangles, name)
        for place, part in enumerate(inputs.parts)
        for name in _ATTRIBUTES
    }
    arrays |= {f"image_{place}": part.image for place, part in enumerate(inputs.parts)}
    arrays |= {"instance_semantics": labels.instance_semantics, "boxes_3d": labels.boxes_3d}
    arrays |= {"positions": recording.positions.astype(np.float32), "wxyz": recording.wxyz.astype(np.float32)}
    arrays["about"] = np.frombuffer(msgspec.json.encode(about, enc_hook=float), dtype=np.uint8)
    np.savez_compressed(path, **arrays)


def load(path: Path = RECORDED) -> Recording:
    """Read a recording.

    Raises:
        InputError: The file does not exist, or is not a recording.
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            about = msgspec.json.decode(file["about"].tobytes(), type=_About)
            parts = tuple(
                RenderPart(
                    instance=instance,
                    body=body,
                    triangles=Triangles(**{name: file[f"{name}_{place}"] for name in _ATTRIBUTES}),
                    image=file[f"image_{place}"],
                )
                for place, (instance, body) in enumerate(about.parts)
            )
            labels = Labels(
                instance_names=about.instance_names,
                instance_bodies=about.instance_bodies,
                instance_semantics=file["instance_semantics"],
                semantic_names=about.semantic_names,
                boxes_3d=file["boxes_3d"],
            )
            positions, wxyz = file["positions"].astype(np.float64), file["wxyz"].astype(np.float64)
    except (OSError, ValueError, KeyError, EOFError, msgspec.DecodeError) as error:
        what = f"not a recording of render inputs: {error}"
        raise InputError(what, where=str(path), instead="make it: python benchmarks/gpu/record.py") from None
    inputs = RenderInputs(parts=parts, labels=labels, visual=about.visual)
    wxyz /= np.linalg.norm(wxyz, axis=-1, keepdims=True)
    return Recording(inputs=inputs, bodies=about.bodies, positions=positions, wxyz=wxyz)
