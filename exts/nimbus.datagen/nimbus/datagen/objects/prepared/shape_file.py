"""File ``shape.npz`` of a kind: appearance, contact geometry and physics, in the frame of the object."""

from __future__ import annotations

import hashlib
import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nimbus.datagen.arrays import FloatArray, ImageArray, IndexArray
from nimbus.datagen.errors import InputError
from nimbus.datagen.files.bounded import read_bytes
from nimbus.datagen.files.npy_files import read_npz
from nimbus.datagen.objects.model import Handle, Joint, MovingPart, Pressing, RestPose, TriedGrasp
from nimbus.datagen.objects.prepared.index import AGAIN
from nimbus.datagen.objects.shapes.contact import Piece

_LARGEST = 256 << 20
"""Largest size of a shape file [bytes]."""
_LARGEST_UNPACKED = 1 << 30
"""Largest total size of the unpacked arrays [bytes]; arrays of zeros compress a thousandfold."""
_FORMS: dict[str, tuple[int | None, ...]] = {
    "center_of_mass": (3,),
    "inertia": (3, 3),
    "normals": (None, 3),
    "uvs": (None, 2),
    "texture": (None, None, 3),
    "joint": (12,),
    "handles": (None, 14),
    "pressings": (None, 6),
    "words": (2,),
    "keypoints_": (3,),
    "frames_": (4, 4),
    "cavities_": (2, 3),
}
"""Shapes of arrays by their names, or by the beginnings of numbered names; None for any length."""
_PART = ("vertices", "faces", "normals", "uvs", "center_of_mass", "inertia")
"""Arrays of a part that are stored unchanged."""
_PLAIN = ("vertices", "faces", "normals", "uvs", "texture", "center_of_mass", "inertia")


@dataclass(frozen=True, kw_only=True)
class AssetShape:
    """Arrays of a kind; the origin is the center of the bounds, and z is up."""

    vertices: FloatArray
    """(n, 3) [m] of the visual mesh."""
    faces: IndexArray
    normals: FloatArray
    uvs: FloatArray
    texture: ImageArray
    """(H, W, 3) sRGB."""
    center_of_mass: FloatArray
    """(3,) center of mass [m]."""
    inertia: FloatArray
    """(3, 3) about the center of mass, for 1 kg [m²]."""
    pieces: tuple[Piece, ...]
    rest_poses: tuple[RestPose, ...]
    keypoints: dict[str, FloatArray]
    """(3,) points by name [m]."""
    frames: dict[str, FloatArray]
    """(4, 4) frames by name."""
    cavities: dict[str, FloatArray]
    """(2, 3) corners of cavities by name [m]."""
    grasps: tuple[TriedGrasp, ...] = ()
    parts: tuple[MovingPart, ...] = ()
    """Moving parts; all other arrays belong to the base."""


def shape_bytes(shape: AssetShape) -> bytes:
    """Serialize a shape; equal arrays give equal bytes."""
    arrays = {name: getattr(shape, name) for name in _PLAIN} | _piece_arrays(shape.pieces)
    poses = shape.rest_poses
    arrays["rest_names"] = np.array([pose.name for pose in poses], dtype="U16")
    arrays["rests"] = np.array([(*pose.wxyz, pose.height, pose.tilt_margin) for pose in poses])
    arrays["grasps"] = np.array([(*one.object_T_tool[:3].ravel(), one.width, one.holds) for one in shape.grasps])
    for sort in ("keypoints", "frames", "cavities"):
        arrays |= _named_arrays(sort, getattr(shape, sort))
    for index, part in enumerate(shape.parts):
        arrays |= {f"part_{index}/{name}": value for name, value in _part_arrays(part).items()}
    content = io.BytesIO()
    np.savez_compressed(content, allow_pickle=False, **arrays)
    return content.getvalue()


def _piece_arrays(pieces: tuple[Piece, ...]) -> dict[str, Any]:
    return {
        f"piece_{index}_{what}": array
        for index, piece in enumerate(pieces)
        for what, array in zip(("vertices", "faces"), piece, strict=True)
    }


def _named_arrays(sort: str, named: dict[str, FloatArray]) -> dict[str, Any]:
    arrays = {f"{sort}_{index}": value for index, value in enumerate(named.values())}
    return {f"{sort}_names": np.array(list(named), dtype="U80"), **arrays}


def _part_arrays(part: MovingPart) -> dict[str, Any]:
    joint = part.joint
    arrays: dict[str, Any] = {name: getattr(part, name) for name in _PART} | _piece_arrays(part.convex_pieces)
    arrays["words"] = np.array([part.name, joint.kind], dtype="U80")
    arrays["joint"] = np.array(
        [*joint.axis, *joint.origin, *joint.range, joint.damping, joint.friction, joint.stiffness, part.mass]
    )
    rows = [(*h.position, *h.along, *h.approach, h.width, h.length, *h.turns, h.round) for h in part.handles]
    arrays["handles"] = np.array(rows, dtype=float).reshape(-1, 14)
    arrays["pressings"] = np.array([(*p.position, *p.normal) for p in part.pressings], dtype=float).reshape(-1, 6)
    return arrays | _named_arrays("frames", part.frames) | _named_arrays("cavities", part.cavities)


