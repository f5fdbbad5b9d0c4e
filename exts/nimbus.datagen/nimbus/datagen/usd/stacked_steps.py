"""Export of steps of a motion as regions of one stage, with all files that the stage references in one folder."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from nimbus.datagen.episode.layout import Layout
from nimbus.datagen.robots.robot import Robot
from nimbus.datagen.usd.layout_export import BodyMotion
from nimbus.datagen.usd.robot import robot_usd
from nimbus.datagen.usd.stack_layout import stack_layout
from nimbus.datagen.usd.stacked_stage import region_poses, write_stacked_stage
from nimbus.datagen.usd.stage import StageInfo, layout_stage
from nimbus.datagen.usd.visual_assets import seen_bounds, write_visual_assets


def write_steps(folder: Path, stage: StageInfo, robot: Robot, layout: Layout, motion: BodyMotion) -> Path:
    """Write K steps side by side, with the spacing that rendering in Isaac Sim uses; return the stage's file.

    Args:
        folder: Folder for these files only.
        stage: The scene.
        robot: The robot.
        layout: Objects, cameras, looks and light.
        motion: Poses of all bodies in the K steps.

    Raises:
        InputError: The regions reach too far from the origin.
    """
    stage = layout_stage(stage, layout.physical)
    fixtures = {name: fixture.prim_path for name, fixture in stage.fixtures.items()}
    usd = robot_usd(robot)  # pyright: ignore[reportArgumentType] (a frozen model is hashable)
    visual, names = layout.visual, motion.names
    assets = write_visual_assets(
        stage.path, usd, fixtures, layout.physical.objects, folder, surfaces=visual.surfaces, roles=stage.roles
    )
    positions, wxyz = np.asarray(motion.positions), np.asarray(motion.wxyz)
    _, _, eyes, _ = region_poses(visual.cameras, names, positions, wxyz)
    places = stack_layout(
        len(positions),
        bounds=seen_bounds(assets, names, positions, wxyz),
        eyes=eyes.reshape(-1, 3),
        cameras=visual.cameras,
    )
    path = folder / "stacked.usda"
    write_stacked_stage(
        path,
        assets,
        places,
        names=names,
        positions=positions,
        wxyz=wxyz,
        cameras=visual.cameras,
        light=visual.light,
        dome=visual.dome,
    )
    return path
