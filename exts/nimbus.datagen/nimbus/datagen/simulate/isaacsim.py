"""Physics in Isaac Sim: the same stage and layout, stepped by PhysX.

Loaded by workers that run in Isaac Sim's Python. Kit is imported where it is used, when it has been started.
"""
# pyright: reportMissingImports=false

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.episode.layout import Camera, EpisodeKey, Layout, Light, PhysicalLayout, PlacedObject, VisualLayout
from nimbus.datagen.episode.trajectory import StartState
from nimbus.datagen.registry import register
from nimbus.datagen.simulate.rates import smooth_reference, steps_per_period
from nimbus.datagen.usd.stage import StageInfo, layout_stage

if TYPE_CHECKING:
    from isaacsim.core.experimental.prims import RigidPrim

    from nimbus.datagen.robots.robot import Robot
    from nimbus.datagen.simulate.isaacsim_joints import Joints


STEP_RATE = 240.0
"""Rate of PhysX [Hz]."""
_DARK = Light(direction=(0.0, 0.0, -1.0), color=(1.0, 1.0, 1.0), sky=(1.0, 1.0, 1.0), ground=(0.0, 0.0, 0.0))
_NO_CAMERAS: tuple[Camera, ...] = ()


@register("simulator", "isaacsim")
class IsaacSimSimulation:
    """One world in PhysX: robot, fixtures and objects; the arm is driven by the joints' position drives.

    Args:
        stage: The scene.
        robot: The robot.
        rate: Record and command rate [Hz]; must divide 240.
    """

    NOT_APPLIED: ClassVar[frozenset[str]] = frozenset(
        {"damping", "delay", "gains", "push", "robot_base", "start_posture"}
    )
    """Randomizers that this simulator does not support yet."""

    def __init__(self, stage: StageInfo, robot: Robot, *, rate: float) -> None:
        self._base = self.stage = stage
        self.robot, self.rate = robot, rate
        self.steps_per_period = steps_per_period(STEP_RATE, rate)
        self._folder = tempfile.TemporaryDirectory(prefix="nimbus-isaacsim-")
        self._count = 0

    def load(self, layout: PhysicalLayout) -> None:
        """Write and open the stage of a layout, start physics, and bring everything to its start."""
        import isaacsim.core.experimental.utils.app as app_utils
        import isaacsim.core.experimental.utils.stage as stage_utils
        from isaacsim.core.experimental.prims import RigidPrim
        from isaacsim.core.simulation_manager import SimulationManager

        from nimbus.datagen.simulate.isaacsim_joints import Joints
        from nimbus.datagen.simulate.kit_app import open_stage
        from nimbus.datagen.usd.layout_export import OBJECTS, ROBOT, body_prims, write_layout_stage

        app_utils.stop()  # closing a stage while its timeline plays crashes Kit
        self._count += 1
        path = Path(self._folder.name) / f"{self._count:05d}.usda"
        key = EpisodeKey(task="physics", task_hash="", seed=0, index=0)
        whole = Layout(key=key, physical=layout, visual=VisualLayout(light=_DARK, cameras=_NO_CAMERAS))
        self.stage = layout_stage(self._base, layout)
        write_layout_stage(path, self.stage, self.robot, whole)
        open_stage(str(path))
        SimulationManager.setup_simulation(dt=1.0 / STEP_RATE, device="cpu")
        stage = stage_utils.get_current_stage()
        prims = body_prims(stage, self.stage)
        dynamic, static = _by_motion(prims)
        parts = {item.name: _parts(item) for item in layout.objects}
        moved = {f"{OBJECTS}/{name}/{part}" for name, ways in parts.items() for part in ways}  # moved by their joints
        loose = [place for place in dynamic.values() if not place.startswith(ROBOT + "/") and place not in moved]
        self.object_names = tuple(item.name for item in layout.objects)
        # Before physics starts, because both add schemas to their prims. A view of no prims is refused.
        self._loose: RigidPrim | None = RigidPrim(loose) if loose else None
        self._dynamic: RigidPrim = RigidPrim(list(dynamic.values()))
        start = _world_poses(stage, loose)
        app_utils.play(commit=True)
        SimulationManager.initialize_physics()
        self.joint_names = self.robot.joint_names
        self._robot: Joints = Joints(_articulations(stage, ROBOT), self.joint_names)
        self._part_joints: list[Joints] = [
            Joints([f"{OBJECTS}/{name}"], list(ways)) for name, ways in parts.items() if ways
        ]
        self.body_names = (*dynamic, *static)
        self._static = _world_poses(stage, list(static.values()))
        self._start_at_home()
        self._put(*start)
        self._set_parts([np.array(list(ways.values())) for ways in parts.values() if ways])

    def close(self) -> None:
        """Remove the written stages."""
        self._folder.cleanup()

    def _put(self, positions: FloatArray, wxyz: FloatArray) -> None:
        """Reset loose objects to their poses at rest, because physics has let them fall while it started."""
        self._set_loose(positions, wxyz, np.zeros((len(positions), 6)))

    def _set_loose(self, positions: FloatArray, wxyz: FloatArray, velocities: FloatArray) -> None:
        if self._loose is not None:
            self._loose.set_world_poses(positions, wxyz)
            self._loose.set_velocities(velocities[:, :3], velocities[:, 3:])

    def _loose_state(self) -> tuple[FloatArray, FloatArray]:
        """Return the state of loose objects.

        Returns:
            (n, 7) positions [m] and wxyz, and (n, 6) linear and angular velocities [m/s, rad/s].
        """
        if self._loose is None:
            return np.zeros((0, 7)), np.zeros((0, 6))
        places, turns = self._loose.get_world_poses()
        linear, angular = self._loose.get_velocities()
        poses = np.concatenate([places.numpy(), turns.numpy()], axis=1)
        return poses, np.concatenate([linear.numpy(), angular.numpy()], axis=1)

    def _set_parts(self, ways: Sequence[FloatArray]) -> None:
        """Set the joint positions of each object's parts [rad or m], at rest."""
        for joints, way in zip(self._part_joints, ways, strict=True):
            joints.put(way, np.zeros_like(way))

    def _start_at_home(self) -> None:
        home = np.array(self.robot.home_joints)
        self._robot.put(home, np.zeros_like(home))
        self._stand(home)

    @property
    def action_names(self) -> tuple[str, ...]:
        """Names of the commands, see :class:`~nimbus.datagen.robots.robot.Robot`."""
        return self.robot.action_names

    def advance(self, action: FloatArray, *, observe: Callable[[], None] | None = None) -> None:
        """Run physics for one record period; targets follow the same path as in the default simulator.

        The drives also get the velocity of the target, which their damping would otherwise oppose; inertia is not
        compensated.

        Args:
            action: (A,) commanded positions [rad, m].
            observe: Called after every step, for measurements that are not recorded.
        """
        from isaacsim.core.simulation_manager import SimulationManager

        target = action[list(self.robot.action_index)] * np.array(self.robot.joint_ratios)
        first, second = self._previous, self._last
        path = smooth_reference(first, second, target, steps=self.steps_per_period, period=1.0 / self.rate)
        for position, velocity in zip(*path, strict=True):
            self._command(position, velocity)
            SimulationManager.step(steps=1)
            if observe:
                observe()
        self._previous, self._last = second, target

    def _stand(self, position: FloatArray) -> None:
        """Command the arm to hold a position (J,) [rad or m]."""
        self._previous = self._last = position
        self._command(position, np.zeros_like(position))

    def _command(self, position: FloatArray, velocity: FloatArray) -> None:
        self.reference = position
        self._robot.command(position, velocity)

    def state(self) -> StartState:
        """Return joint positions and velocities, then poses and velocities of loose objects, then parts, in a row.

        Parts count as at rest.
        """
        poses, moving = self._loose_state()
        parts = [joints.positions() for joints in self._part_joints]
        return StartState(
            joint_positions=np.concatenate([self.joint_positions(), poses.ravel(), *parts]).astype(float),
            joint_velocities=np.concatenate([self.joint_velocities(), moving.ravel()]).astype(float),
        )

    def restore(self, state: StartState) -> None:
        """Go back to a state at rest, as :meth:`load` leaves it."""
        count = len(self.joint_names)
        moving = state.joint_velocities[count:].reshape(-1, 6)
        end = count + 7 * len(moving)
        loose = state.joint_positions[count:end].reshape(-1, 7)
        ends = np.cumsum([len(joints) for joints in self._part_joints], dtype=int)
        self._robot.put(state.joint_positions[:count], state.joint_velocities[:count])
        self._set_loose(loose[:, :3], loose[:, 3:], moving)
        self._set_parts(np.split(state.joint_positions[end:], ends[:-1]) if len(ends) else [])
        self._stand(state.joint_positions[:count].copy())

    @property
    def is_stable(self) -> bool:
        """Return True if all numbers are finite."""
        return bool(np.isfinite(self.body_positions()).all() and np.isfinite(self.joint_positions()).all())

    def joint_positions(self) -> FloatArray:
        """Return the positions (J,) of arm and gripper joints [rad, m]."""
        return self._robot.positions()

    def joint_velocities(self) -> FloatArray:
        """Return the velocities (J,) of arm and gripper joints [rad/s, m/s]."""
        return self._robot.velocities()

    def body_positions(self) -> FloatArray:
        """Return the positions (B, 3) of all bodies in the world frame [m]."""
        return self._poses()[0]

    def body_wxyz(self) -> FloatArray:
        """Return the orientations (B, 4) of all bodies, unit quaternions wxyz."""
        return self._poses()[1]

    def _poses(self) -> tuple[FloatArray, FloatArray]:
        positions, wxyz = self._dynamic.get_world_poses()
        moved = positions.numpy().astype(float), wxyz.numpy().astype(float)
        return np.concatenate([moved[0], self._static[0]]), np.concatenate([moved[1], self._static[1]])