def read_shape(path: Path, sha256: str) -> AssetShape:
    """Read a shape file, and check it against its hash in the index.

    Raises:
        InputError: The file is missing, has another hash, or is corrupt.
    """
    content = read_bytes(path, limit=_LARGEST)
    if hashlib.sha256(content).hexdigest() != sha256:
        raise InputError("differs from the file in the library's index", where=str(path), instead=AGAIN)
    try:
        arrays = read_npz(content, limit=_LARGEST_UNPACKED)
        for name, array in arrays.items():
            _check_numbers(name, array)
            _check_form(name, array)
        shape = _shape(arrays)
        for owner in (shape, *shape.parts):
            for vertices, faces in ((owner.vertices, owner.faces), *_pieces_of(owner)):
                _check_faces(vertices, faces)
    except (KeyError, IndexError, TypeError, ValueError, MemoryError) as error:
        raise InputError(f"cannot be read: {error}", where=str(path), instead=AGAIN) from None
    return shape


def _check_numbers(name: str, array: np.ndarray[Any, Any]) -> None:
    """Raise ``ValueError`` for values that are neither numbers nor names, and for infinite coordinates."""
    is_place = name.endswith(("vertices", "center_of_mass", "inertia", "rests"))
    if array.dtype.kind not in "iufbU" or (is_place and not np.isfinite(array).all()):
        raise ValueError(f"'{name}' contains a value that is not a finite number")


def _differs(wanted: int | None, size: int) -> bool:
    return wanted not in (None, size)


def _check_form(name: str, array: np.ndarray[Any, Any]) -> None:
    """Raise ``ValueError`` for an array of another shape than its name stands for."""
    own = name.rpartition("/")[2]
    form = _FORMS.get(own, _FORMS.get(own.rstrip("0123456789"))) if not own.endswith("_names") else None
    if form and (len(form) != array.ndim or any(map(_differs, form, array.shape))):
        raise ValueError(f"'{name}' has the shape {array.shape}")


def _pieces_of(owner: AssetShape | MovingPart) -> tuple[Piece, ...]:
    return owner.pieces if isinstance(owner, AssetShape) else owner.convex_pieces


def _check_faces(vertices: np.ndarray[Any, Any], faces: np.ndarray[Any, Any]) -> None:
    """Raise ``ValueError`` for triangles with missing vertices."""
    if vertices.ndim != 2 or vertices.shape[1] != 3 or faces.ndim != 2 or faces.shape[1] != 3:
        raise ValueError(f"vertices of shape {vertices.shape} and faces of shape {faces.shape}")
    if faces.dtype.kind not in "iu" or (faces.size and not 0 <= faces.min() <= faces.max() < len(vertices)):
        raise ValueError(f"a face refers to a vertex outside 0 to {len(vertices) - 1}")


def _shape(arrays: dict[str, Any]) -> AssetShape:
    named: dict[str, Any] = {sort: _named(arrays, sort) for sort in ("keypoints", "frames", "cavities")}
    count = len({name.partition("/")[0] for name in arrays if name.startswith("part_")})
    rows = zip(arrays["rest_names"], arrays["rests"].reshape(-1, 6).tolist(), strict=True)
    return AssetShape(
        **{name: arrays[name] for name in _PLAIN},
        pieces=_pieces(arrays),
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
        parts=tuple(_part(_below(arrays, f"part_{index}/")) for index in range(count)),
        **named,
    )


def _below(arrays: dict[str, Any], start: str) -> dict[str, Any]:
    return {name.removeprefix(start): array for name, array in arrays.items() if name.startswith(start)}


def _named(arrays: dict[str, Any], sort: str) -> dict[str, FloatArray]:
    return {str(name): arrays[f"{sort}_{index}"] for index, name in enumerate(arrays[f"{sort}_names"])}


def _pieces(arrays: dict[str, Any]) -> tuple[Piece, ...]:
    count = sum(name.startswith("piece_") and name.endswith("_vertices") for name in arrays)
    return tuple((arrays[f"piece_{index}_vertices"], arrays[f"piece_{index}_faces"]) for index in range(count))


def _part(arrays: dict[str, Any]) -> MovingPart:
    name, kind = (str(word) for word in arrays["words"])
    low, high, damping, friction, stiffness, mass = arrays["joint"][6:].tolist()
    joint = Joint(
        kind="slide" if kind == "slide" else "hinge",
        axis=arrays["joint"][:3],
        origin=arrays["joint"][3:6],
        range=(low, high),
        damping=damping,
        friction=friction,
        stiffness=stiffness,
    )
    handles = [
        Handle(
            position=row[:3],
            along=row[3:6],
            approach=row[6:9],
            width=float(row[9]),
            length=float(row[10]),
            turns=(float(row[11]), float(row[12])),
            round=bool(row[13]),
        )
        for row in arrays["handles"]
    ]
    return MovingPart(
        **{name: arrays[name] for name in _PART},
        name=name,
        convex_pieces=_pieces(arrays),
        mass=mass,
        joint=joint,
        handles=tuple(handles),
        pressings=tuple(Pressing(position=row[:3], normal=row[3:]) for row in arrays["pressings"]),
        frames=_named(arrays, "frames"),
        cavities=_named(arrays, "cavities"),
    )
