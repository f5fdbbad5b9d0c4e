"""Open stage of Isaac Sim that PhysX steps, with typed versions of the calls that a simulation needs.

Isaac Sim's modules are imported inside functions, after Kit has been started.
"""
# pyright: reportMissingImports=false

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.episode.layout import Vector
from nimbus.datagen.simulate.physics_world import BodyStates, WorldParts
from nimbus.datagen.simulate.physx_joints import Joints

if TYPE_CHECKING:
    from isaacsim.core.experimental.materials import RigidBodyMaterial
    from isaacsim.core.experimental.prims import Articulation, RigidPrim

STEP_RATE = 240.0
"""Rate of PhysX [Hz]."""


class PhysxWorld:
    """Stage in which PhysX runs; a process can have only one open.

    Args:
        parts: Moving parts of the open stage, from :func:`~nimbus.datagen.usd.layout_export.write_layout_stage`.

    Raises:
        ValueError: A joint is in none of the stage's articulations.
    """

    @classmethod
    def open(cls, path: Path, parts: WorldParts) -> PhysxWorld:
        """Open a stage and start physics in it; this updates Kit, so it is only for a process without a window.

        Raises:
            InputError: The stage cannot be opened.
        """
        import isaacsim.core.experimental.utils.app as app_utils

        from nimbus.datagen.simulate.kit_app import open_stage

        app_utils.stop()  # closing a stage while its timeline plays crashes Kit
        open_stage(str(path))
        return cls(parts)

    def __init__(self, parts: WorldParts) -> None:
        import isaacsim.core.experimental.utils.app as app_utils
        import isaacsim.core.experimental.utils.stage as stage_utils
        from isaacsim.core.experimental.prims import Articulation, RigidPrim
        from isaacsim.core.simulation_manager import SimulationManager

        self._objects = parts.objects
        SimulationManager.setup_simulation(dt=1.0 / STEP_RATE, device="cpu")
        self._stage: Any = stage_utils.get_current_stage()
        # The view is made before physics starts, because it adds schemas to its prims. A view of no prims is refused.
        self._loose: RigidPrim | None = RigidPrim(list(parts.loose.values())) if parts.loose else None
        self._pushed: dict[str, RigidPrim] = {}
        app_utils.play(commit=True)
        SimulationManager.initialize_physics()
        self.robot = Joints(_articulations(self._stage, parts.robot), parts.joints)
        self.parts = {
            name: Joints(_articulations(self._stage, f"{parts.objects}/{name}"), list(frictions))
            for name, frictions in parts.jointed.items()
        }
        """Joints of each object with parts, by the object's name."""
        for name, frictions in parts.jointed.items():
            self.parts[name].set_friction(np.array(list(frictions.values())))
        # A loose object with parts is an articulation, whose view differs from that of rigid bodies.
        self._floating: list[Articulation] = [
            Articulation(_articulations(self._stage, f"{parts.objects}/{name}")[0]) for name in parts.floating
        ]

    @property
    def is_open(self) -> bool:
        """True while no other stage has been opened."""
        import isaacsim.core.experimental.utils.stage as stage_utils

        return stage_utils.get_current_stage() is self._stage

    def step(self) -> None:
        """Take one step of physics."""
        from isaacsim.core.simulation_manager import SimulationManager

        SimulationManager.step(steps=1)

    def bodies(self) -> BodyStates:
        """Return the state of the free bodies, in the order of ``loose``, then ``floating``."""
        views = [*([self._loose] if self._loose is not None else []), *self._floating]
        rows: list[tuple[FloatArray, ...]] = []
        for view in views:
            positions, wxyz = view.get_world_poses()
            linear, angular = view.get_velocities()
            rows.append(tuple(_rows(value) for value in (positions, wxyz, linear, angular)))
        columns = [np.concatenate(column) for column in zip(*rows, strict=True)] if rows else _no_rows()
        positions, wxyz, linear, angular = columns
        return BodyStates(positions=positions, wxyz=wxyz, linear=linear, angular=angular)

    def place(self, states: BodyStates) -> None:
        """Set the state of the free bodies, in the order of :meth:`bodies`."""
        count = len(states.positions) - len(self._floating)
        ends = [slice(0, count)] if self._loose is not None else []
        ends += [slice(row, row + 1) for row in range(count, len(states.positions))]
        views = [*([self._loose] if self._loose is not None else []), *self._floating]
        for view, rows in zip(views, ends, strict=True):
            view.set_world_poses(states.positions[rows], states.wxyz[rows])
            view.set_velocities(states.linear[rows], states.angular[rows])

    def push(self, path: str, force: Vector) -> None:
        """Apply a force to the center of mass of a body for the next step [N, world frame].

        Args:
            path: Prim path of a rigid body, or of a link.
            force: The force [N].
        """
        from isaacsim.core.experimental.prims import RigidPrim

        if path not in self._pushed:
            self._pushed[path] = RigidPrim(path)
        body: RigidPrim = self._pushed[path]
        body.apply_forces(np.array([force], dtype=float), local_frame=False)

    def set_friction(self, name: str, friction: float) -> None:
        """Set the friction of an object's surfaces.

        Args:
            name: Name of the object.
            friction: Coefficient against a surface with a coefficient of 1.
        """
        from isaacsim.core.experimental.materials import RigidBodyMaterial

        for path in _materials(self._stage, f"{self._objects}/{name}"):
            material: RigidBodyMaterial = RigidBodyMaterial(path)
            material.set_friction_coefficients([friction], [friction])


def _rows(values: Any) -> FloatArray:
    return np.asarray(values.numpy(), dtype=float)


def _no_rows() -> list[FloatArray]:
    return [np.zeros((0, width)) for width in (3, 4, 3, 3)]


def _articulations(stage: Any, place: str) -> list[str]:
    """Return the paths of the articulations at or below a prim."""
    from pxr import Usd, UsdPhysics

    below = Usd.PrimRange(stage.GetPrimAtPath(place))
    return [str(prim.GetPath()) for prim in below if prim.HasAPI(UsdPhysics.ArticulationRootAPI)]


def _materials(stage: Any, place: str) -> list[str]:
    """Return the paths of the physics materials at or below a prim."""
    from pxr import Usd, UsdPhysics

    below = Usd.PrimRange(stage.GetPrimAtPath(place))
    return [str(prim.GetPath()) for prim in below if prim.HasAPI(UsdPhysics.MaterialAPI)]
