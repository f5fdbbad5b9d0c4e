"""Comparison of decoded stored images with a new rendering of the stored states."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.episode.layout import Layout
from nimbus.datagen.load.navigation_loader import NavigationLoader
from nimbus.datagen.render.camera_model.sensor import shown_poses
from nimbus.datagen.render.scene_views import SceneViews
from nimbus.datagen.render.splat_views import SplatViews
from nimbus.datagen.render.stacked import StackedRenderer
from nimbus.datagen.store.episode_file.read import EpisodeFile

LEAST_PSNR = 30.0
"""Smallest accepted PSNR of an image [dB]; lossy video is above it, images of another step or camera are below it."""
LEAST_EQUAL = 0.99
"""Smallest accepted fraction of equal pixels in a mask."""
EXACT_PSNR = 99.0
"""Value reported for identical images [dB]."""


@dataclass(frozen=True, kw_only=True)
class RenderCheck:
    """Result of the check of one episode."""

    psnr: tuple[float, ...]
    """PSNR of each compared image [dB]; :data:`EXACT_PSNR` for identical ones."""
    problems: tuple[str, ...]
    """Differences above the limits, one line each."""


class FreshRenders:
    """Renders stored states again and compares the images; one renderer serves all episodes of a task.

    Args:
        assets: Scene, robot and libraries of the task.
        device: ``cpu`` or ``cuda``.
        has_splats: The stored images show splats instead of the meshes of the scenes.
    """

    def __init__(self, assets: Any, *, device: str = "cpu", has_splats: bool = False) -> None:
        if isinstance(assets, NavigationLoader):
            views = SplatViews(device=device) if has_splats else SceneViews(device=device)
            self._renderer: StackedRenderer = views

            def load_views(episode: EpisodeFile, layout: Layout) -> None:
                """Prepare the scene of an episode."""
                views.load_episode(assets.of_index(layout.key.index), layout, episode.trajectory())

            self._load: Callable[[EpisodeFile, Layout], None] = load_views
            return
        from nimbus.datagen.render.scene_renderer import SceneRenderer
        from nimbus.datagen.render.stacked import find_device

        libraries = tuple(assets.libraries)
        renderer = self._renderer = SceneRenderer(
            assets.stage, assets.robot, libraries=libraries, stack=1, device=find_device(device), shadows=True
        )
        self._load = lambda episode, layout: renderer.load(layout)

    def check(self, episode: EpisodeFile, layout: Layout, steps: NDArray[np.int64]) -> RenderCheck:
        """Compare some steps of an episode in all cameras.

        Args:
            episode: Stored states and images.
            layout: Layout of the episode.
            steps: (S,) numbers of the steps to compare, from 0.

        Raises:
            InputError: The file is damaged.
        """
        names = episode.texts("names/bodies")
        positions, wxyz = episode.array("observations/body_positions"), episode.array("observations/body_wxyz")
        positions, wxyz = shown_poses(positions, wxyz, rate=episode.rate, latency=layout.visual.latency)
        self._load(episode, layout)
        found, problems = [], []
        for step in steps.tolist():
            here = slice(step, step + 1)
            fresh = self._renderer.render(names, positions[here], wxyz[here], first_step=step)
            for camera in episode.cameras:
                where = f"{episode.episode_id}, {camera}, step {step}"
                if camera not in fresh:
                    problems.append(f"{where}: the layout has no such camera")
                    continue
                stored = episode.frames(camera, step, step + 1)
                found.append(psnr(stored.rgb, fresh[camera].rgb))
                if found[-1] < LEAST_PSNR:
                    problems.append(f"{where}: the PSNR to a new rendering is {found[-1]:.1f} dB")
                if not len(stored.instance):
                    continue
                equal = float((stored.instance == fresh[camera].instance).mean())
                if equal < LEAST_EQUAL:
                    problems.append(f"{where}: {equal:.1%} of the mask equals a new rendering")
        return RenderCheck(psnr=tuple(found), problems=tuple(problems))


def psnr(one: NDArray[np.uint8], other: NDArray[np.uint8]) -> float:
    """Compute the peak signal-to-noise ratio between two arrays of images [dB].

    Args:
        one: (..., H, W, 3) sRGB images [levels, 0 to 255].
        other: (..., H, W, 3) sRGB images of the same shape [levels, 0 to 255].
    """
    error = float(np.mean((one.astype(np.float64) - other) ** 2))
    return EXACT_PSNR if not error else min(EXACT_PSNR, float(10 * np.log10(255.0**2 / error)))
