"""Light in imported scenes: scans show the colors of their textures."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from nimbus.datagen.execute.path_planner import plan_drive
from nimbus.datagen.load.navigation_loader import NavigationLoader
from nimbus.datagen.randomize.goals import GoalRandomizer
from nimbus.datagen.render.scene_views import SceneViewRenderer
from nimbus.datagen.stages import Planned, Request
from nimbus.datagen.tasks.task import NavigationTask, parse_any_task
from tests.support.foreign_scenes import room_things, write_glb

TEXT = """
scene: {meshes: scan.glb}
navigate: {to: point, length: [1 m, 5 m]}
cameras: {front: {size: [32, 24], modalities: [rgb]}}
randomize: {lamps: {}}
"""


def test_scans_are_drawn_in_their_colors(tmp_path: Path):
    write_glb(tmp_path / "scan.glb", room_things())
    task = parse_any_task(TEXT, name="scan", folder=tmp_path)
    assert isinstance(task, NavigationTask)
    scene = next(NavigationLoader(task).process(Request(index=0)))
    drawn = next(GoalRandomizer(task, 3).process(scene))
    trajectory = plan_drive(task, scene.assets, drawn.layouts[0].physical)
    item = Planned(scene=scene, layouts=drawn.layouts, trajectory=trajectory)
    shown = next(next(SceneViewRenderer().process(item)).observations).cameras["front"].rgb
    assert np.isin(shown[..., 0], (60, 100, 140, 180)).mean() > 0.8
    assert np.abs(shown[..., 1].astype(int) - 120).max() <= 1
