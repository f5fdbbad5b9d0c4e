"""A planning scene taken apart, for planners that make a model of their own of it."""

from __future__ import annotations

from dataclasses import dataclass

import mujoco

from nimbus.datagen.arrays import FloatArray


@dataclass(frozen=True, kw_only=True)
class SceneParts:
    """A planning scene taken apart, to be read and not to be written; bodies, geoms and joints are numbers."""

    model: mujoco.MjModel
    data: mujoco.MjData
    arm_joints: tuple[int, ...]
    tool_body: int
    body_T_tool: FloatArray
    robot: tuple[int, ...]
    gripper: frozenset[int]
    held: int | None
    pairs: frozenset[tuple[int, int]]
    """Bodies of the robot, the smaller number first, that are tested against each other."""
    world_geoms: tuple[int, ...]
    """Solid geoms that are neither robot nor held nor allowed to be touched."""
    facing_world: frozenset[int]
    """Bodies of the robot, and the held one, that are tested against those."""
