"""Images of cloth: each step shows the cloth as it is bent in that step, whatever is rendered with it."""

from __future__ import annotations

import numpy as np

from nimbus.datagen.episode.layout import EpisodeKey, Layout
from nimbus.datagen.load.scene_loader import load_assets
from nimbus.datagen.randomize.tabletop import draw_physical, draw_visual
from nimbus.datagen.render.scene_renderer import SceneRenderer
from nimbus.datagen.simulate.newton import NewtonSimulation
from tests.support.task_attempts import load_task


def test_each_step_shows_the_cloth_as_it_is_bent():
    task = load_task("fold_cloth")
    assets = load_assets(task)
    physical = draw_physical(task, assets, seed=0, index=0)
    key = EpisodeKey(task="fold_cloth", task_hash="h", seed=0, index=0)
    visual = draw_visual(task, assets.stage, assets.robot, physical, key=key)
    simulation = NewtonSimulation(assets.stage, assets.robot, rate=task.rate)
    simulation.load(physical)
    poses = []
    for height in (0.0, 0.1):
        simulation.data.qpos[-3:] = (0.0, 0.0, height)
        simulation.restore(simulation.state())
        poses.append((simulation.body_positions(), simulation.body_wxyz()))
    positions, wxyz = (np.stack(values) for values in zip(*poses, strict=True))
    renderer = SceneRenderer(assets.stage, assets.robot)
    renderer.load(Layout(key=key, physical=physical, visual=visual))
    both = renderer.render(simulation.body_names, positions, wxyz)["front"]
    second = renderer.render(simulation.body_names, positions[1:], wxyz[1:], first_step=1)["front"]
    towel = renderer.labels.instance_names.index("towel_0")
    flat, bent = (both.instance == towel).sum(axis=(1, 2))
    assert min(flat, bent) > 200
    assert (both.instance[0] != both.instance[1]).sum() > 50
    assert np.array_equal(both.rgb[1], second.rgb[0])
    assert np.array_equal(both.depth[1], second.depth[0])
