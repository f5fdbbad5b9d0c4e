"""World in another process, controlled by messages of plain data: each order is answered with the whole state.

The side that runs the skills has a :class:`HostedWorld`; the side that has the stage open calls :func:`obey`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.episode.layout import Vector
from nimbus.datagen.simulate.physics_world import BodyStates, JointGroup, PhysicsWorld, WorldParts

Order = dict[str, Any]
"""Message to the host: ``do`` is ``open``, ``act`` or ``end``; the other fields depend on it."""
Exchange = Callable[[Order], dict[str, Any]]
"""Sends an order and waits for its answer."""
_STATE = ("positions", "velocities")
_BODIES = ("positions", "wxyz", "linear", "angular")
_WIDTHS = (3, 4, 3, 3)


class HostedJoints:
    """Joints of a hosted world.

    Args:
        names: Names of the joints.
        key: Name of the object; empty for the robot.
        world: The world.
    """

    def __init__(self, names: list[str], key: str, world: HostedWorld) -> None:
        self.names, self._key, self._world = names, key, world

    def positions(self) -> FloatArray:
        """Return the positions (J,) [rad, m]."""
        return np.array(self._world.joint_state(self._key)["positions"], dtype=float)

    def velocities(self) -> FloatArray:
        """Return the velocities (J,) [rad/s, m/s]."""
        return np.array(self._world.joint_state(self._key)["velocities"], dtype=float)

    def put(self, positions: FloatArray, velocities: FloatArray) -> None:
        """Set positions (J,) [rad, m] and velocities (J,) [rad/s, m/s] at once."""
        self._world.note("put", self._key, positions.tolist(), velocities.tolist())

    def command(self, positions: FloatArray, velocities: FloatArray) -> None:
        """Set the targets (J,) of the drives [rad, m] and the velocities (J,) of these targets [rad/s, m/s]."""
        self._world.note("command", self._key, positions.tolist(), velocities.tolist())


class HostedWorld:
    """World that another process steps; changes are sent with the next step, or when the state is read.

    Args:
        exchange: Sends an order and waits for its answer.
        path: The stage that the host opens.
        parts: Moving parts of the stage.
    """

    is_open = True

    def __init__(self, exchange: Exchange, path: Path, parts: WorldParts) -> None:
        self._exchange = exchange
        self._calls: list[list[Any]] = []
        self._state = exchange({"do": "open", "path": str(path), "parts": asdict(parts)})
        self.robot = HostedJoints(list(parts.joints), "", self)
        self.parts = {name: HostedJoints(list(joints), name, self) for name, joints in parts.jointed.items()}
        self.step_count = 0
        """Number of steps since the stage was opened."""

    def note(self, name: str, *values: Any) -> None:
        """Keep a change for the next order."""
        self._calls.append([name, *values])

    def joint_state(self, key: str) -> Mapping[str, list[float]]:
        """Return positions and velocities of the joints of an object, or of the robot."""
        return self._now()["joints"][key]

    def step(self) -> None:
        """Take one step of physics."""
        self._act(steps=1)
        self.step_count += 1

    def bodies(self) -> BodyStates:
        """Return the state of the free bodies."""
        rows = self._now()["bodies"]
        columns = [np.array(rows[name], dtype=float).reshape(-1, w) for name, w in zip(_BODIES, _WIDTHS, strict=True)]
        return BodyStates(**dict(zip(_BODIES, columns, strict=True)))

    def place(self, states: BodyStates) -> None:
        """Set the state of the free bodies."""
        self.note("place", {name: getattr(states, name).tolist() for name in _BODIES})

    def push(self, path: str, force: Vector) -> None:
        """Apply a force at the center of mass of a body for the next step [N, world frame]."""
        self.note("push", path, list(force))

    def set_friction(self, name: str, friction: float) -> None:
        """Set the friction of an object's surfaces."""
        self.note("set_friction", name, friction)

    def _now(self) -> dict[str, Any]:
        if self._calls:
            self._act(steps=0)
        return self._state

    def _act(self, *, steps: int) -> None:
        calls, self._calls = self._calls, []
        self._state = self._exchange({"do": "act", "calls": calls, "steps": steps})


def parts_of(order: Order) -> WorldParts:
    """Return the moving parts of the stage that an order opens."""
    return WorldParts(**order["parts"])


def obey(world: PhysicsWorld, order: Order) -> dict[str, Any]:
    """Apply the changes and steps of an order; return the state after it."""
    groups: dict[str, JointGroup] = {"": world.robot, **world.parts}
    for name, *values in order.get("calls", ()):
        if name in ("put", "command"):
            key, positions, velocities = values
            getattr(groups[key], name)(np.array(positions, dtype=float), np.array(velocities, dtype=float))
        elif name == "place":
            columns = zip(_BODIES, _WIDTHS, strict=True)
            arrays = {name: np.array(values[0][name], dtype=float).reshape(-1, width) for name, width in columns}
            world.place(BodyStates(**arrays))
        elif name == "push":
            x, y, z = values[1]
            world.push(values[0], (x, y, z))
        elif name == "set_friction":
            world.set_friction(values[0], values[1])
        else:
            raise ValueError(f"a world has no call '{name}'")
    for _ in range(order.get("steps", 0)):
        world.step()
    bodies = world.bodies()
    return {
        "joints": {key: {name: getattr(group, name)().tolist() for name in _STATE} for key, group in groups.items()},
        "bodies": {name: getattr(bodies, name).tolist() for name in _BODIES},
    }
