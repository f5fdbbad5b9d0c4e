"""Contacts that the planning scene counts."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nimbus.datagen.plan.scene import PlanningScene
from tests.support.panda_table import HOME, make_scene, start_positions, table_model, top_down

MODEL = table_model()
CLEAR = (0.63, 0.05)
"""A position on the table without objects nearby."""
NEAR, EXACT = make_scene(MODEL), make_scene(MODEL, margin=0.0)
postures = st.lists(st.floats(0.0, 1.0), min_size=7, max_size=7).map(
    lambda shares: NEAR.limits[:, 0] + np.array(shares) * np.ptp(NEAR.limits, axis=1)
)


def reach(scene: PlanningScene, x: float, y: float, z: float) -> np.ndarray:
    q = scene.arm.solve(top_down(x, y, z), HOME)
    assert q is not None
    return q


def test_home_is_free_and_away_from_everything(scene: PlanningScene) -> None:
    assert not scene.in_collision(HOME)
    assert scene.clearance(HOME, reach=0.05) == 0.05


def test_fingers_in_the_table_are_in_contact_with_the_world(scene: PlanningScene) -> None:
    q = reach(scene, *CLEAR, 0.002)
    pair = scene.first_contact(q)
    assert pair is not None and "world" in pair and any("finger" in name for name in pair)
    assert scene.touches(q) and scene.clearance(q) < 0


def test_the_margin_is_in_metres_between_surfaces(scene: PlanningScene) -> None:
    fingertip = 0.1129 - 0.1034
    assert scene.in_collision(reach(scene, *CLEAR, fingertip + 0.003))
    assert not scene.touches(reach(scene, *CLEAR, fingertip + 0.003))
    assert not scene.in_collision(reach(scene, *CLEAR, fingertip + 0.005))
    assert scene.clearance(reach(scene, *CLEAR, fingertip + 0.01)) == pytest.approx(0.01, abs=2e-4)


@settings(max_examples=200)
@given(postures)
def test_touching_is_what_a_scene_without_margin_sees(q: np.ndarray) -> None:
    assert NEAR.touches(q) == EXACT.in_collision(q)
    assert NEAR.in_collision(q) or not EXACT.in_collision(q)


def test_an_arm_folded_into_itself_is_in_collision(scene: PlanningScene) -> None:
    folded = np.array([0.0, 0.0, 0.0, -3.05, 0.0, -0.01, 0.0])
    assert scene.first_contact(folded) is not None


@settings(max_examples=50)
@given(postures)
def test_a_held_object_moves_with_the_tool(q: np.ndarray) -> None:
    tool_T_object = np.diag([1.0, -1.0, -1.0, 1.0])
    tool_T_object[:3, 3] = 0.01, 0.002, 0.03
    NEAR.hold("can", tool_T_object)
    try:
        NEAR.in_collision(q)
        np.testing.assert_allclose(NEAR.body_pose("can"), NEAR.tool_pose(q) @ tool_T_object, atol=1e-9)
    finally:
        NEAR.hold(None)


def test_a_held_object_collides_where_the_empty_hand_does_not(scene: PlanningScene) -> None:
    q = reach(scene, *CLEAR, 0.06)
    before = scene.body_pose("can")
    assert not scene.in_collision(q)
    scene.hold("can", np.diag([1.0, -1.0, -1.0, 1.0]) + 0.03 * np.eye(4, k=1)[[3, 3, 2, 3]])
    assert scene.first_contact(q) is not None and "can" in (scene.first_contact(q) or ())
    with scene.allow("can"):
        assert not scene.in_collision(q)
    scene.hold(None)
    assert not scene.in_collision(q)
    np.testing.assert_allclose(scene.body_pose("can"), before)


def test_contact_with_an_allowed_object_is_not_counted(scene: PlanningScene) -> None:
    x, y, z = scene.body_pose("block")[:3, 3]
    q = reach(scene, x, y, z + 0.01)
    q_inside = reach(scene, x, y + 0.03, z + 0.01)
    assert not scene.touches(q)
    assert "block" in (scene.first_contact(q_inside) or ())
    with scene.allow("block"):
        assert not scene.in_collision(q_inside)
    assert scene.in_collision(q_inside)


def test_the_simulators_model_is_left_as_it_was(model: mujoco.MjModel) -> None:
    before = {name: np.array(getattr(model, name)) for name in ("geom_contype", "geom_margin", "body_parentid")}
    scene = make_scene(model)
    scene.hold("can")
    for name, value in before.items():
        np.testing.assert_array_equal(getattr(model, name), value)


def test_objects_are_where_the_simulator_says(model: mujoco.MjModel, scene: PlanningScene) -> None:
    qpos = start_positions(model)
    address = model.joint(model.body("can").jntadr[0]).qposadr[0]
    qpos[address : address + 3] = 0.5, 0.2, 0.3
    q = reach(scene, 0.5, 0.2, 0.32)
    assert not scene.in_collision(q)
    scene.set_world(qpos)
    assert "can" in (scene.first_contact(q) or ())


def test_a_fixture_cannot_be_held(scene: PlanningScene) -> None:
    with pytest.raises(ValueError, match="cannot be held"):
        scene.hold("panda_link1")
