"""Signs that the front camera of the tabletop task can read."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from nimbus.datagen.tasks.task import load_task
from tests.support.render_scene import layout, render


def test_every_bin_has_a_sign_that_the_front_camera_sees():
    shown = layout()
    front = load_task("sort_trash").cameras["front"].camera("front")
    frames, renderer = render(
        replace(shown, visual=replace(shown.visual, cameras=(front,))), stack=1, steps=slice(0, 1), shadows=False
    )
    names = list(renderer.labels.instance_names)
    for name in ("recycling", "organic", "residual"):
        pixels = frames["front"].rgb[0][frames["front"].instance[0] == names.index(name)].astype(int)
        # The card is bright and without colour, unlike the bin around it.
        card = (pixels.min(axis=1) > 150) & (np.ptp(pixels, axis=1) < 40)
        assert card.sum() > 100, name
