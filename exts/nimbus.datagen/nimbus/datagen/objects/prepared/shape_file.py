"""``shape.npz``: looks, contact geometry and physics of one kind, in its own frame."""

from __future__ import annotations

import hashlib
import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from nimbus.datagen.arrays import FloatArray, ImageArray, IndexArray
from nimbus.datagen.errors import InputError
from nimbus.datagen.files.bounded import read_bytes
from nimbus.datagen.objects.model import RestPose, TriedGrasp
from nimbus.datagen.objects.prepared.index import AGAIN
from nimbus.datagen.objects.shapes.contact import Piece

_LARGEST = 256 << 20
"""[bytes]"""
_PLAIN = ("vertices", "faces", "normals", "uvs", "texture", "center_of_mass", "inertia")


@dataclass(frozen=True, kw_only=True)
class AssetShape:
    """Arrays of a kind; the origin is the middle of its bounds, z is up."""

    vertices: FloatArray
    """(n, 3) [m] of the visual mesh."""
    faces: IndexArray
    normals: FloatArray
    uvs: FloatArray
    texture: ImageArray
    """(H, W, 3) sRGB."""
    center_of_mass: FloatArray
    """(3,) [m]"""
    inertia: FloatArray
    """(3, 3) about the centre of mass, of 1 kg [m²]."""
    pieces: tuple[Piece, ...]
    rest_poses: tuple[RestPose, ...]
    keypoints: dict[str, FloatArray]
    """(3,) [m]"""
    frames: dict[str, FloatArray]
    """(4, 4)"""
    cavities: dict[str, FloatArray]
    """(2, 3) [m]"""
    grasps: tuple[TriedGrasp, ...] = ()


def shape_bytes(shape: AssetShape) -> bytes:
    """Write a shape; the same arrays give the same bytes."""
    arrays = {name: getattr(shape, name) for name in _PLAIN}
    for index, (vertices, faces) in enumerate(shape.pieces):
        arrays |= {f"piece_{index}_vertices": vertices, f"piece_{index}_faces": faces}
    poses = shape.rest_poses
    arrays["rest_names"] = np.array([pose.name for pose in poses], dtype="U16")
    arrays["rests"] = np.array([(*pose.wxyz, pose.height, pose.tilt_margin) for pose in poses])
    arrays["grasps"] = np.array([(*one.object_T_tool[:3].ravel(), one.width, one.holds) for one in shape.grasps])
    for sort in ("keypoints", "frames", "cavities"):
        named: dict[str, FloatArray] = getattr(shape, sort)
        arrays[f"{sort}_names"] = np.array(list(named), dtype="U80")
        arrays |= {f"{sort}_{index}": value for index, value in enumerate(named.values())}
    content = io.BytesIO()
    np.savez_compressed(content, allow_pickle=False, **arrays)
    return content.getvalue()


def read_shape(path: Path, sha256: str) -> AssetShape:
    """Read the file that the index names.

    Raises:
        InputError: It is missing, another one, or broken.
    """
    content = read_bytes(path, limit=_LARGEST)
    if hashlib.sha256(content).hexdigest() != sha256:
        raise InputError("is another file than the library's index names", where=str(path), instead=AGAIN)
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as stored:
            return _shape({name: stored[name] for name in stored.files})
    except (KeyError, ValueError, BadZipFile) as error:
        raise InputError(f"cannot be read: {error}", where=str(path), instead=AGAIN) from None


def _shape(arrays: dict[str, Any]) -> AssetShape:
    count = sum(name.startswith("piece_") and name.endswith("_vertices") for name in arrays)
    named: dict[str, Any] = {
        sort: {str(name): arrays[f"{sort}_{index}"] for index, name in enumerate(arrays[f"{sort}_names"])}
        for sort in ("keypoints", "frames", "cavities")
    }
    rows = zip(arrays["rest_names"], arrays["rests"].reshape(-1, 6).tolist(), strict=True)
    return AssetShape(
        **{name: arrays[name] for name in _PLAIN},
        pieces=tuple((arrays[f"piece_{i}_vertices"], arrays[f"piece_{i}_faces"]) for i in range(count)),
        rest_poses=tuple(
            RestPose(name=str(name), wxyz=(w, x, y, z), height=height, tilt_margin=margin)
            for name, (w, x, y, z, height, margin) in rows
        ),
        grasps=tuple(
            TriedGrasp(
                object_T_tool=np.vstack([row[:12].reshape(3, 4), [0, 0, 0, 1]]), width=float(row[12]), holds=row[13] > 0
            )
            for row in arrays.get("grasps", np.zeros(0)).reshape(-1, 14)
        ),
        **named,
    )
