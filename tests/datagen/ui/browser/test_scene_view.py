"""Views of the browsers that show a scene."""

from __future__ import annotations

from unittest.mock import MagicMock

import numpy as np

from nimbus.datagen.episode.layout import PlacedObject
from nimbus.datagen.objects.libraries import open_library
from nimbus.datagen.render.render_parts import build_object_parts
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


def test_a_cable_bends_with_its_links():
    """The mesh of a cable that was pulled by an end follows the points of physics."""
    model = open_library("cables").model("red_cable", 0)
    cable = PlacedObject(
        name="cable_0",
        group="cable",
        library="cables",
        kind="red_cable",
        variant=0,
        object_class=model.object_class,
        position=(0.5, 0.0, 0.3),
        wxyz=(1.0, 0.0, 0.0, 0.0),
        rest_pose="lying",
        mass=model.mass,
        friction=model.friction,
    )
    (part,) = build_object_parts(cable)
    names = ("cable_0", *dict.fromkeys(part.vertex_bodies))
    positions = np.zeros((2, len(names), 3))
    positions[:, 1:, 0] = np.arange(len(names) - 1) * 0.02
    positions[1, -1] += (0.0, 0.0, 0.1)
    wxyz = np.tile([1.0, 0.0, 0.0, 0.0], (2, len(names), 1))
    motion = PreviewMotion(rate=1.0, names=names, positions=positions, wxyz=wxyz)
    server = MagicMock()
    view = SceneView(server)
    view.show(SceneLook(parts=(part,), layout=None, motion=motion))
    mesh = server.scene.add_mesh_simple.return_value
    assert np.ptp(mesh.vertices[:, 2]) < 0.02
    view.place(motion, 1)
    raised = np.array(part.vertex_bodies) == names[-1]
    assert mesh.vertices[raised, 2].min() > 0.09
    assert mesh.vertices[~raised, 2].max() < 0.02
