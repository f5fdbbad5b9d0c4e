"""Regions of one stage, rendered side by side and each alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from nimbus.datagen.usd.stack_layout import StackLayout, stack_layout
from nimbus.datagen.usd.stacked_stage import region_poses
from nimbus.datagen.usd.visual_assets import VisualAssets, seen_bounds
from tests.support.one_world import render_as_one_world, write
from tests.support.render_scene import layout, states

WIDTH, HEIGHT = 48, 36
CAMERAS = layout(width=WIDTH, height=HEIGHT).visual.cameras
SIZES = {camera.name: (WIDTH, HEIGHT) for camera in CAMERAS}


def placed(assets: VisualAssets, steps: list[int]) -> StackLayout:
    names, positions, wxyz = states()
    _, _, eyes, _ = region_poses(CAMERAS, names, positions[steps], wxyz[steps])
    box = seen_bounds(assets, names, positions[steps], wxyz[steps])
    return stack_layout(len(steps), bounds=box, eyes=eyes.reshape(-1, 3), cameras=CAMERAS)


def clipped(frames, far: float):
    """Return depth and instance clipped at a camera's far distance."""
    depth, instance = frames.depth[0].copy(), frames.instance[0].copy()
    depth[frames.depth[0] > far], instance[frames.depth[0] > far] = 0.0, 0
    return depth, instance


def side_by_side_and_alone(assets: VisualAssets, folder: Path, steps: list[int], layout: StackLayout):
    """Yield, for each region and camera, both images of depth and labels."""
    regions = write(folder / "stacked.usda", assets, layout, CAMERAS, steps)
    together, names = render_as_one_world(folder / "stacked.usda", regions, assets, SIZES)
    for number, step in enumerate(steps):
        alone_at = StackLayout(spacing=layout.spacing, far=layout.far, origins=np.zeros((1, 3)))
        path = folder / f"alone_{number}.usda"
        alone, alone_names = render_as_one_world(path, write(path, assets, alone_at, CAMERAS, [step]), assets, SIZES)
        assert names == alone_names
        for camera in CAMERAS:
            yield (
                clipped(together[f"{number}/{camera.name}"], layout.far),
                clipped(alone[f"0/{camera.name}"], layout.far),
            )
