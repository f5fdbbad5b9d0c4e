"""Behavior of the stand-in's cuRobo: straight motions between postures, and quirks that an adapter must handle.

The stand-in computes with the given URDF, so its answers are as correct as that file. It does not plan around
obstacles.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import mujoco
import numpy as np

from tools.contract.names import Contract
from tools.contract.standin import Behaviour, keys_of

_SRC = "curobo._src."
_SINGLE, _BATCH = _SRC + "motion.motion_planner:MotionPlanner", _SRC + "motion.motion_planner_batch:BatchMotionPlanner"
_CONFIG = _SRC + "motion.motion_planner_cfg:MotionPlannerCfg"
_TRAJOPT_CONFIG = _SRC + "solver.solver_trajopt_cfg:TrajOptSolverCfg"
_TRAJOPT = _SRC + "solver.solver_trajopt:TrajOptSolver"
_RESULT = _SRC + "solver.solver_trajopt_result:TrajOptSolverResult"
_STATE, _POSE = _SRC + "state.state_joint:JointState", _SRC + "types.pose:Pose"
_GOAL, _DEVICE = _SRC + "types.tool_pose:GoalToolPose", _SRC + "types.device_cfg:DeviceCfg"
_MODEL = _SRC + "robot.kinematics.kinematics:Kinematics"
_MODEL_CONFIG = _SRC + "robot.kinematics.kinematics_cfg:KinematicsCfg"
_KINEMATICS = _SRC + "robot.types.kinematics_params:KinematicsParams"
_CHECKER = _SRC + "geom.collision.collision_scene:SceneCollision"
_IK_CONFIG = _SRC + "solver.solver_ik_cfg:IKSolverCfg"

ROBOT_KEYS = {
    *("asset_root_path", "base_link", "collision_link_names", "collision_sphere_buffer", "collision_spheres"),
    *("cspace", "extra_collision_spheres", "extra_links", "format_version", "grasp_contact_link_names"),
    *("lock_joints", "mesh_link_names", "self_collision_buffer", "self_collision_ignore", "tool_frames", "urdf_path"),
    "use_global_cumul",
}
"""Keys of the bundled robot under ``kinematics``."""
STEPS, BUFFER = 60, 200
"""Number of points of a motion, and of the buffer that contains it."""


class Tensor(np.ndarray):
    """An array that is read like a PyTorch tensor."""

    def detach(self) -> Tensor:
        return self

    def cpu(self) -> Tensor:
        return self

    def numpy(self) -> np.ndarray:
        return np.array(self)


def tensor(values: Any) -> Tensor:
    return np.asarray(values, dtype=np.float32).view(Tensor)


class Curobo:
    """Stand-in for cuRobo on one device.

    Args:
        contract: Contract of cuRobo.
        make: Function that creates an object of a stand-in's class by its key, without calling the constructor.
    """

    def __init__(self, contract: Contract, make: Callable[[str], Any]) -> None:
        self._contract, self._make = contract, make
        self._meshes: dict[str, Any] = {}
        self._set_asked: set[int] = set()

    def behaviour(self) -> Behaviour:
        """Return the behavior of functions and methods by key."""
        played: Behaviour = {f"{_CONFIG}.create": self._configure}
        for planner in (_SINGLE, _BATCH):
            for name in ("update_world", "clear_scene_cache", "plan_cspace", "plan_pose"):
                played[f"{planner}.{name}"] = getattr(self, f"_{name}")
            played[f"{planner}.__init__"] = self._start_planner
            played |= {f"{planner}.{name}": _nothing for name in ("reset_seed", "destroy")}
            played[f"{planner}.joint_names"] = lambda planner: list(planner.played_joints)
            played[f"{planner}.kinematics"] = lambda planner: planner.played_model
            played[f"{planner}.attachment_manager"] = _no_manager
        played[f"{_SINGLE}.warmup"] = lambda planner: _capture(planner, planner.played_sizes[1])
        played[f"{_BATCH}.warmup"] = lambda planner: _capture(planner, 1)
        played[f"{_CHECKER}.load_collision_model"] = self._load_world
        played[f"{_KINEMATICS}.update_link_spheres"] = _update_spheres
        played[f"{_STATE}.from_numpy"] = self._state
        played[f"{_POSE}.from_numpy"] = self._pose
        played[f"{_GOAL}.from_poses"] = self._goals
        played[f"{_DEVICE}.to_device"] = lambda device, data_tensor: tensor(data_tensor)
        for dataclass in ("Cuboid", "Mesh", "SceneCfg"):
            played[f"{_SRC}geom.types:{dataclass}.__init__"] = self._keep
        return played

    def _keep(self, thing: Any, *args: Any, **fields: Any) -> None:
        """Initialize a dataclass."""
        params = (self._contract.member(keys_of(type(thing))[0], "__init__") or {})["params"]
        for (name, _, _), value in zip(params, args, strict=False):
            setattr(thing, name, value)
        for name, value in fields.items():
            setattr(thing, name, value)

    # Configuration

    def _configure(self, robot: dict[str, Any], **options: Any) -> Any:
        config = self._make(_CONFIG)
        config.trajopt_solver_config = self._make(_TRAJOPT_CONFIG)
        config.trajopt_solver_config.interpolation_dt = 0.025
        config.ik_solver_config = self._make(_IK_CONFIG)
        config.ik_solver_config.exit_early = True
        config.played_robot, config.played_options = robot["robot_cfg"]["kinematics"], options
        scenes, batch = options.get("scene_model"), options.get("max_batch_size", 1)
        if options.get("multi_env") and (not isinstance(scenes, list) or len(scenes) != batch):
            raise ValueError("an environment for each query needs a list with as many scenes")
        if unknown := set(config.played_robot) - ROBOT_KEYS:
            raise TypeError(f"KinematicsLoaderCfg got unexpected keys {unknown}")
        if "graph_planner_config" in options:
            raise ValueError("a graph planner is always configured")
        return config

    def _start_planner(self, planner: Any, config: Any) -> None:
        robot = config.played_robot
        planner.config = config
        planner.trajopt_solver = self._make(_TRAJOPT)
        planner.trajopt_solver.config = config.trajopt_solver_config
        planner.played_cache = config.played_options.get("collision_cache")
        planner.played_worlds = len(config.played_options.get("scene_model") or [{}])
        planner.scene_collision_checker = None
        if planner.played_cache is not None:
            planner.scene_collision_checker = checker = self._make(_CHECKER)
            checker.played_cache, checker.played_worlds = planner.played_cache, {}
            checker.played_count = planner.played_worlds
        planner.played_sizes = (
            config.played_options.get("max_batch_size", 1),
            config.played_options.get("max_goalset", 1),
        )
        planner.played_captured = 0
        planner.played_arm = _Arm(Path(robot["urdf_path"]).read_text(), robot)
        planner.played_joints = robot["cspace"]["joint_names"]
        planner.played_slots = robot["extra_collision_spheres"]
        kinematics = self._make(_KINEMATICS)
        kinematics.played_slots, kinematics.played_count = planner.played_slots, planner.played_worlds
        kinematics.played_spheres = {}
        planner.played_model = self._make(_MODEL)
        planner.played_model.config = self._make(_MODEL_CONFIG)
        planner.played_model.config.kinematics_config = kinematics

    # The world

    def _update_world(self, planner: Any, scene_cfg: Any) -> None:
        if planner.played_cache is None:
            raise AttributeError("'NoneType' object has no attribute 'load_collision_model'")
        self._load_world(planner.scene_collision_checker, scene_cfg)

    def _load_world(self, checker: Any, scene_cfg: Any, env_idx: int = 0) -> None:
        if not 0 <= env_idx < checker.played_count:
            raise IndexError(f"environment {env_idx} of {checker.played_count}")
        checker.played_worlds[env_idx] = scene_cfg
        for kind in ("cuboid", "mesh"):
            obstacles = getattr(scene_cfg, kind) or []
            if len(obstacles) > checker.played_cache.get(kind, 0):
                raise ValueError(f"Cannot add {kind}, cache is full ({checker.played_cache.get(kind, 0)})")
            if len({obstacle.name for obstacle in obstacles}) < len(obstacles):
                raise ValueError(f"{kind} already exists")
            for obstacle in obstacles:
                if len(obstacle.pose) != 7 or abs(np.linalg.norm(obstacle.pose[3:]) - 1.0) > 1e-6:
                    raise ValueError(f"{obstacle.name} has no pose")
        for mesh in scene_cfg.mesh or []:
            known = self._meshes.setdefault(mesh.name, (mesh.vertices, mesh.faces))
            if known != (mesh.vertices, mesh.faces):
                raise AssertionError(f"another mesh is known by the name {mesh.name} and would be used instead")
        if any(getattr(scene_cfg, kind) for kind in ("sphere", "capsule", "cylinder")):
            raise AssertionError("spheres, capsules and cylinders of a scene are ignored")

    def _clear_scene_cache(self, planner: Any) -> None:
        self._meshes.clear()

    # Queries

    def _state(self, joint_names: list[str], position: np.ndarray, **_: Any) -> Any:
        state = self._make(_STATE)
        state.position, state.joint_names = tensor(position), list(joint_names)
        return state

    def _pose(self, position: np.ndarray, quaternion: np.ndarray, **_: Any) -> Any:
        pose = self._make(_POSE)
        pose.position, pose.quaternion = tensor(position), tensor(quaternion)
        return pose

    def _goals(
        self, pose_dict: dict[str, Any], ordered_tool_frames: list[str] | None = None, num_goalset: int = 1
    ) -> Any:
        goals = self._make(_GOAL)
        (frame,) = ordered_tool_frames or list(pose_dict)
        position, quaternion = pose_dict[frame].position, pose_dict[frame].quaternion
        goals.tool_frames = [frame]
        goals.position = position.reshape(-1, 1, 1, num_goalset, 3)
        goals.quaternion = quaternion.reshape(-1, 1, 1, num_goalset, 4)
        return goals

    def _plan_pose(self, planner: Any, goal_tool_poses: Any, current_state: Any, **_: Any) -> Any:
        batch, slots = planner.played_sizes
        starts = _starts(current_state, batch)
        if goal_tool_poses.position.shape[0] != batch or goal_tool_poses.position.shape[3] != slots:
            raise ValueError(f"shape {goal_tool_poses.position.shape} of a planner for {batch} x {slots}")
        if goal_tool_poses.tool_frames != planner.played_arm.tool_frames:
            raise ValueError(f"Missing poses for links: {planner.played_arm.tool_frames}")
        if slots > 1 and id(planner) not in self._set_asked:
            self._set_asked.add(id(planner))
            return None
        _capture(planner, slots)
        ends: list[np.ndarray | None] = []
        chosen: list[int] = []
        for start, positions, quaternions in zip(
            starts, goal_tool_poses.position[:, 0, 0], goal_tool_poses.quaternion[:, 0, 0], strict=True
        ):
            solved = [planner.played_arm.reach(start, *goal) for goal in zip(positions, quaternions, strict=True)]
            index = next((number for number, q in enumerate(solved) if q is not None), 0)
            ends.append(solved[index])
            chosen.append(index)
        if all(end is None for end in ends):
            return None
        return self._result(planner, starts, ends, chosen)

    def _plan_cspace(self, planner: Any, goal_state: Any, current_state: Any, **_: Any) -> Any:
        batch, _ = planner.played_sizes
        _capture(planner, 1)
        starts, ends = _starts(current_state, batch), _starts(goal_state, batch)
        return self._result(planner, starts, list(ends), [0] * batch)

    def _result(self, planner: Any, starts: np.ndarray, ends: list[np.ndarray | None], chosen: list[int]) -> Any:
        """Return a result with the joints in another order and a buffer longer than the motion, as cuRobo does."""
        s = np.linspace(0.0, 1.0, STEPS)[:, None]
        shape = s**3 * (10 - 15 * s + 6 * s**2)
        motions = np.zeros((len(starts), 1, BUFFER, starts.shape[1]))
        for index, (start, end) in enumerate(zip(starts, ends, strict=True)):
            motions[index, 0, :STEPS] = start if end is None else start + shape * (end - start)
        result = self._make(_RESULT)
        result.success = np.array([[end is not None] for end in ends]).view(Tensor)
        result.goalset_index = np.array(chosen)[:, None].view(Tensor)
        result.position_error = result.rotation_error = tensor(np.zeros((len(starts), 1)))
        result.interpolated_last_tstep = np.full(len(starts), STEPS).view(Tensor)
        result.total_time = 0.01
        result.interpolated_trajectory = self._make(_STATE)
        result.interpolated_trajectory.position = tensor(motions[..., ::-1])
        result.interpolated_trajectory.joint_names = list(planner.played_joints)[::-1]
        return result


def _capture(planner: Any, goals: int) -> bool:
    """Fix the size of goal sets at the first motion.

    Later, smaller sets are filled up, and larger sets are an error.
    """
    if goals > (planner.played_captured or goals):
        raise ValueError("CUDA graph reset is not available.")
    planner.played_captured = planner.played_captured or goals
    return True


def _nothing(*args: Any, **kwargs: Any) -> bool:
    return True


def _starts(state: Any, batch: int) -> np.ndarray:
    if state.position.ndim > 2:
        raise ValueError(f"current_state must be a 2D tensor, got shape: {state.position.shape}")
    if len(state.position) != batch:
        raise ValueError(f"{len(state.position)} states of a planner for {batch}")
    return np.asarray(state.position, dtype=float)


def _no_manager(planner: Any) -> Any:
    raise AttributeError("'TrajOptSolver' object has no attribute 'attachment_manager'")


def _update_spheres(
    kinematics: Any,
    link_name: str,
    sphere_position_radius: Tensor,
    start_sph_idx: int = 0,
    config_idx: int | None = None,
) -> None:
    """Change the spheres of one configuration; without a number, change those of all configurations."""
    if start_sph_idx + len(sphere_position_radius) > kinematics.played_slots[link_name]:
        raise ValueError(f"{len(sphere_position_radius)} spheres of {kinematics.played_slots[link_name]}")
    if config_idx is not None and not 0 <= config_idx < kinematics.played_count:
        raise IndexError(f"configuration {config_idx} of {kinematics.played_count}")
    for number in range(kinematics.played_count) if config_idx is None else (config_idx,):
        kinematics.played_spheres[number] = np.array(sphere_position_radius)


class _Arm:
    """A URDF's robot in MuJoCo."""

    def __init__(self, urdf: str, robot: dict[str, Any]) -> None:
        from nimbus.datagen.plan.arm import ArmKinematics, arm_model

        model = load_urdf(urdf)
        names = {model.body(index).name for index in range(model.nbody)}
        for key in ("tool_frames", "collision_link_names"):
            if unknown := set(robot[key]) - names:
                raise KeyError(f"{key} has {unknown}, which is not in the URDF")
        if robot["base_link"] != model.body(1).name:
            raise KeyError(robot["base_link"])
        (tool,) = self.tool_frames = robot["tool_frames"]
        joints = robot["cspace"]["joint_names"]
        self._arm = ArmKinematics(arm_model(model, arm_joints=joints, tool_body=tool, body_T_tool=np.eye(4)))

    def reach(self, start: np.ndarray, position: np.ndarray, wxyz: np.ndarray) -> np.ndarray | None:
        """Return a posture with the tool at a pose; None if none was found."""
        pose, rotation = np.eye(4), np.empty(9)
        mujoco.mju_quat2Mat(rotation, np.asarray(wxyz, dtype=float))
        pose[:3, :3], pose[:3, 3] = rotation.reshape(3, 3), position
        return self._arm.solve(pose, start)


def load_urdf(urdf: str) -> mujoco.MjModel:
    """Return MuJoCo's model of a URDF, without masses."""
    compiler = '<mujoco><compiler fusestatic="false" strippath="false"/></mujoco>'
    spec = mujoco.MjSpec.from_string(urdf.replace("</robot>", compiler + "</robot>"))
    for body in spec.bodies:
        body.mass, body.inertia, body.explicitinertial = 1e-3, (1e-6, 1e-6, 1e-6), True
    return spec.compile()
