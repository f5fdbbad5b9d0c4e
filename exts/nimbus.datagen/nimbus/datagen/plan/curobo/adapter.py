"""Interface to cuRobo V2; it runs in cuRobo's process and never in Nimbus's own.

cuRobo returns no status: ``None`` means that inverse kinematics did not reach a pose, and ``success`` gives every other
result. The sizes of batches, goal sets and obstacle caches are fixed when a planner is built, so there is one planner
for each combination.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from curobo.batch_motion_planner import BatchMotionPlanner
from curobo.motion_planner import MotionPlanner, MotionPlannerCfg
from curobo.scene import Cuboid, Mesh, Scene
from curobo.trajectory_optimizer import TrajectoryOptimizerResult
from curobo.types import DeviceCfg, GoalToolPose, JointState, Pose
from numpy.typing import NDArray

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.plan.curobo.wire import Arrays

POSITION_TOLERANCE, ORIENTATION_TOLERANCE = 0.001, 0.01
"""Tolerances of goals [m], [rad]; cuRobo's defaults are 5 mm and 0.05 rad."""
_STEP = 0.02
"""Time between points of a returned trajectory [s]."""
_ROOM = 16
"""Granularity of obstacle caches, which cannot grow."""
_NO_SPHERE = -100.0
"""Radius of an unused sphere, as cuRobo marks them [m]."""
_MOST_MESHES = 400
"""Number of loaded meshes at which the memory of all is released."""


