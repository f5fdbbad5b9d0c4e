"""Work area: the points of a surface where a robot can pick and place easily. It is kept in the cache."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from nimbus.datagen.arrays import FloatArray, IndexArray
from nimbus.datagen.episode.layout import PhysicalLayout
from nimbus.datagen.errors import InputError
from nimbus.datagen.execute.planning_scenes import planning_scene
from nimbus.datagen.files.atomic import write_atomic
from nimbus.datagen.files.cache import cache_folder, writing
from nimbus.datagen.geometry.transforms import make_transform, quat_from_axis_angle
from nimbus.datagen.plan.ik import solve_ik, trace_line
from nimbus.datagen.random_streams import generator
from nimbus.datagen.robots.robot import Robot
from nimbus.datagen.simulate.newton import NewtonSimulation
from nimbus.datagen.tasks.scene_assets import REACH_CELL
from nimbus.datagen.usd.robot import robot_hash
from nimbus.datagen.usd.stage import StageInfo
from nimbus.datagen.version import versioned_hash

VERSION = 2
"""Version of the work area; raise it when its points change."""
PITCH = 0.02
"""Distance between candidate points [m]."""
_RATE = 15.0
"""Rate of the simulation that determines the reach [Hz]; postures do not depend on it."""
_NEAR, _FAR = 0.5, 0.88
"""Fractions of the largest reach between which objects are placed: nearer to the base, the arm folds up, and farther
away, it cannot lift."""
_AHEAD = 0.6
"""Smallest cosine between the direction to an object and straight ahead; cameras and home postures look ahead."""
_LOW, _RISE = 0.04, 0.18
"""Height of the tool above the surface, and length of the straight lift from this height [m]."""
_STEP = 0.02
"""Distance between two postures along the lift [m]."""
_YAWS = np.radians([0.0, 90.0, 45.0, -45.0])
"""Rotations of the hand about the vertical [rad]; a further half turn gives the same grasp."""
_EASY = 3
"""Smallest number of hand rotations that allow a lift at an accepted point."""
_FEW = 0.4
"""Fraction of the reached points below which lifts are not required, because small arms can lift nowhere."""
_LARGEST_STEP = 0.4
"""Largest joint step between two postures of the lift [rad]; the arm cannot follow larger steps."""
_DOWN = make_transform((0, 0, 0), (0.0, 1.0, 0.0, 0.0))
_ZONES = {"left": (0, 1), "right": (0, -1), "front": (-1, 0), "back": (1, 0)}


@dataclass(frozen=True)
class WorkArea:
    """Points of a surface where a robot works well."""

    surface: str
    points: FloatArray
    """(n, 2) points x, y in the world [m]."""
    world_R_robot: FloatArray
    """(2, 2) rotation of the robot about the vertical."""
    base: FloatArray
    """(2,) position of the robot in the world [m]."""

    @property
    def middle(self) -> FloatArray:
        """Center of the points (2,) [m]."""
        return self.points.mean(axis=0)

    def zone(self, place: str) -> FloatArray:
        """Return the points (n, 2) of a part of the area, such as ``left``; all points for an empty name."""
        from_middle = (self.points - self.middle) @ self.world_R_robot
        if place == "middle":
            order = np.linalg.norm(from_middle, axis=1)
        elif place:
            order = -from_middle @ np.array(_ZONES[place], dtype=float)
        else:
            return self.points
        return self.points[order <= np.quantile(order, 0.4)]


def find_work_area(stage: StageInfo, robot: Robot, *, surface: str = "table") -> WorkArea:
    """Find the area of a surface where a robot works well; the result is kept in the cache.

    Raises:
        InputError: The scene has no such surface, or the robot cannot reach it.
    """
    if surface not in stage.surfaces:
        raise InputError(f"no surface '{surface}'", where=f"scene '{stage.name}'", instead="name another scene")
    base, turn = np.array(stage.robot_position[:2]), stage.robot_wxyz
    yaw = 2 * np.arctan2(turn[3], turn[0])
    world_R_robot = np.array([[np.cos(yaw), -np.sin(yaw)], [np.sin(yaw), np.cos(yaw)]])
    low, high = (np.array(corner[:2]) for corner in (stage.surfaces[surface].lower, stage.surfaces[surface].upper))
    key = versioned_hash(f"{stage.path} {stage.content_hash} {robot_hash(robot)} {surface}".encode(), VERSION)
    path = cache_folder("reach") / f"{key}.json"
    if (points := _kept(path)) is None:
        points = _reached(stage, robot, surface, low, high).round(4)  # as in the cache, so that later runs draw equally
        with writing(path.parent):
            write_atomic(path, json.dumps(points.tolist()), durable=False, shared=True)
    distance = np.linalg.norm(points - base, axis=1) if len(points) else np.zeros(0)
    ahead = (points - base) @ world_R_robot[:, 0] if len(points) else np.zeros(0)
    limits = (_NEAR * distance.max(), _FAR * distance.max()) if len(points) else (0.0, 0.0)
    points = points[(distance > limits[0]) & (distance < limits[1]) & (ahead > _AHEAD * distance)]
    if not len(points):
        what = f"robot '{robot.name}' cannot work anywhere on the surface"
        raise InputError(what, where=f"scene '{stage.name}': {surface}", instead="use another robot or scene")
    return WorkArea(surface, points, world_R_robot, base)


def _kept(path: Path) -> FloatArray | None:
    """Return cached points (n, 2) [m]; None if the file is missing or damaged."""
    try:
        points = np.array(json.loads(path.read_bytes()), dtype=float)
    except (OSError, ValueError, TypeError, RecursionError):
        return None
    is_list = points.ndim == 2 and points.shape[1] == 2 or points.shape == (0,)
    return points if is_list and np.isfinite(points).all() else None


def _reached(stage: StageInfo, robot: Robot, surface: str, low: FloatArray, high: FloatArray) -> FloatArray:
    """Return points (n, 2) of a grid that are in easy reach, together with all neighboring cells [m]."""
    reached, rising = _count_turns(stage, robot, stage.surfaces[surface].upper[2], low, high)
    cells = rising >= _EASY
    if cells.sum() < _FEW * (reached > 0).sum():
        cells = reached > 0
    inside = np.pad(cells, 1)
    inside = np.all([np.roll(inside, shift, (0, 1)) for shift in np.ndindex(3, 3)], axis=0)[2:, 2:]
    axes = [np.arange(low[axis] + PITCH, high[axis], PITCH) for axis in (0, 1)]
    points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
    index = np.minimum(((points - low) / REACH_CELL).astype(int), np.array(cells.shape) - 1)
    return points[inside[index[:, 0], index[:, 1]]]


def _count_turns(
    stage: StageInfo, robot: Robot, top: float, low: FloatArray, high: FloatArray
) -> tuple[IndexArray, IndexArray]:
    """Count, by cell, the hand rotations in which the hand can point down, and in which it can also lift.

    Returns:
        Two arrays (X, Y), each with the count of the better arm.
    """
    simulation = NewtonSimulation(stage, robot, rate=_RATE)
    simulation.load(PhysicalLayout(objects=()))
    arms = [(planning_scene(simulation, one.name), np.array(one.arm.home)) for one in robot.arms]
    shape = np.maximum(1, np.ceil((high - low) / REACH_CELL - 1e-9).astype(int))
    counts = np.zeros((2, len(arms), *shape), dtype=np.int32)
    for number, (scene, home) in enumerate(arms):
        scene.set_world(simulation.data.qpos)
        for i, j in np.ndindex(*shape):
            x, y = low + (np.array([i, j]) + 0.5) * REACH_CELL
            rng = generator(0, "work area", number, int(i), int(j))
            for yaw in _YAWS:
                goal = make_transform((x, y, top + _LOW), quat_from_axis_angle((0, 0, 1), float(yaw))) @ _DOWN
                postures = solve_ik(scene, goal, seed_q=home, rng=rng, solutions=1)
                if not postures:
                    continue
                goal[2, 3] += _RISE
                way = trace_line(scene, postures[0], goal, step=_STEP, max_joint_step=_LARGEST_STEP)
                counts[:, number, i, j] += (1, way is not None)
    reached, rising = counts.max(axis=1)
    return reached, rising