def _parts(item: PlacedObject) -> dict[str, float]:
    """Return the initial positions of an object's parts, by the names of their joints [rad, m]."""
    from nimbus.datagen.objects.libraries import open_library

    model = open_library(item.library).model(item.kind, item.variant)
    return {part.name: item.joints.get(part.name, 0.0) for part in model.parts}


def _articulations(stage: Any, place: str) -> list[str]:
    """Return the paths of a robot's articulations."""
    from pxr import Usd, UsdPhysics

    below = Usd.PrimRange(stage.GetPrimAtPath(place))
    return [str(prim.GetPath()) for prim in below if prim.HasAPI(UsdPhysics.ArticulationRootAPI)]


def _by_motion(prims: Mapping[str, Any]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the paths of moving bodies and of fixed ones, by name; RigidPrim would make all of them move."""
    from pxr import UsdPhysics

    dynamic = {name: str(prim.GetPath()) for name, prim in prims.items() if prim.HasAPI(UsdPhysics.RigidBodyAPI)}
    return dynamic, {name: str(prim.GetPath()) for name, prim in prims.items() if name not in dynamic}


def _world_poses(stage: Any, places: Sequence[str]) -> tuple[FloatArray, FloatArray]:
    """Return positions (N, 3) [m] and orientations (N, 4) wxyz of prims as authored in the stage."""
    from pxr import UsdGeom

    cache: Any = UsdGeom.XformCache()
    # A fixture may be scaled. Gf converts the rotation, because our helper's library is not in Isaac Sim's Python.
    matrices = [cache.GetLocalToWorldTransform(stage.GetPrimAtPath(place)).RemoveScaleShear() for place in places]
    turns = [matrix.ExtractRotationQuat() for matrix in matrices]
    positions = np.array([matrix.ExtractTranslation() for matrix in matrices]).reshape(-1, 3)
    return positions, np.array([(turn.GetReal(), *turn.GetImaginary()) for turn in turns]).reshape(-1, 4)
