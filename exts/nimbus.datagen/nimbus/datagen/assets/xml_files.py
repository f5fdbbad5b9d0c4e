"""Parser of third-party XML files, without entities and with defaults for missing numbers."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.assets.source_files import read_source
from nimbus.datagen.errors import InputError
from nimbus.datagen.geometry.transforms import make_transform, quat_from_axis_angle

_LARGEST = 16 << 20
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")


def parse_xml(root: Path, path: Path) -> ElementTree.Element:
    """Parse an XML file of a source.

    Args:
        root: Folder of the source.
        path: The file.

    Raises:
        InputError: The file cannot be read, is malformed, or declares entities.
    """
    content = read_source(root, path, limit=_LARGEST)
    if b"<!DOCTYPE" in content or b"<!ENTITY" in content:
        raise InputError("declares XML entities", where=str(path), instead="replace them with their text")
    try:
        # Files of pybullet declare version 0.0, which parsers reject.
        return ElementTree.fromstring(re.sub(rb"^\s*<\?xml[^>]*\?>", b"", content))
    except (ElementTree.ParseError, ValueError) as error:
        raise InputError(f"malformed XML: {error}", where=str(path), instead="export it again") from None


def numbers(text: str | None, default: tuple[float, ...]) -> NDArray[np.float64]:
    """Parse numbers separated by blanks; return the defaults if there are too few."""
    found = [float(word) for word in _NUMBER.findall(text or "")]
    return np.array(found if len(found) >= len(default) else default)


def place_of(position: NDArray[np.float64], turn: NDArray[np.float64]) -> FloatArray:
    """Return a transform (4, 4) from a position [m] and a rotation (3, 3)."""
    matrix = np.eye(4)
    matrix[:3, :3], matrix[:3, 3] = turn, position[:3]
    return matrix


def turned(axis: tuple[float, float, float], angle: float) -> FloatArray:
    """Return the rotation (3, 3) about an axis by an angle [rad]."""
    return make_transform((0, 0, 0), quat_from_axis_angle(axis, angle))[:3, :3]


def upper_rows(matrix: FloatArray) -> tuple[float, ...]:
    """Return the upper rows (3, 4) of a transform as a flat tuple."""
    return tuple(float(value) for value in matrix[:3].ravel())
