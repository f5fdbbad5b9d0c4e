"""Contact shadows under moving objects in baked scenes, and reused pixels beside them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from nimbus.datagen.render.scene_renderer import SceneRenderer
from tests.datagen.render.raytracer.test_still import MOST, random_moves, rendered
from tests.support.render_scene import layout, stage_and_robot, states


def baked(*, reuse: bool, stack: int = MOST, shadows: bool = True) -> SceneRenderer:
    renderer = SceneRenderer(*stage_and_robot(), light="baked", stack=stack, reuse=reuse, shadows=shadows)
    made = layout(width=76, height=60)
    # With only light from all sides, the darker area beside an object is its contact shadow.
    light = replace(made.visual.light, color=(1e-3, 1e-3, 1e-3))
    renderer.load(replace(made, visual=replace(made.visual, light=light)))
    return renderer


@pytest.fixture(scope="module")
def renderer() -> SceneRenderer:
    return baked(reuse=True)


def test_table_is_darker_where_a_thing_came_to_stand(renderer: SceneRenderer):
    names, positions, wxyz = states()
    away, item = positions[:1].copy(), names.index("items_1")
    away[0, item, 2] += 5.0
    frames = [renderer.render(names, where, wxyz[:1])["front"] for where in (away, positions[:1])]
    table = [frame.instance[0] == renderer.labels.instance_names.index("table") for frame in frames]
    both, change = table[0] & table[1], frames[1].rgb[0].astype(int).sum(-1) - frames[0].rgb[0].astype(int).sum(-1)
    assert change[both].min() < -20 and change[both].max() <= 3
    assert 0 < (change[both] < -6).sum() < 0.15 * both.sum()


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_kept_pixels_are_those_rendered_afresh(seed: int, renderer: SceneRenderer):
    moves = random_moves(seed)
    expected = rendered(baked(reuse=False), *moves)
    for key, images in rendered(renderer, *moves).items():
        np.testing.assert_array_equal(images, expected[key], err_msg=str(key))
