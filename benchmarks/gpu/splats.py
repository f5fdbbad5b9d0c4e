"""Views per second of the splat rasterizer for 300,000 and 3 million splats, and of gsplat for the same cloud.

The cloud is generated here: a room of flat splats in front of the camera. Two images of one view must be equal to the
last bit. Those of gsplat must have a peak signal-to-noise ratio of at least 45 dB.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from benchmarks.gpu.result import PartResult, Row
from benchmarks.gpu.timing import repeat
from nimbus.datagen.arrays import Float32Array
from nimbus.datagen.episode.layout import Camera
from nimbus.datagen.errors import InputError
from nimbus.datagen.random_streams import generator
from nimbus.datagen.render.stacked import find_device
from nimbus.datagen.splats.cloud import SplatCloud
from nimbus.datagen.splats.gsplat_engine import GsplatRasterizer
from nimbus.datagen.splats.rasterizer import SplatRasterizer

_COUNTS, _CPU_COUNTS = (300_000, 3_000_000), (3_000,)
_VIEWS = 8
_FEWEST_DECIBELS = 45.0
"""Smallest peak signal-to-noise ratio between our images and gsplat's [dB]."""


def measure(device: str) -> PartResult:
    """Measure both rasterizers; without gsplat, only ours.

    Args:
        device: ``cuda`` or ``cpu``.

    Raises:
        InputError: The device does not exist.
    """
    find_device(device)
    rows: list[Row] = []
    problems: list[str] = []
    skipped = ""
    width, height = (160, 120) if device == "cpu" else (640, 480)
    camera = Camera(
        name="c", mount="", position=(0, 0, 0), wxyz=(1, 0, 0, 0), vertical_fov=0.9, width=width, height=height
    )
    for count in _CPU_COUNTS if device == "cpu" else _COUNTS:
        cloud = make_cloud(count)
        mine = SplatRasterizer(cloud, device=device)
        eyes, turns = eye_poses(_VIEWS)
        both = mine.render(camera, eyes, turns)
        pictures = both.rgb
        if not np.array_equal(pictures, mine.render(camera, eyes, turns).rgb):
            problems.append(f"{count} splats: two pictures of one view differ")
        if pictures.std() < 1.0:
            problems.append(f"{count} splats: the pictures are empty")
        rows.append({"rasterizer": "nimbus", "splats": count} | _rate(lambda: mine.render(camera, eyes, turns)))  # noqa: B023
        try:
            theirs = GsplatRasterizer(cloud, device=device)
        except InputError as error:
            skipped = error.what
            continue
        other = theirs.render(camera, eyes, turns)
        row = {"decibels": find_decibels(pictures, other.rgb), "depth_apart_m": depth_apart(both.depth, other.depth)}
        rows.append({"rasterizer": "gsplat", "splats": count} | _rate(lambda: theirs.render(camera, eyes, turns)) | row)  # noqa: B023
        if not row["decibels"] >= _FEWEST_DECIBELS:
            problems.append(f"{count} splats: {row['decibels']:.1f} dB from gsplat's, at least {_FEWEST_DECIBELS}")
    return PartResult(rows=tuple(rows), problems=tuple(problems), skipped=skipped)


def make_cloud(count: int) -> SplatCloud:
    """Draw a cloud of small, mostly opaque splats between 1 and 5 m in front of the camera."""
    rng = generator(0, "gpu", "splats", count)
    places = rng.uniform((-2.0, -1.5, -5.0), (2.0, 1.5, -1.0), (count, 3))
    size = 2.0 / count ** (1 / 3)
    turns = rng.normal(size=(count, 4))
    return SplatCloud(
        positions=places.astype(np.float32),
        scales=(size * rng.uniform(0.1, 0.5, (count, 3))).astype(np.float32),
        wxyz=(turns / np.linalg.norm(turns, axis=1, keepdims=True)).astype(np.float32),
        opacities=rng.uniform(0.3, 0.95, count).astype(np.float32),
        colors=rng.uniform(0.0, 1.0, (count, 3)).astype(np.float32),
    )


def eye_poses(count: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return positions (K, 3) and orientations (K, 4) of views that move to the side."""
    eyes = np.zeros((count, 3))
    eyes[:, 0] = np.linspace(-0.2, 0.2, count)
    return eyes, np.tile([1.0, 0.0, 0.0, 0.0], (count, 1))


def find_decibels(one: NDArray[np.uint8], other: NDArray[np.uint8]) -> float:
    """Return the peak signal-to-noise ratio of images [dB]; infinite if they are equal."""
    error = np.mean((one.astype(float) - other) ** 2)
    return float(10.0 * np.log10(255.0**2 / error)) if error else np.inf


def depth_apart(one: Float32Array, other: Float32Array) -> float:
    """Return the 99th percentile of the difference of depths, over pixels where both have depth [m]."""
    both = (one > 0) & (other > 0)
    return float(np.percentile(np.abs(one - other)[both], 99)) if both.any() else np.nan


def _rate(call: Callable[[], object]) -> Row:
    """Return the views per second, copied to the host."""
    timing = repeat(call)
    views = timing.calls * _VIEWS
    return {"views": views, "views_per_s": views / timing.wall}
