"""Views of the browsers that show a scene."""

from __future__ import annotations

from unittest.mock import MagicMock

import numpy as np

from nimbus.datagen.ui.browser.scene_view import VIEW_AT, VIEW_FROM, SceneView
from nimbus.datagen.ui.scene_look import PreviewMotion, SceneLook

EMPTY = PreviewMotion(rate=1.0, names=(), positions=np.zeros((1, 0, 3)), wxyz=np.zeros((1, 0, 4)))


def test_another_scene_is_looked_at_once():
    """A new scene resets the view; within one scene, a browser keeps the view chosen by its user."""
    camera = MagicMock()
    server = MagicMock(get_clients=lambda: {0: MagicMock(camera=camera)})
    view = SceneView(server)
    home = SceneLook(parts=(), layout=None, motion=EMPTY, view=((0.0, -6.0, 10.0), (0.0, 0.0, 0.0)))
    view.show(home)
    assert (camera.position, camera.look_at) == home.view
    camera.position = (1.0, 1.0, 1.0)
    view.show(home)
    assert camera.position == (1.0, 1.0, 1.0)
    view.show(SceneLook(parts=(), layout=None, motion=EMPTY))
    assert (camera.position, camera.look_at) == (VIEW_FROM, VIEW_AT)
