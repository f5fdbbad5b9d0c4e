"""Hints for the operator, in terms of the keys."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from nimbus.datagen.episode.trajectory import Outcome, Reason
from nimbus.datagen.geometry.mujoco_library import mujoco
from nimbus.datagen.success.placement import On
from nimbus.datagen.tasks.steps import Step
from nimbus.datagen.teleoperate.operator_hints import tool_heights, way_to_object, way_to_region


def hint_at(x: float, y: float) -> str:
    """Return the hint for a cube at a place; its goal is 20 cm wide around (0.5, 0.0) [m]."""
    bounds = np.array([x - 0.02, y - 0.02, 0.0]), np.array([x + 0.02, y + 0.02, 0.04])
    region = SimpleNamespace(center=(0.5, 0.0), size=(0.2, 0.2), on="table")
    scene = SimpleNamespace(regions={"goal": region}, bounds=lambda _: bounds)
    condition = On(object="cube_0", support="goal")
    step = Step(name="on", statement=condition, keys=(), kind="predicate")
    environment: Any = SimpleNamespace(
        scene=scene,
        task=SimpleNamespace(success=(step,)),
        resolve=lambda one: one.model_copy(update={"object": ("cube_0",)}),
    )
    return way_to_region(environment)


def test_way_to_the_goal_names_axes_and_keys():
    assert hint_at(0.55, -0.139) == "move cube_0 3.9 cm toward +y (A)"
    assert hint_at(0.62, 0.15) == "move cube_0 2.0 cm toward -x (S) and 5.0 cm toward -y (D)"
    assert hint_at(0.55, 0.05) == ""


def reach_at(detail: str, *tools: tuple[float, float, float]) -> str:
    """Return the hint for tools at places [m], a cube at (0.5, 0, 0.02) and a second one 20 cm to its left."""
    places = {"cube_0": np.array([0.5, 0.0, 0.02]), "cube_1": np.array([0.5, 0.2, 0.02])}
    arms: dict[str, Any] = {}
    for name, place in zip(("left", "right"), tools, strict=False):
        pose = np.eye(4)
        pose[:3, 3] = place
        arms[name] = SimpleNamespace(tool_pose=lambda pose=pose: pose)
    scene = SimpleNamespace(arms=arms, objects=places, bounds=lambda name: (places[name] - 0.02, places[name] + 0.02))
    failure = Outcome(success=False, phase="on", reason=Reason.NOT_ON, detail=detail)
    return way_to_object(cast("Any", SimpleNamespace(scene=scene)), failure)


def test_way_to_the_object_of_the_missing_condition():
    off = "cube_0 is 4.0 cm off goal"
    assert reach_at(off, (0.458, 0.01, 0.14)) == (
        "cube_0 is 4.2 cm toward +x (W), 1.0 cm toward -y (D) and 12.0 cm toward -z (Q) from the tool"
    )
    assert reach_at("cube_1 rests on table, not on cube_0", (0.5, 0.15, 0.02)).startswith("cube_1 is 5.0 cm")
    assert reach_at(off, (0.5, 0.5, 0.02), (0.5, -0.1, 0.02)) == "cube_0 is 10.0 cm toward +y (A) from the right tool"
    assert reach_at("the gripper touches the table", (0.4, 0.0, 0.1)) == ""


@pytest.mark.parametrize("hover", [-5e-6, 2e-6, 5e-5, 0.083])
def test_height_is_above_the_table_below_a_held_object(hover: float):
    model = mujoco.MjModel.from_xml_string(f"""<mujoco><worldbody>
        <geom name="table" type="box" size="0.5 0.5 0.03" pos="0 0 -0.03"/>
        <body name="cube" pos="0 0 {0.02 + hover}"><freejoint/><geom type="box" size="0.02 0.02 0.02"/></body>
        <body name="hand" pos="0 0 0.2"><geom size="0.01"/></body></worldbody></mujoco>""")
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    pose = np.eye(4)
    pose[2, 3] = 0.02 + hover
    arm = SimpleNamespace(robot=SimpleNamespace(tool=SimpleNamespace(link="hand")), tool_pose=lambda: pose)
    scene = SimpleNamespace(simulation=SimpleNamespace(model=model, data=data), arms={"arm": arm})
    environment: Any = SimpleNamespace(scene=scene)
    assert tool_heights(environment, {"arm": "cube"}) == pytest.approx({"arm": 0.02 + hover})
