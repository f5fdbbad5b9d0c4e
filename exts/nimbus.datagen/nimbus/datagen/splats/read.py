"""Reader of splat files: PLY from training, compressed PLY, and SPZ. The content of a file determines its format."""

from __future__ import annotations

from pathlib import Path

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.bounded import check_regular
from nimbus.datagen.splats.cloud import SplatCloud, check_cloud
from nimbus.datagen.splats.compressed_ply import read_compressed_ply
from nimbus.datagen.splats.ply_file import read_elements
from nimbus.datagen.splats.spz import read_spz
from nimbus.datagen.splats.training_ply import read_training_ply

SPLAT_SUFFIXES = (".ply", ".spz")
"""Suffixes that :func:`read_splats` accepts."""


def read_splats(path: Path) -> SplatCloud:
    """Read the splats of a scene, in the frame of the file.

    Raises:
        InputError: The file has another format, is empty, truncated or too large, or contains values that are not
            finite.
    """
    if path.suffix.lower() not in SPLAT_SUFFIXES:
        what, instead = f"is not a {' or '.join(SPLAT_SUFFIXES)} file", "convert it, for example with splat-transform"
        raise InputError(what, where=str(path), instead=instead)
    if not check_regular(path):
        raise InputError("the file is empty", where=str(path), instead="export the scene again")
    # Both kinds of PLY files have the same suffix; only compressed ones have an element ``chunk``.
    if path.suffix.lower() == ".spz":
        cloud = read_spz(path)
    elif any(element.name == "chunk" for element in read_elements(path)[0]):
        cloud = read_compressed_ply(path)
    else:
        cloud = read_training_ply(path)
    return check_cloud(cloud, where=str(path))


def has_splats(path: Path) -> bool:
    """Return True if a file contains splats: any SPZ file, or a PLY file with the columns of splats.

    Raises:
        InputError: The file cannot be read.
    """
    if path.suffix.lower() == ".spz":
        return True
    check_regular(path)
    with path.open("rb") as file:
        head = file.read(1 << 16).partition(b"end_header")[0]
    return path.suffix.lower() == ".ply" and (b" packed_rotation" in head or b" f_dc_0" in head)
