"""Contents of a planning scene, for planners that build their own model."""

from __future__ import annotations

from dataclasses import dataclass

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.geometry.mujoco_library import mujoco


@dataclass(frozen=True, kw_only=True)
class SceneParts:
    """Read-only contents of a planning scene; bodies, geoms and joints are numbers."""

    model: mujoco.MjModel
    data: mujoco.MjData
    arm_joints: tuple[int, ...]
    tool_body: int
    body_T_tool: FloatArray
    robot: tuple[int, ...]
    gripper: frozenset[int]
    held: int | None
    pairs: frozenset[tuple[int, int]]
    """Pairs of robot bodies that are tested against each other, the smaller number first."""
    world_geoms: tuple[int, ...]
    """Solid geoms outside the robot that are neither held nor allowed to be touched."""
    facing_world: frozenset[int]
    """Bodies of the robot, and the held one, that are tested against the world geoms."""
