"""Hints for the operator, in terms of the keys."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from nimbus.datagen.episode.trajectory import Outcome, Reason
from nimbus.datagen.geometry.mujoco_library import mujoco
from nimbus.datagen.geometry.transforms import make_transform, quat_from_matrix
from nimbus.datagen.success.placement import On
from nimbus.datagen.tasks.steps import Step
from nimbus.datagen.teleoperate.operator_hints import (
    describe_failure,
    tool_heights,
    turn_to_sides,
    way_to_object,
    way_to_region,
)


def hint_at(x: float, y: float, held: str = "") -> str:
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
    return way_to_region(environment, {"arm": held} if held else {})


def test_way_to_the_goal_names_axes_and_keys():
    assert hint_at(0.55, -0.139) == "move cube_0 3.9 cm toward +y (A)"
    assert hint_at(0.62, 0.15) == "move cube_0 2.0 cm toward -x (S) and 5.0 cm toward -y (D)"
    assert hint_at(0.55, 0.05) == ""


def test_a_held_object_is_guided_to_the_inside_of_the_goal():
    assert hint_at(0.594, 0.0, held="cube_0") == "move cube_0 0.4 cm toward -x (S)"
    assert hint_at(0.594, 0.0) == "" == hint_at(0.589, 0.0, held="cube_0")


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ((0.111, 0.05, 0.01999), "on: cube_0 has 1.1 cm still to go to goal, 0.0 cm above it"),
        ((0.05, -0.13, 0.1), "on: cube_0 has 3.0 cm still to go to goal, 8.0 cm above it"),
        ((0.0, 0.0, 0.1), "on: cube_0 is 8.0 cm above goal"),
        ((0.0, 0.0, -0.73), "on: cube_0 is 75.0 cm below goal"),
    ],
)
def test_distance_to_a_region_is_told_as_what_is_left(place: tuple[float, float, float], said: str):
    bounds = np.array(place) - 0.02, np.array(place) + 0.02
    region = SimpleNamespace(center=(0.0, 0.0), size=(0.2, 0.2), on="table")
    surface = SimpleNamespace(upper=np.zeros(3))
    stage = SimpleNamespace(surfaces={"table": surface})
    world: Any = SimpleNamespace(
        regions={"goal": region}, bounds=lambda _: bounds, stage=stage, has_fallen=lambda _: False
    )
    failure = On(object=("cube_0",), support="goal").failure(world)
    assert failure is not None and describe_failure(replace(failure, phase="on")) == said


def reach_at(detail: str, *tools: tuple[float, float, float]) -> str:
    """Return the hint for tools at places [m], a cube at (0.5, 0, 0.02) and a second one 20 cm to its left."""
    places = {"cube_0": np.array([0.5, 0.0, 0.02]), "cube_1": np.array([0.5, 0.2, 0.02])}
    arms: dict[str, Any] = {}
    for name, place in zip(("left", "right"), tools, strict=False):
        pose = np.eye(4)
        pose[:3, 3] = place
        arms[name] = SimpleNamespace(tool_pose=lambda pose=pose: pose)
    scene = SimpleNamespace(
        arms=arms,
        objects=places,
        model=lambda name: SimpleNamespace(symmetry="none"),
        bounds=lambda name: (places[name] - 0.02, places[name] + 0.02),
    )
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


@pytest.mark.parametrize(("hand", "box", "angle"), [(0, 12, 12), (0, 80, -10), (170, -5, 5), (30, 30, 0)])
def test_angle_to_the_sides_of_a_box(hand: float, box: float, angle: float):
    """A hand that points down is turned to the nearest side; counterclockwise is positive."""
    down = Rotation.from_euler("ZX", [hand, 180], degrees=True).as_matrix()
    for lying in ("X", "Y"):  # on any side
        turned = Rotation.from_euler("Z" + lying, [box, 90], degrees=True).as_matrix()
        poses = make_transform((0, 0, 0), quat_from_matrix(down)), make_transform((0, 0, 0), quat_from_matrix(turned))
        assert turn_to_sides(*poses) == pytest.approx(angle)


def test_tilted_box_has_no_angle():
    tilted = make_transform((0, 0, 0), quat_from_matrix(Rotation.from_euler("x", 45, degrees=True).as_matrix()))
    assert turn_to_sides(np.diag([1.0, -1.0, -1.0, 1.0]), tilted) == 0.0


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
