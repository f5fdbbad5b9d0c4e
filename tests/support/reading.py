"""Independent readers, which use no code of Nimbus."""

from __future__ import annotations

from pathlib import Path

import av
import numpy as np
from numpy.typing import NDArray


def decode(path: Path, start: float = 0.0, stop: float = float("inf")) -> tuple[NDArray[np.uint8], list[float]]:
    """Return the frames of a video with times in ``[start, stop)``, and these times."""
    with av.open(str(path)) as container:
        frames = [frame for frame in container.decode(video=0) if start - 1e-6 <= (frame.time or 0.0) < stop - 1e-6]
    images = np.stack([np.asarray(frame.to_ndarray(format="rgb24"), np.uint8) for frame in frames])
    return images, [float(frame.time or 0) for frame in frames]


def psnr(found: NDArray[np.uint8], wanted: NDArray[np.uint8]) -> float:
    """Return the peak signal-to-noise ratio over all pixels [dB]."""
    error = np.mean((found.astype(np.float64) - wanted) ** 2)
    return float(10 * np.log10(255**2 / max(error, 1e-9)))


def tree(folder: Path) -> dict[str, bytes]:
    """Return every file with its bytes."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
