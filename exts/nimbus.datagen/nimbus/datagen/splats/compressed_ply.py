"""Reader of compressed PLY files of splats, as written by SuperSplat and splat-transform."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.arrays import Float32Array
from nimbus.datagen.errors import InputError
from nimbus.datagen.splats.cloud import SplatCloud, unit_quaternions
from nimbus.datagen.splats.ply_file import open_table, read_elements, stack_columns

_CHUNK = 256
"""Number of splats that share one row of bounds in the element ``chunk``."""
_REST = {0: 0, 9: 3, 24: 8, 45: 15}
_PLACE, _SCALES, _COLOR = ["x", "y", "z"], ["scale_x", "scale_y", "scale_z"], ["r", "g", "b"]
_PACKED = ("packed_position", "packed_rotation", "packed_scale", "packed_color")
_HALF_DIAGONAL = float(np.sqrt(2.0))
"""Length of the interval that contains every component of a unit quaternion except the largest one."""
_HARMONIC_RANGE = 8.0
"""Width of the range of harmonics that a byte encodes, from -4 to 4."""


def read_compressed_ply(path: Path) -> SplatCloud:
    """Read splats that are stored in 16 bytes each, relative to the bounds of their chunk.

    Raises:
        InputError: The file is truncated, or has fewer chunks than its splats need.
    """
    elements, start = read_elements(path)
    bounds, table = (open_table(path, elements, start, name) for name in ("chunk", "vertex"))
    of_chunk, names = bounds.dtype.names or (), _PLACE + _SCALES
    has_colors = "min_r" in of_chunk
    wanted = [f"{end}_{name}" for end in ("min", "max") for name in names + (_COLOR if has_colors else [])]
    lacking = [name for name in _PACKED if name not in (table.dtype.names or ())]
    if lacking := lacking + [name for name in wanted if len(bounds) and name not in of_chunk]:
        raise InputError(f"has no column {', '.join(lacking)}", where=str(path), instead="export it again")
    # Each group of 256 splats needs its own row of bounds; a missing row would be an index error below.
    if len(bounds) * _CHUNK < len(table):
        what = f"has {len(bounds)} chunks for {len(table)} splats; expected {-(-len(table) // _CHUNK)}"
        raise InputError(what, where=str(path), instead="export it again")
    if wrong := [name for name in _PACKED if table.dtype[name] != np.dtype("<u4")]:
        raise InputError(f"column {wrong[0]} is not of type uint", where=str(path), instead="export it again")
    position, rotation, scale, color = (np.asarray(table[name]) for name in _PACKED)
    chunk = np.arange(len(table)) // _CHUNK
    # Without bounds of colors in the file, the bytes cover the range 0 to 1.
    colors = np.stack([_part(color, shift, 8) for shift in (24, 16, 8)], axis=1)
    if has_colors:
        colors = _between(bounds, _COLOR, chunk, colors)
    rest = open_table(path, elements, start, "sh")
    harmonics = None
    if len(rest) == len(table) and len(table):
        if not (count := _REST.get(len(rest.dtype.names or ()), 0)):
            what = f"has {len(rest.dtype.names or ())} columns of harmonics; expected 9, 24 or 45"
            raise InputError(what, where=str(path), instead="export it again")
        columns = [f"f_rest_{number}" for number in range(3 * count)]
        if lacking := [name for name in columns if name not in (rest.dtype.names or ())]:
            raise InputError(f"has no column {lacking[0]}", where=str(path), instead="export it again")
        values = stack_columns(rest, columns)
        harmonics = (values * (_HARMONIC_RANGE / 255.0) - _HARMONIC_RANGE / 2.0).astype(np.float16)
        harmonics = harmonics.reshape(len(table), 3, count)
    return SplatCloud(
        positions=_between(bounds, _PLACE, chunk, _three(position)),
        scales=np.exp(_between(bounds, _SCALES, chunk, _three(scale))),
        wxyz=_turns(rotation),
        opacities=_part(color, 0, 8),
        colors=colors,
        harmonics=harmonics,
    )


def _part(packed: NDArray[Any], shift: int, bits: int) -> Float32Array:
    """Extract bits of packed integers, scaled to the range 0 to 1."""
    most = (1 << bits) - 1
    return ((packed >> np.uint32(shift)) & np.uint32(most)).astype(np.float32) / np.float32(most)


def _three(packed: NDArray[Any]) -> Float32Array:
    """Unpack three numbers (N, 3) of 11, 10 and 11 bits, scaled to the range 0 to 1."""
    return np.stack([_part(packed, 21, 11), _part(packed, 11, 10), _part(packed, 0, 11)], axis=1)


def _between(bounds: NDArray[Any], names: list[str], chunk: NDArray[Any], share: Float32Array) -> Float32Array:
    lower = stack_columns(bounds, [f"min_{name}" for name in names])[chunk]
    upper = stack_columns(bounds, [f"max_{name}" for name in names])[chunk]
    return lower + (upper - lower) * share


def _turns(packed: NDArray[Any]) -> Float32Array:
    """Unpack unit quaternions stored without the largest component: 2 bits for its index in wxyz, 10 for each other."""
    # A component that is not the largest is at most sqrt(1/2) in magnitude, so this range suffices for it.
    others = np.stack([_part(packed, shift, 10) for shift in (20, 10, 0)], axis=1)
    others = (others - np.float32(0.5)) * np.float32(_HALF_DIAGONAL)
    largest = np.sqrt(np.maximum(1.0 - np.sum(others**2, axis=1), 0.0))
    place, rows = (packed >> np.uint32(30)).astype(int), np.arange(len(packed))
    wxyz = np.empty((len(packed), 4), dtype=np.float32)
    for part in range(3):
        wxyz[rows, part + (part >= place)] = others[:, part]
    wxyz[rows, place] = largest
    return unit_quaternions(wxyz)
