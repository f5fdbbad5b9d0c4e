"""How believable the contacts are: what a held object sinks in, what presses into the table, what creeps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nimbus.datagen.robots.robot import Robot

if TYPE_CHECKING:
    from nimbus.datagen.simulate.newton import NewtonSimulation


class ContactMeter:
    """Reads contact measures of a simulation; ``held`` says which object the gripper holds."""

    def __init__(self, simulation: NewtonSimulation, robot: Robot) -> None:
        self._simulation, self._model, self._data = simulation, simulation.model, simulation.data
        self._gripper = np.zeros(self._model.nbody, dtype=bool)
        self._gripper[[self._model.body(name).id for name in robot.gripper.links]] = True
        self._still = self._model.body_weldid == 0
        self._tool = self._model.body(robot.tool.link).id
        dof_of = dict(zip(simulation.joint_names, simulation.dof_index, strict=True))
        self._finger_dofs = np.array([dof_of[name] for name in robot.gripper.joints])
        self.closing_on: str | None = None
        """The object between the fingers, from when they begin to close on it."""
        self.held: str | None = None
        self.carried = False
        """The held object is in the air and at rest in the hand: from now on it should not move in it."""
        self._carried_at: np.ndarray | None = None
        self._held_depth = self._table_depth = 0.0

    def observe(self) -> None:
        """Take note of the depths of this instant; the next reading tells the largest since the one before."""
        depth = -np.asarray(self._data.contact.dist)
        if not (depth > 0.0).any():
            return
        bodies = self._model.geom_bodyid[self._data.contact.geom].reshape(-1, 2)
        on_still = self._still[bodies].any(axis=1) & ~self._still[bodies].all(axis=1)
        self._table_depth = max(self._table_depth, float(depth[on_still].max(initial=0.0)))
        target = self.held or self.closing_on
        if target is not None:
            pressed = (bodies == self._model.body(target).id).any(axis=1) & self._gripper[bodies].any(axis=1)
            self._held_depth = max(self._held_depth, float(depth[pressed].max(initial=0.0)))

    def read(self) -> dict[str, float]:
        """Measures since the last reading; zero where there was no such contact."""
        self.observe()
        held_depth, table_depth = self._held_depth, self._table_depth
        self._held_depth = self._table_depth = 0.0
        return {
            "held_penetration": held_depth,
            "table_penetration": table_depth,
            "held_slip": self._slip(),
            "grip_force": float(np.abs(self._data.qfrc_actuator[self._finger_dofs]).max()) if self.held else 0.0,
        }

    def _slip(self) -> float:
        """How far the held object has moved in the hand since the carry began [m]."""
        if self.held is None or not self.carried:
            self._carried_at = None
            return 0.0
        rotation = self._data.xmat[self._tool].reshape(3, 3)
        place = rotation.T @ (self._data.body(self.held).xpos - self._data.xpos[self._tool])
        if self._carried_at is None:
            self._carried_at = place
        return float(np.linalg.norm(place - self._carried_at))

    def touched_by_gripper(self) -> set[str]:
        """Names of the bodies that the gripper touches, ``world`` for what stands still; not the robot itself."""
        bodies = self._model.geom_bodyid[self._data.contact.geom].reshape(-1, 2)
        bodies = bodies[np.asarray(self._data.contact.dist) <= 0.0]
        touching = bodies[self._gripper[bodies].any(axis=1)]
        names = {self._model.body(int(body)).name for body in touching.ravel()}
        root = self._model.body_rootid[self._tool]
        return {name for name in names if self._model.body_rootid[self._model.body(name).id] != root}

    def touching(self, name: str, links: tuple[str, ...]) -> bool:
        """Whether an object touches every one of some robot links."""
        bodies = self._model.geom_bodyid[self._data.contact.geom].reshape(-1, 2)
        bodies = bodies[np.asarray(self._data.contact.dist) <= 0.0]
        target = self._model.body(name).id
        partners = set(bodies[(bodies == target).any(axis=1)].ravel().tolist())
        return all(self._model.body(link).id in partners for link in links)
