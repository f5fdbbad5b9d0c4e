"""Views a second of the splat rasterizer at 300,000 and 3 million splats, beside gsplat on the same cloud.

The cloud is drawn here: a room of flat splats in front of the camera. Two pictures of one view must be equal to the
last bit, and those of gsplat, which blends in another order, nearly.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.gpu.physics import need
from benchmarks.gpu.result import MissingError, PartResult, Row
from nimbus.datagen.episode.layout import Camera
from nimbus.datagen.geometry import cameras
from nimbus.datagen.random_streams import generator
from nimbus.datagen.render.stacked import find_device
from nimbus.datagen.splats.cloud import SplatCloud
from nimbus.datagen.splats.rasterizer import SplatRasterizer

_COUNTS, _CPU_COUNTS = (300_000, 3_000_000), (3_000,)
_VIEWS = 8
_SECONDS = 1.0
"""[s] Shortest time that is measured, after one call that is not."""
_APART = 0.05
"""Mean difference from gsplat's pictures, 0 to 1: edges of splats are cut off differently."""


def measure(device: str) -> PartResult:
    """Measure both rasterizers; without gsplat, ours alone.

    Args:
        device: ``cuda`` or ``cpu``.

    Raises:
        InputError: The device is not there.
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
        pictures = mine.render(camera, eyes, turns).rgb
        if not np.array_equal(pictures, mine.render(camera, eyes, turns).rgb):
            problems.append(f"{count} splats: two pictures of one view differ")
        if pictures.std() < 1.0:
            problems.append(f"{count} splats: the pictures are empty")
        rows.append({"rasterizer": "nimbus", "splats": count} | _rate(lambda: mine.render(camera, eyes, turns)))  # noqa: B023
        try:
            theirs = _gsplat(cloud, camera, eyes, turns, device=device)
        except MissingError as error:
            skipped = str(error)
            continue
        apart = float(np.abs(theirs() - pictures / 255.0).mean())
        rows.append({"rasterizer": "gsplat", "splats": count} | _rate(theirs) | {"apart": apart})
        if not apart <= _APART:
            problems.append(f"{count} splats: {apart:.3f} from gsplat's pictures, at most {_APART}")
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
    """Return positions (K, 3) and orientations (K, 4) of views that shift to the side."""
    eyes = np.zeros((count, 3))
    eyes[:, 0] = np.linspace(-0.2, 0.2, count)
    return eyes, np.tile([1.0, 0.0, 0.0, 0.0], (count, 1))


def _gsplat(
    cloud: SplatCloud, camera: Camera, eyes: NDArray[np.float64], turns: NDArray[np.float64], *, device: str
) -> Callable[[], NDArray[np.float32]]:
    """Return a call that renders the views by gsplat, (K, H, W, 3) from 0 to 1.

    Raises:
        MissingError: gsplat or torch is not there, or the device is a CPU, which gsplat does not render on.
    """
    gsplat, torch = need("gsplat"), need("torch")
    if device == "cpu":
        raise MissingError("gsplat renders on a GPU only")

    def upload(values: NDArray[Any]) -> Any:
        return torch.from_numpy(np.ascontiguousarray(values, dtype=np.float32)).to(device)

    arrays = [upload(values) for values in (cloud.positions, cloud.wxyz, cloud.scales, cloud.opacities, cloud.colors)]
    views = upload(np.linalg.inv(cameras.world_T_camera(eyes, turns)))
    matrices = upload(np.tile(cameras.intrinsics(camera), (len(eyes), 1, 1)))

    def call() -> NDArray[np.float32]:
        with torch.no_grad():
            colors, _, _ = gsplat.rasterization(
                *arrays, viewmats=views, Ks=matrices, width=camera.width, height=camera.height
            )
        return colors.clamp(0, 1).cpu().numpy()

    call()
    return call


def _rate(call: Callable[[], object]) -> Row:
    """Views a second, copied to the host."""
    calls, start = 0, time.perf_counter()
    while not calls or time.perf_counter() - start < _SECONDS:
        call()
        calls += 1
    return {"views": calls * _VIEWS, "views_per_s": calls * _VIEWS / (time.perf_counter() - start)}
