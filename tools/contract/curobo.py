"""The contract of cuRobo V2 in the format of Kit's, so that both share one checker and one stand-in."""

from __future__ import annotations

from typing import Any

_KINDS = {
    "positional_only": "po",
    "positional_or_keyword": "pk",
    "var_positional": "va",
    "keyword_only": "ko",
    "var_keyword": "vk",
}
_HOW = {"instance": "method", "static": "static", "class": "class"}

_SOURCE = "curobo._src."
RETURNS = {
    "motion.motion_planner.MotionPlanner": {
        "attachment_manager": "collision.attachment_manager.AttachmentManager",
        "kinematics": "robot.kinematics.kinematics.Kinematics",
        "plan_cspace": "solver.solver_trajopt_result.TrajOptSolverResult",
        "plan_pose": "solver.solver_trajopt_result.TrajOptSolverResult",
        "scene_collision_checker": "geom.collision.collision_scene.SceneCollision",
        "trajopt_solver": "solver.solver_trajopt.TrajOptSolver",
    },
    "motion.motion_planner_batch.BatchMotionPlanner": {
        "attachment_manager": "collision.attachment_manager.AttachmentManager",
        "kinematics": "robot.kinematics.kinematics.Kinematics",
        "plan_cspace": "solver.solver_trajopt_result.TrajOptSolverResult",
        "plan_pose": "solver.solver_trajopt_result.TrajOptSolverResult",
        "scene_collision_checker": "geom.collision.collision_scene.SceneCollision",
        "trajopt_solver": "solver.solver_trajopt.TrajOptSolver",
    },
    "motion.motion_planner_cfg.MotionPlannerCfg": {
        "create": "motion.motion_planner_cfg.MotionPlannerCfg",
        "ik_solver_config": "solver.solver_ik_cfg.IKSolverCfg",
        "trajopt_solver_config": "solver.solver_trajopt_cfg.TrajOptSolverCfg",
    },
    "collision.attachment_manager.AttachmentManager": {
        "kinematics_params": "robot.types.kinematics_params.KinematicsParams",
    },
    "robot.kinematics.kinematics.Kinematics": {"config": "robot.kinematics.kinematics_cfg.KinematicsCfg"},
    "robot.kinematics.kinematics_cfg.KinematicsCfg": {
        "kinematics_config": "robot.types.kinematics_params.KinematicsParams"
    },
    "solver.solver_trajopt.TrajOptSolver": {"config": "solver.solver_trajopt_cfg.TrajOptSolverCfg"},
    "solver.solver_trajopt_result.TrajOptSolverResult": {"interpolated_trajectory": "state.state_joint.JointState"},
}
"""Classes of members and of return values, which the contract does not state."""


def as_contract(data: dict[str, Any]) -> dict[str, Any]:
    """Convert cuRobo's contract to the format of Kit's."""
    definitions = data["definitions"]
    return {
        "product": "cuRobo",
        "version": data["source"]["describe"],
        "modules": {
            name: {"names": {export: _target(found) for export, found in entry["exports"].items()}}
            for name, entry in data["modules"].items()
        },
        "defs": {_key(name): _definition(name, definitions) for name in definitions},
        "settings": {},
        "annotator_names": {},
    }


def _key(name: str) -> str:
    return ":".join(name.rsplit(".", 1))


def _target(export: dict[str, Any]) -> str:
    return "const" if export["kind"] == "constant" else _key(export["target"])


def _params(signature: dict[str, Any]) -> list[list[Any]]:
    return [[name, _KINDS[kind], has_default] for name, kind, has_default in signature["parameters"]]


def _definition(name: str, definitions: dict[str, Any]) -> dict[str, Any]:
    entry = definitions[name]
    if entry["kind"] != "class":
        return {"kind": "function", "params": _params(entry) if "parameters" in entry else []}
    returns = {member: _key(_SOURCE + kind) for member, kind in RETURNS.get(name.removeprefix(_SOURCE), {}).items()}
    members: dict[str, Any] = {}
    for member, signature in entry.get("methods", {}).items():
        members[member] = {"kind": _HOW[signature["how"]], "params": _params(signature)}
    for member, settable in entry.get("properties", ()):
        members[member] = {"kind": "property", "set": settable}
    attributes = [*entry.get("instance_attributes", ()), *(found[0] for found in entry.get("fields", ()))]
    for member, kind in returns.items():
        members.setdefault(member, {"kind": "attribute"})["returns"] = kind
    if "dataclass" in entry and "__init__" not in members:
        members["__init__"] = {"kind": "method", "params": _fields(name, definitions)}
    return {
        "kind": "class",
        "bases": [_key(base) for base in entry.get("bases", ()) if base in definitions],
        "members": members,
        "attrs": sorted(set(attributes) - set(members)),
        "enum": list(entry.get("enum", ())),
    }


def _fields(name: str, definitions: dict[str, Any]) -> list[list[Any]]:
    """Return the parameters of a dataclass's constructor, with those of its bases first."""
    found: dict[str, list[Any]] = {}
    for base in (*definitions[name].get("bases", ()), name):
        if base == name:
            own = definitions[name].get("fields", ())
            found |= {field[0]: [field[0], "pk", field[1]] for field in own if "no_init" not in field}
        elif base in definitions:
            found |= {params[0]: params for params in _fields(base, definitions)}
    return list(found.values())
