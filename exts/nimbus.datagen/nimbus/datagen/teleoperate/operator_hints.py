"""Hints for the operator: the way to a region, the height of a tool, and fingers that cannot close."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.geometry.mujoco_library import mujoco
from nimbus.datagen.success.placement import On
from nimbus.datagen.tasks.steps import Step

if TYPE_CHECKING:
    from nimbus.datagen.policies.environment import Environment

_KEYS = (("+x (W)", "-x (S)"), ("+y (A)", "-y (D)"))
"""Positive and negative direction of the axes x and y of the world, with the keys that move there."""
_NEAR = 0.001
"""Distance below which no direction is named [m]."""
_MOST_HITS = 20
"""Largest number of shapes of the hand that a ray passes through."""
_OPEN = 0.1
"""Part of the gripper's travel that closed fingers may lack; thinner objects than this are not in the hand."""


def way_to_region(environment: Environment) -> str:
    """Return the way from the first object that is beside its region, along the axes of the world; empty if none is."""
    scene = environment.scene
    for condition in environment.task.success:
        if not isinstance(condition, Step) or not isinstance(condition.statement, On):
            continue
        predicate = environment.resolve(condition.statement)
        assert isinstance(predicate, On)
        for name, way in predicate.ways(scene):
            if np.abs(way).max() > _NEAR:
                return f"move {name} {_axes(way)}"
    return ""


def _axes(way: FloatArray) -> str:
    parts = [
        f"{abs(length) * 100:.1f} cm toward {keys[int(length < 0)]}"
        for length, keys in zip(way, _KEYS, strict=True)
        if abs(length) > _NEAR
    ]
    return " and ".join(parts)


def height_below(environment: Environment, arm: str) -> float | None:
    """Return the height of a tool above the surface below it [m]; None above nothing.

    Args:
        environment: Environment of the session.
        arm: Name of the arm; its robot and the object in its hand are passed through.
    """
    scene = environment.scene
    model, data = scene.simulation.model, scene.simulation.data
    tool = scene.arms[arm].tool_pose()[:3, 3]
    root = model.body_rootid[model.body(environment.assets.robot.with_arm(arm).tool.link).id]
    held = scene.find_held().get(arm)
    start, hit = np.array(tool, dtype=float), np.zeros(1, dtype=np.int32)
    for _ in range(_MOST_HITS):
        way = mujoco.mj_ray(model, data, start, np.array([0.0, 0.0, -1.0]), None, 1, -1, hit)
        if way < 0:
            return None
        body = int(model.geom_bodyid[hit[0]])
        name = model.body(body).name
        start[2] -= way
        if model.body_rootid[body] != root and name.split(".")[0] != held:
            return float(tool[2] - start[2])
        start[2] -= 1e-4
    return None


def find_pressing(environment: Environment, gaps: dict[str, float]) -> tuple[str, ...]:
    """Return the arms whose fingers press on something that is no object, and therefore do not close.

    Args:
        environment: Environment of the session.
        gaps: Part of the travel by which the fingers of each arm are wider open than commanded.
    """
    scene = environment.scene
    held = scene.find_held()
    return tuple(
        name
        for name, gap in gaps.items()
        if gap > _OPEN and name not in held and scene.arms[name].touched_by_gripper() - set(scene.objects)
    )
