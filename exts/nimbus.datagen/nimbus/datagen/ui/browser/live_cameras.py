"""Images of a task's cameras while the robot moves, rendered in a separate thread with a limited share of a core."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import numpy as np

from nimbus.datagen.arrays import FloatArray, ImageArray
from nimbus.datagen.episode.layout import Layout
from nimbus.datagen.render.scene_renderer import SceneRenderer
from nimbus.datagen.tasks.scene_assets import SceneAssets

_SHARE = 0.25
"""Largest fraction of one core for images, because control has priority."""
_STILL = 1e-4, 5e-3
"""Largest changes of a position [m] and of an entry of a quaternion (0.6 degrees) that are not rendered again. With an
idle Panda, bodies move by about one micrometer per second, and a cube at rest turns by 0.07 degrees per second."""


class LiveCameras:
    """Renderer of the newest poses of a layout.

    Args:
        assets: Assets of the task.
        show: Called with the name of a camera and its image (H, W, 3), sRGB.
    """

    def __init__(self, assets: SceneAssets, show: Callable[[str, ImageArray], None]) -> None:
        self._assets, self._show = assets, show
        self._newest: tuple[Layout, tuple[str, ...], FloatArray, FloatArray] | None = None
        self._changed, self._closed = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="nimbus-live-cameras", daemon=True)
        self._thread.start()

    def look(self, layout: Layout, names: tuple[str, ...], positions: FloatArray, wxyz: FloatArray) -> None:
        """Set the state to render next, with poses (B, 3) [m] and (B, 4); it replaces a state that still waits."""
        self._newest = layout, names, positions, wxyz
        self._changed.set()

    def close(self) -> None:
        """Stop the thread."""
        self._closed.set()
        self._changed.set()
        self._thread.join()

    def _run(self) -> None:
        renderer: SceneRenderer | None = None
        loaded: Layout | None = None
        rendered: tuple[FloatArray, FloatArray] | None = None
        while True:
            self._changed.wait()
            self._changed.clear()
            if self._closed.is_set():
                return
            if self._newest is None:
                continue
            layout, names, positions, wxyz = self._newest
            if layout is loaded and rendered and is_still(rendered, positions, wxyz):
                continue
            begin = time.thread_time()
            if renderer is None:
                stage, robot = self._assets.stage, self._assets.robot
                libraries = tuple(self._assets.libraries)
                renderer = SceneRenderer(stage, robot, libraries=libraries, stack=1, modalities=("rgb",))
            if layout is not loaded:
                renderer.load(layout)
                loaded = layout
            rendered = positions, wxyz
            frames = renderer.render(names, positions[None], wxyz[None], first_step=0)
            for camera, seen in frames.items():
                self._show(camera, seen.rgb[0])
            self._closed.wait((time.thread_time() - begin) * (1 / _SHARE - 1))


def is_still(rendered: tuple[FloatArray, FloatArray], positions: FloatArray, wxyz: FloatArray) -> bool:
    """Return True if no position (B, 3) [m] or rotation (B, 4) differs visibly from the rendered ones."""
    changes = (np.abs(new - old).max(initial=0.0) for old, new in zip(rendered, (positions, wxyz), strict=True))
    return all(change < limit for change, limit in zip(changes, _STILL, strict=True))
