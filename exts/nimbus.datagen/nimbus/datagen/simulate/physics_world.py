"""Interface to a world that another program steps: its parts, their state, and the calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.episode.layout import Vector


@dataclass(frozen=True, kw_only=True)
class WorldParts:
    """Parts of a stage that physics moves, by their names in trajectories."""

    robot: str
    """Prim path of the robot."""
    objects: str
    """Prim path of the objects' parent; the prim of an object has the object's name."""
    joints: Sequence[str]
    """Joints of the robot."""
    jointed: Mapping[str, Mapping[str, float]]
    """Objects with parts: the dry friction of each part's joint [N m, N], by the joint's name."""
    floating: Sequence[str]
    """Objects with parts that are not fixed to the world."""
    loose: Mapping[str, str]
    """Prim paths of the rigid bodies that move freely."""


@dataclass(frozen=True, kw_only=True)
class BodyStates:
    """State of N free bodies in the world frame."""

    positions: FloatArray
    """(N, 3) origins of the bodies' frames [m]."""
    wxyz: FloatArray
    """(N, 4) orientations of the bodies' frames, unit quaternions."""
    linear: FloatArray
    """(N, 3) velocities of the centers of mass [m/s]."""
    angular: FloatArray
    """(N, 3) angular velocities [rad/s]."""


class JointGroup(Protocol):
    """Joints (J) that are read and commanded together [rad, m; rad/s, m/s]."""

    @property
    def names(self) -> Sequence[str]:
        """Names of the joints, in the order of all values."""
        ...

    def positions(self) -> FloatArray:
        """Return the positions (J,)."""
        ...

    def velocities(self) -> FloatArray:
        """Return the velocities (J,)."""
        ...

    def put(self, positions: FloatArray, velocities: FloatArray) -> None:
        """Set positions and velocities (J,) at once."""
        ...

    def command(self, positions: FloatArray, velocities: FloatArray) -> None:
        """Set the targets (J,) of the drives, and the velocities (J,) of these targets."""
        ...


class PhysicsWorld(Protocol):
    """Loaded layout in an engine outside this process or project."""

    @property
    def robot(self) -> JointGroup:
        """Joints of the robot."""
        ...

    @property
    def parts(self) -> Mapping[str, JointGroup]:
        """Joints of each object with parts, by the object's name."""
        ...

    @property
    def is_open(self) -> bool:
        """True while no other stage has been opened."""
        ...

    def step(self) -> None:
        """Take one step of physics."""
        ...

    def bodies(self) -> BodyStates:
        """Return the state of the free bodies: the loose ones, then the floating ones."""
        ...

    def place(self, states: BodyStates) -> None:
        """Set the state of the free bodies, in the same order."""
        ...

    def push(self, path: str, force: Vector) -> None:
        """Apply a force at the center of mass of a body for the next step [N, world frame]."""
        ...

    def set_friction(self, name: str, friction: float) -> None:
        """Set the friction of an object's surfaces against a surface with a coefficient of 1."""
        ...
