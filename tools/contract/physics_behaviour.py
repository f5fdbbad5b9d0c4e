"""Physics of Isaac Sim in the stand-in: joints that are where they were told to go, bodies where the stage has them."""

from __future__ import annotations

from typing import Any

import numpy as np

from tools.contract import warp_arrays
from tools.contract.warp_arrays import Warp

_PRIMS = "isaacsim.core.experimental.prims.impl"
_UTILS = "isaacsim.core.experimental.utils.impl"
_MANAGER = "isaacsim.core.simulation_manager.impl.simulation_manager:SimulationManager"


def warp(values: Any) -> Warp:
    return warp_arrays.warp(values, float)


class IsaacPhysics:
    """Joints that are where they were told to go, after one step; bodies where the stage has them."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.targets: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {}
        """Joints and where they are to be, by the prim of the articulation."""
        self.speeds: list[np.ndarray] = []
        self.stage: Any = None
        self.joints: dict[str, dict[str, np.ndarray]] = {}
        """Positions and velocities by the prim of the articulation."""
        self.bodies: dict[str, tuple[np.ndarray, np.ndarray]] = {}
        self.velocities: list[tuple[np.ndarray, np.ndarray]] = []

    def behaviour(self) -> dict[str, Any]:
        def noted(name: str) -> Any:
            return lambda *_, **options: self.done.append(name + "".join(f" {k}={v}" for k, v in options.items()))

        def opened(path: str) -> tuple[bool, Any]:
            from pxr import Usd

            self.done.append("open")
            self.stage = Usd.Stage.Open(path)
            return True, self.stage

        def prims(prim: Any, paths: Any, **_: Any) -> None:
            prim.played_paths = [paths] if isinstance(paths, str) else list(paths)
            assert all(self.stage.GetPrimAtPath(path) for path in prim.played_paths)

        def rigid(prim: Any, paths: Any, **_: Any) -> None:
            from pxr import UsdPhysics

            prims(prim, paths)
            made = [self.stage.GetPrimAtPath(path).HasAPI(UsdPhysics.RigidBodyAPI) for path in prim.played_paths]
            assert made, "Isaac Sim refuses a view of nothing"
            assert all(made), "what stands would become a body that falls"

        def articulation(prim: Any, paths: Any, **_: Any) -> None:
            from pxr import Usd, UsdPhysics

            prims(prim, paths)
            below = Usd.PrimRange(self.stage.GetPrimAtPath(paths))
            roots = [str(found.GetPath()) for found in below if found.HasAPI(UsdPhysics.ArticulationRootAPI)]
            assert roots == [paths], "a root on a link floats"
            assert "initialize" in self.done, "joints have no names before"
            prim.played_names = dofs(self.stage, paths)
            self.joints[paths] = {name: np.zeros(len(prim.played_names)) for name in ("positions", "velocities")}

        def initialize() -> None:
            self.done.append("initialize")
            self.bodies["/World/objects/items_0"] = np.array([0.5, 0.0, -1.0]), np.array([0.0, 1.0, 0.0, 0.0])

        def poses(prim: Any) -> tuple[Warp, Warp]:
            from pxr import UsdGeom

            cache = UsdGeom.XformCache()
            found = [np.array(cache.GetLocalToWorldTransform(self.stage.GetPrimAtPath(p))).T for p in prim.played_paths]
            turned = np.tile([1.0, 0, 0, 0], (len(found), 1))
            given = [self.bodies.get(path) for path in prim.played_paths]
            places = [pose[0] if pose else matrix[:3, 3] for pose, matrix in zip(given, found, strict=True)]
            return warp(places), warp([pose[1] if pose else turn for pose, turn in zip(given, turned, strict=True)])

        def placed(prim: Any, places: Any, turns: Any) -> None:
            self.bodies |= dict(zip(prim.played_paths, zip(places, turns, strict=True), strict=True))

        def set_joints(name: str) -> Any:
            return lambda prim, values, *, dof_indices: self.joints[prim.played_paths[0]][name].__setitem__(
                dof_indices.astype(int), values[0]
            )

        def get_joints(name: str) -> Any:
            return lambda prim, *, dof_indices: warp(
                self.joints[prim.played_paths[0]][name][dof_indices.astype(int)][None]
            )

        def command(prim: Any, values: Any, *, dof_indices: Any) -> None:
            self.targets.setdefault(prim.played_paths[0], []).append((dof_indices.astype(int), values[0]))

        def step(*, steps: int) -> None:
            assert steps == 1
            for place, told in self.targets.items():
                self.joints[place]["positions"][told[-1][0]] = told[-1][1]

        zeros = lambda prim: (warp(np.zeros((len(prim.played_paths), 3))),) * 2  # noqa: E731
        arm, body = f"{_PRIMS}.articulation:Articulation", f"{_PRIMS}.rigid_prim:RigidPrim"
        return {
            f"{_UTILS}.app:update_app": lambda **_: None,
            f"{_UTILS}.app:play": noted("play"),
            f"{_UTILS}.app:stop": noted("stop"),
            f"{_UTILS}.stage:open_stage": opened,
            f"{_UTILS}.stage:is_stage_loading": lambda: False,
            f"{_UTILS}.stage:get_current_stage": lambda: self.stage,
            f"{_MANAGER}.assets_loading": lambda: False,
            f"{_MANAGER}.setup_simulation": noted("setup"),
            f"{_MANAGER}.initialize_physics": initialize,
            f"{_MANAGER}.step": step,
            f"{_PRIMS}.prim:Prim.__init__": prims,
            f"{arm}.__init__": articulation,
            f"{body}.__init__": rigid,
            f"{arm}.dof_names": lambda prim: prim.played_names,
            f"{arm}.get_dof_indices": lambda prim, names: warp([prim.played_names.index(name) for name in names]),
            f"{arm}.set_dof_positions": set_joints("positions"),
            f"{arm}.set_dof_velocities": set_joints("velocities"),
            f"{arm}.get_dof_positions": get_joints("positions"),
            f"{arm}.get_dof_velocities": get_joints("velocities"),
            f"{arm}.set_dof_velocity_targets": lambda _, values, *, dof_indices: self.speeds.append(values[0]),
            f"{arm}.set_dof_position_targets": command,
            f"{body}.get_world_poses": poses,
            f"{body}.set_world_poses": placed,
            f"{body}.get_velocities": zeros,
            f"{body}.set_velocities": lambda _, linear, angular: self.velocities.append((linear, angular)),
        }


def dofs(stage: Any, place: str) -> list[str]:
    """Joints that move, of the articulation that begins at a prim, in an order that is not ours."""
    from pxr import Usd, UsdPhysics

    def ends(prim: Any) -> list[Any]:
        joint: Any = UsdPhysics.Joint(prim)
        found = [*joint.GetBody0Rel().GetTargets(), *joint.GetBody1Rel().GetTargets()]
        return [end for end in found if stage.GetPrimAtPath(end).HasAPI(UsdPhysics.RigidBodyAPI)]

    root = stage.GetPrimAtPath(place)
    joints = [prim for prim in stage.Traverse() if prim.IsA(UsdPhysics.Joint)]
    bodies = [prim.GetPath() for prim in Usd.PrimRange(root) if prim.HasAPI(UsdPhysics.RigidBodyAPI)]
    reached = set(ends(root) if root in joints else bodies)
    own: list[Any] = []
    while further := [prim for prim in joints if prim not in own and reached.intersection(ends(prim))]:
        own += further
        reached.update(end for prim in further for end in ends(prim))
    return sorted((prim.GetName() for prim in own if not prim.IsA(UsdPhysics.FixedJoint)), reverse=True)