class CuroboAdapter:
    """cuRobo's planners for one robot.

    Args:
        folder: Folder for the robot's URDF.
        notify: Called before a step that takes long.
    """

    def __init__(self, folder: Path, notify: Callable[[str], None]) -> None:
        self._folder, self._notify = folder, notify
        self._robot: dict[str, Any] = {}
        self._robot_key = ""
        self._joints: list[str] = []
        self._room = (0, 0)
        self._singles: dict[int, MotionPlanner] = {}
        self._batches: dict[tuple[int, int], BatchMotionPlanner] = {}
        self._world_keys: dict[tuple[int, int], list[str]] = {}
        """World of each row, by size of the batch and of the goal set."""
        self._meshes: set[str] = set()
        self._device = DeviceCfg()

    def plan(self, header: dict[str, Any], arrays: Arrays) -> tuple[dict[str, Any], Arrays]:
        """Plan motions from postures to poses or postures, each in its own world with its own object in the hand.

        Args:
            header: ``robot`` (``urdf``, ``config``, ``joints``), ``tool``, ``attached`` (names of links), ``worlds``
                (``key`` and ``mesh_names`` each), ``world_of`` (the world of each query), ``batch`` (size to plan at)
                and ``goal_slots``.
            arrays: ``starts`` (B, J); ``goal_poses`` (B, G, 7) or ``goal_joints`` (B, J); ``attached`` (N, 4) spheres
                with each query's number; ``box_poses``, ``box_sizes`` and ``mesh_poses``, named with the number of
                their world, and ``vertices`` and ``faces``, named with the numbers of their world and mesh.

        Returns:
            For each query ``status``, and on success ``positions`` with the query's number, (H, J), ``step`` [s] apart;
            wall times of loading the worlds and of planning [s].
        """
        self._take_robot(header["robot"])
        worlds = range(len(header["worlds"]))
        self._make_room(
            max(len(arrays[f"box_poses{number}"]) for number in worlds),
            max(len(world["mesh_names"]) for world in header["worlds"]),
        )
        count, batch = len(arrays["starts"]), int(header["batch"])
        slots = int(header["goal_slots"])
        planner = self._single(slots) if batch == 1 else self._batch(batch, slots)
        begin = time.perf_counter()
        self._take_worlds(planner, (batch, slots), header, arrays)
        loaded = time.perf_counter()
        self._attach(planner, header["attached"], arrays, count=count, batch=batch)
        # Equal queries give equal motions only if each starts with the same random state.
        planner.reset_seed()
        start = self._state(_padded(arrays["starts"], batch))
        if "goal_joints" in arrays:
            result = planner.plan_cspace(self._state(_padded(arrays["goal_joints"], batch)), start)
        else:
            goals = self._goals(header["tool"], _padded(arrays["goal_poses"], batch), slots)
            result = planner.plan_pose(goals, start)
            if result is None and slots > 1:
                result = planner.plan_pose(goals, start)  # a goal set was observed to fail once and then succeed
        if result is None:
            return {"queries": [{"status": "no_ik"}] * count}, {}
        answer, found = self._answer(planner, result, count, batch)
        return answer | {"world_time": loaded - begin, "call_time": time.perf_counter() - loaded}, found

    def close(self) -> None:
        """Release the planners' device memory."""
        for single in self._singles.values():
            one: MotionPlanner = single
            one.destroy()
        for batch in self._batches.values():
            many: BatchMotionPlanner = batch
            many.destroy()
        self._singles, self._batches, self._world_keys, self._meshes = {}, {}, {}, set()

    # Planners, one for each robot and size of query

    def _take_robot(self, robot: dict[str, Any]) -> None:
        key = hashlib.sha256(json.dumps(robot, sort_keys=True).encode()).hexdigest()
        if key == self._robot_key:
            return
        self.close()
        path = self._folder / f"{key[:16]}.urdf"
        path.write_text(robot["urdf"])
        kinematics = robot["config"]["robot_cfg"]["kinematics"] | {"urdf_path": str(path)}
        self._robot = {"robot_cfg": {"kinematics": kinematics}}
        self._robot_key, self._joints = key, list(robot["joints"])

    def _make_room(self, boxes: int, meshes: int) -> None:
        """Ensure obstacle caches for these counts, because one obstacle too many would be an error."""
        if boxes <= self._room[0] and meshes <= self._room[1]:
            return
        self.close()
        most = max(boxes, self._room[0], 1), max(meshes, self._room[1], 1)
        self._room = -(-most[0] // _ROOM) * _ROOM, -(-most[1] // _ROOM) * _ROOM

    def _config(self, batch: int, slots: int) -> MotionPlannerCfg:
        config = MotionPlannerCfg.create(
            robot=self._robot,
            # cuRobo makes one world per scene in this list. Each query of a batch needs its own world; a cache alone
            # gives only one.
            scene_model=None if batch == 1 else [{} for _ in range(batch)],
            multi_env=batch > 1,
            # The cache reserves the memory that worlds are loaded into later.
            collision_cache={"cuboid": self._room[0], "mesh": self._room[1]},
            position_tolerance=POSITION_TOLERANCE,
            orientation_tolerance=ORIENTATION_TOLERANCE,
            max_batch_size=batch,
            max_goalset=slots,
        )
        config.trajopt_solver_config.interpolation_dt = _STEP
        if batch > 1:
            # An early end, once every query has a solution, would make each result depend on the others.
            config.ik_solver_config.exit_early = False
        return config

    def _single(self, slots: int) -> MotionPlanner:
        if slots not in self._singles:
            self._notify("warm-up")
            planner = MotionPlanner(self._config(1, slots))
            planner.warmup()
            self._singles[slots] = planner
        return self._singles[slots]

    def _batch(self, batch: int, slots: int) -> BatchMotionPlanner:
        if (batch, slots) not in self._batches:
            self._notify("warm-up")
            # cuRobo's warm-up plans to postures, which would fix the size of goal sets at one; the first query is the
            # warm-up.
            self._batches[batch, slots] = BatchMotionPlanner(self._config(batch, slots))
        return self._batches[batch, slots]

    # State that changes from query to query

    def _take_worlds(
        self,
        planner: MotionPlanner | BatchMotionPlanner,
        sizes: tuple[int, int],
        header: dict[str, Any],
        arrays: Arrays,
    ) -> None:
        """Load the worlds that changed, each as a whole: single obstacles cannot be moved or disabled reliably."""
        world_of: list[int] = header["world_of"]
        wanted = [header["worlds"][number]["key"] for number in world_of]
        wanted += wanted[-1:] * (sizes[0] - len(wanted))  # rows that fill up a batch repeat the last query
        known = self._world_keys.setdefault(sizes, [""] * sizes[0])
        if known == wanted:
            return
        if len(self._meshes) > _MOST_MESHES:
            planner.clear_scene_cache()
            self._meshes, known = set(), [""] * sizes[0]
        for row, key in enumerate(wanted):
            if known[row] == key:
                continue
            scene = _scene(world_of[min(row, len(world_of) - 1)], header, arrays)
            if sizes[0] == 1:
                planner.update_world(scene)
            else:
                planner.scene_collision_checker.load_collision_model(scene, env_idx=row)
        self._world_keys[sizes] = wanted
        self._meshes |= {name for world in header["worlds"] for name in world["mesh_names"]}

    def _attach(
        self, planner: MotionPlanner | BatchMotionPlanner, link: str, arrays: Arrays, *, count: int, batch: int
    ) -> None:
        """Update the spheres attached to the tool, given in the link's frame.

        cuRobo's attachment manager is not used, because planners of version 0.8.0 do not find it.
        """
        # All parts of a planner share these parameters; its own ``disable_link_collision`` relies on that, too.
        parameters = planner.kinematics.config.kinematics_config
        slots = self._robot["robot_cfg"]["kinematics"]["extra_collision_spheres"][link]
        for row in range(batch):
            spheres = arrays[f"attached{min(row, count - 1)}"]
            unused = np.tile([0.0, 0.0, 0.0, _NO_SPHERE], (slots - len(spheres), 1))
            filled = self._device.to_device(np.vstack([spheres, unused]))
            parameters.update_link_spheres(link, filled, config_idx=row)

    def _state(self, positions: FloatArray) -> JointState:
        """Return the joint state of positions (B, J); cuRobo accepts exactly two dimensions."""
        state: JointState = JointState.from_numpy(joint_names=self._joints, position=positions)
        return state

    def _goals(self, tool: str, poses: FloatArray, slots: int) -> GoalToolPose:
        """Return goal sets of the size that the planner was built for, padded with the last goal."""
        last = np.repeat(poses[:, -1:], slots - poses.shape[1], axis=1)
        flat = np.concatenate([poses, last], axis=1).reshape(-1, 7)
        pose: Pose = Pose.from_numpy(position=flat[:, :3], quaternion=flat[:, 3:])
        goals: GoalToolPose = GoalToolPose.from_poses({tool: pose}, ordered_tool_frames=[tool], num_goalset=slots)
        return goals

    # Responses

    def _answer(
        self,
        planner: MotionPlanner | BatchMotionPlanner,
        result: TrajectoryOptimizerResult,
        count: int,
        batch: int,
    ) -> tuple[dict[str, Any], Arrays]:
        step = float(planner.trajopt_solver.config.interpolation_dt)
        success = _numbers(result.success).reshape(batch, -1)[:, 0]
        trajectory = result.interpolated_trajectory
        names: list[str] = list(trajectory.joint_names or planner.joint_names)
        order = [names.index(name) for name in self._joints]
        positions = _numbers(trajectory.position)
        positions = positions.reshape(batch, -1, *positions.shape[-2:])[:, 0][..., order]
        ends = _numbers(result.interpolated_last_tstep).reshape(batch, -1)[:, 0]
        errors = {
            name: _numbers(value).reshape(batch, -1)[:, 0]
            for name, value in (("position_error", result.position_error), ("rotation_error", result.rotation_error))
            if value is not None
        }
        index = None if result.goalset_index is None else _numbers(result.goalset_index).reshape(batch, -1)[:, 0]
        queries: list[dict[str, Any]] = []
        found: Arrays = {}
        for query in range(count):
            status = "success" if bool(success[query]) else "no_path"
            told: dict[str, Any] = {name: float(values[query]) for name, values in errors.items()}
            told |= {"status": status, "goal_index": 0 if index is None else int(index[query])}
            queries.append(told)
            if status == "success":
                found[f"positions{query}"] = np.asarray(positions[query, : int(ends[query])], dtype=float)
        return {"queries": queries, "step": step, "time": float(result.total_time or 0.0)}, found


def _scene(number: int, header: dict[str, Any], arrays: Arrays) -> Scene:
    """Return one world of a request."""
    cuboids = [
        Cuboid(name=f"box{index}", pose=pose.tolist(), dims=size.tolist())
        for index, (pose, size) in enumerate(
            zip(arrays[f"box_poses{number}"], arrays[f"box_sizes{number}"], strict=True)
        )
    ]
    meshes = [
        Mesh(
            name=name,
            pose=arrays[f"mesh_poses{number}"][index].tolist(),
            vertices=arrays[f"vertices{number}_{index}"].tolist(),
            faces=arrays[f"faces{number}_{index}"].tolist(),
        )
        for index, name in enumerate(header["worlds"][number]["mesh_names"])
    ]
    return Scene(cuboid=cuboids, mesh=meshes)


def _padded(rows: FloatArray, count: int) -> FloatArray:
    """Pad rows to ``count`` by repeating the last one: a planner accepts only batches of the size it was built for."""
    return np.concatenate([rows, np.repeat(rows[-1:], count - len(rows), axis=0)])


def _numbers(tensor: Any) -> NDArray[Any]:
    """Convert a tensor on any device to an array."""
    return np.asarray(tensor.detach().cpu().numpy())
