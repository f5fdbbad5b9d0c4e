"""PLY files of splats in the format of 3D Gaussian splatting's training."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from nimbus.datagen.errors import InputError
from nimbus.datagen.splats.cloud import FIRST_HARMONIC, SplatCloud, unit_quaternions
from nimbus.datagen.splats.ply_file import open_table, read_elements, stack_columns

_REST = {0: 0, 9: 3, 24: 8, 45: 15}
"""Number of further coefficients per channel, by the number of ``f_rest`` columns."""
_CHANNELS = [f"f_dc_{channel}" for channel in range(3)]
_PLACE, _SCALES = ["x", "y", "z"], [f"scale_{axis}" for axis in range(3)]
_TURN = [f"rot_{part}" for part in range(4)]


def read_training_ply(path: Path) -> SplatCloud:
    """Read ``x y z f_dc_* f_rest_* opacity scale_* rot_*``.

    Opacities are stored as logits, scales as logarithms, quaternions with w first, and harmonics channel after channel.
    The columns may be in any order, with other columns between them.

    Raises:
        InputError: The file is truncated, or a column is missing.
    """
    elements, start = read_elements(path)
    table = open_table(path, elements, start, "vertex")
    if not len(table):
        raise InputError("contains no splats", where=str(path), instead="export the scene again")
    columns = table.dtype.names or ()
    if lacking := [name for name in [*_PLACE, *_CHANNELS, "opacity", *_SCALES, *_TURN] if name not in columns]:
        what = f"has no column {', '.join(lacking)}: its points are not splats"
        raise InputError(what, where=str(path), instead="give a PLY file of 3D Gaussian splatting")
    rest = [name for name in columns if name.startswith("f_rest_")]
    if len(rest) not in _REST:
        what = f"has {len(rest)} columns f_rest_*; expected 0, 9, 24 or 45"
        raise InputError(what, where=str(path), instead="export the scene again")
    harmonics = None
    if count := _REST[len(rest)]:
        names = [f"f_rest_{number}" for number in range(len(rest))]
        harmonics = stack_columns(table, names, np.float16).reshape(len(table), 3, count)
    # An overflow of exp gives an opacity of 0, which is right, or an infinite scale, which ``check_cloud`` refuses.
    with np.errstate(over="ignore"):
        opacities = (1.0 / (1.0 + np.exp(-np.asarray(table["opacity"], dtype=np.float32)))).astype(np.float32)
        scales = np.exp(stack_columns(table, _SCALES))
    return SplatCloud(
        positions=stack_columns(table, _PLACE),
        scales=scales,
        wxyz=unit_quaternions(stack_columns(table, _TURN)),
        opacities=opacities,
        colors=0.5 + np.float32(FIRST_HARMONIC) * stack_columns(table, _CHANNELS),
        harmonics=harmonics,
    )


def write_training_ply(cloud: SplatCloud, path: Path) -> None:
    """Write splats without harmonics, in the format of :func:`read_training_ply` and other programs.

    Args:
        cloud: Splats; opacities are limited to 1e-6 above 0 and below 1.
        path: File to write.
    """
    # Splats have no normals, but the training's own files have these columns.
    names = [*_PLACE, "nx", "ny", "nz", *_CHANNELS, "opacity", *_SCALES, *_TURN]
    opacity = np.clip(cloud.opacities.astype(float), 1e-6, 1.0 - 1e-6)
    values = [
        cloud.positions,
        np.zeros((len(cloud), 3)),
        (cloud.colors - 0.5) / FIRST_HARMONIC,
        np.log(opacity / (1.0 - opacity))[:, None],
        np.log(np.maximum(cloud.scales, 1e-9)),
        cloud.wxyz,
    ]
    lines = ["ply", "format binary_little_endian 1.0", f"element vertex {len(cloud)}"]
    lines += [f"property float {name}" for name in names] + ["end_header", ""]
    path.write_bytes("\n".join(lines).encode() + np.column_stack(values).astype("<f4").tobytes())
