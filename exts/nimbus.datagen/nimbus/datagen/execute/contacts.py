"""Contact quality metrics: penetration of held objects and the table, and creep of held objects in the hand."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.geometry.mujoco_library import mujoco
from nimbus.datagen.robots.robot import Robot
from nimbus.datagen.simulate.cable import roots_of_links

if TYPE_CHECKING:
    from nimbus.datagen.simulate.newton import NewtonSimulation
    from nimbus.datagen.tasks.workcell_interface import World

WORLD = "world"
"""Name for everything fixed: table, floor, walls."""
_TOUCHING = 0.0005
"""Distance up to which two surfaces count as touching [m]."""
UPWARD = 0.5
"""Smallest vertical component of the unit normal at which one object rests on another."""


_STILL, _GRIPPER, _TARGET = 1, 2, 4
"""Bit flags of a geom: fixed to the world, part of the gripper, part of the object that the gripper acts on."""
_PRESSED = _GRIPPER | _TARGET
"""Bits of both geoms in a contact between the gripper and its target."""


@dataclass(frozen=True)
class MeterMemory:
    """Values that a contact meter keeps between two readings."""

    closing_on: str | None
    held: str | None
    carried: bool
    carried_at: np.ndarray | None
    """(3,) position of the carried object in the hand [m]."""
    depths: tuple[float, float]
    """Depths of the contacts with the held object and with the table [m]."""


def contact_bodies(model: mujoco.MjModel, data: mujoco.MjData) -> NDArray[np.int64]:
    """Return the two bodies (C, 2) of every contact; a face of a cloth or a link belongs to its object's body."""
    return _bodies_of_surfaces(model)[_surfaces(model, data)]


def _surfaces(model: mujoco.MjModel, data: mujoco.MjData) -> NDArray[np.int64]:
    """Return the two surfaces (C, 2) of every contact: numbers of geoms, after which those of cloths begin."""
    geoms = np.asarray(data.contact.geom, dtype=np.int64).reshape(-1, 2)
    if not model.nflex:
        return geoms
    return np.where(geoms >= 0, geoms, model.ngeom + np.asarray(data.contact.flex).reshape(-1, 2))


def _bodies_of_surfaces(model: mujoco.MjModel) -> NDArray[np.int64]:
    """Return the body of every geom, followed by that of every cloth; the body of a link is that of the cable."""
    roots = model.body_parentid[model.flex_vertbodyid[model.flex_vertadr]] if model.nflex else []
    return np.concatenate([roots_of_links(model)[model.geom_bodyid], roots]).astype(np.int64)


def _find_softness(model: mujoco.MjModel) -> NDArray[np.float64]:
    """Return half the thickness of each cloth and of its vertices [m], 0 for rigid geoms.

    Cloth is soft: only its middle surface must not penetrate.
    """
    softness = np.zeros(model.ngeom + model.nflex)
    softness[model.ngeom :] = model.flex_radius
    vertices = np.isin(model.geom_bodyid, model.flex_vertbodyid)
    softness[: model.ngeom][vertices] = model.geom_size[vertices, 0]
    return softness


class ContactMeter:
    """Measures contacts of a simulation; ``held`` is the object in the gripper."""

    def __init__(self, simulation: NewtonSimulation, robot: Robot) -> None:
        self._simulation, self._model, self._data = simulation, simulation.model, simulation.data
        self._gap = simulation.touch_gap
        self._gripper = np.zeros(self._model.nbody, dtype=bool)
        self._gripper[[self._model.body(name).id for name in robot.gripper.links]] = True
        self._target: str | None = None
        still, gripper = (self._model.body_weldid == 0), self._gripper
        # Bit flags reduce the classification of all contacts to a few array operations; it runs 240 times per second.
        self._bodies = _bodies_of_surfaces(self._model)
        """Body of each geom, followed by that of each cloth."""
        # The body of a cloth or a cable is fixed, but its faces or links move.
        bodies, cables = np.arange(self._model.nbody), roots_of_links(self._model)
        flexible = np.append(self._bodies[self._model.ngeom :], cables[cables != bodies])
        still = still & ~np.isin(bodies, flexible)
        self._marks = (still * _STILL + gripper * _GRIPPER).astype(np.uint8)[self._bodies]
        """(G,) bits of each geom and cloth: fixed to the world, part of the gripper, part of the gripper's target."""
        self._softness = _find_softness(self._model)
        """Depth to which each geom and each cloth may be compressed [m]."""
        self._tool = self._model.body(robot.tool.link).id
        dof_of = dict(zip(simulation.joint_names, simulation.dof_index, strict=True))
        self._finger_dofs = np.array([dof_of[name] for name in robot.gripper.joints])
        self.closing_on: str | None = None
        """Object that the fingers close on, from the start of closing."""
        self.held: str | None = None
        self.carried = False
        """True once the held object is lifted and at rest in the hand; from then on it must not move in the hand."""
        self._carried_at: np.ndarray | None = None
        self._held_depth = self._table_depth = 0.0

    def observe(self) -> None:
        """Record the depths at this instant; the next reading returns the largest since the previous one."""
        contact = self._data.contact
        distance = contact.dist
        if not (distance < 0.0).any():
            return
        surfaces = _surfaces(self._model, self._data)
        if self._model.nflex:
            distance = distance + self._softness[surfaces].max(axis=1)
        if self._target != (target := self.held or self.closing_on):
            self._mark(target)
        one, other = self._marks[surfaces].T
        # XOR selects contacts of exactly one fixed geom: fixed parts of the scene may overlap, which does not count.
        on_still = (one ^ other) & _STILL
        self._table_depth = max(self._table_depth, -float(distance[on_still > 0].min(initial=0.0)))
        if target is not None:
            pressed = (one | other) & _PRESSED == _PRESSED
            self._held_depth = max(self._held_depth, -float(distance[pressed].min(initial=0.0)))

    def _mark(self, target: str | None) -> None:
        """Mark the geoms of the gripper's target, and no others."""
        self._target = target
        self._marks &= ~np.uint8(_TARGET)
        if target is not None:
            self._marks[self._bodies == self._model.body(target).id] |= _TARGET

    def read(self) -> dict[str, float]:
        """Return the largest depths since the previous reading [m], the slip [m] and the grip force [N or N m].

        A measure is 0 where there is no contact to measure.
        """
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
        """Return the displacement of the held object in the hand since the transport began [m]."""
        if self.held is None or not self.carried:
            self._carried_at = None
            return 0.0
        # Measured in the tool frame, so that motion of the hand does not count as slip.
        rotation = self._data.xmat[self._tool].reshape(3, 3)
        place = rotation.T @ (self._data.body(self.held).xpos - self._data.xpos[self._tool])
        if self._carried_at is None:
            self._carried_at = place
        return float(np.linalg.norm(place - self._carried_at))

    @property
    def memory(self) -> MeterMemory:
        """State between two readings; setting it restores an earlier instant."""
        depths = self._held_depth, self._table_depth
        return MeterMemory(self.closing_on, self.held, self.carried, self._carried_at, depths)

    @memory.setter
    def memory(self, value: MeterMemory) -> None:
        self.closing_on, self.held, self.carried = value.closing_on, value.held, value.carried
        self._carried_at = value.carried_at
        self._held_depth, self._table_depth = value.depths

    def touched_by_gripper(self) -> set[str]:
        """Return the names of the bodies that the gripper touches, without the robot's; fixed bodies are ``world``."""
        bodies = self._bodies[_surfaces(self._model, self._data)]
        bodies = bodies[np.asarray(self._data.contact.dist) <= self._gap]
        touching = bodies[self._gripper[bodies].any(axis=1)]
        names = {self._model.body(int(body)).name for body in touching.ravel()}
        root = self._model.body_rootid[self._tool]
        return {name for name in names if self._model.body_rootid[self._model.body(name).id] != root}

    def touching(self, name: str, links: tuple[str, ...]) -> bool:
        """Return True if an object touches all of the given robot links."""
        bodies = self._bodies[_surfaces(self._model, self._data)]
        bodies = bodies[np.asarray(self._data.contact.dist) <= self._gap]
        target = self._model.body(name).id
        partners = set(bodies[(bodies == target).any(axis=1)].ravel().tolist())
        return all(self._model.body(link).id in partners for link in links)

    def holds_alone(self, name: str) -> bool:
        """Return True if an object touches nothing but the gripper: it is lifted, and no other hand holds it."""
        bodies = self._bodies[_surfaces(self._model, self._data)]
        bodies = bodies[np.asarray(self._data.contact.dist) <= self._gap]
        own = self._model.body_rootid == self._model.body(name).id
        partners = bodies[own[bodies].any(axis=1)].ravel()
        return bool((own | self._gripper)[partners].all())


@dataclass(frozen=True)
class Contact:
    """Contact of a thing with another."""

    other: str
    """Name of the object, fixture or robot link; ``world`` for fixed bodies."""
    upward: float
    """Vertical component of the unit normal toward the thing; 1 if the thing lies flat on the other."""


def find_contacts(world: World, name: str) -> list[Contact]:
    """Find all contacts of an object or a fixture, its moving parts included."""
    return find_all_contacts(world).get(name, [])


def find_all_contacts(world: World) -> dict[str, list[Contact]]:
    """Find the contacts of every object, fixture and link by name; a moving part counts as its object."""
    # Surfaces at rest are a fraction of a millimeter apart, and only a contact margin finds them. Physics must run
    # without the margin; therefore contacts are computed in a copy of the state.
    model, scratch = world.simulation.model, mujoco.MjData(world.simulation.model)
    scratch.qpos[:] = world.simulation.data.qpos
    margins = model.geom_margin.copy()
    model.geom_margin[:] = _TOUCHING / 2
    try:
        mujoco.mj_fwdPosition(model, scratch)
    finally:
        model.geom_margin[:] = margins
    found: dict[str, list[Contact]] = {}
    for contact, bodies in zip(scratch.contact[: scratch.ncon], contact_bodies(model, scratch), strict=True):
        one, other = (thing_of(model.body(body).name) for body in bodies)
        if one != other:
            upward = float(contact.frame[2])  # the normal points from the first to the second
            found.setdefault(other, []).append(Contact(one, upward))
            found.setdefault(one, []).append(Contact(other, -upward))
    return found


def thing_of(body: str) -> str:
    """Return the object, fixture or link that a body belongs to."""
    return body.split(".")[0]


def find_supports(world: World, name: str) -> set[str]:
    """Find the names of the things that a thing rests on; ``world`` is the table or the floor."""
    return {touch.other for touch in find_contacts(world, name) if touch.upward > UPWARD}


def measure_gap(world: World, name: str, other: str, *, most: float) -> float:
    """Measure the distance between the surfaces of two objects [m]: 0 for contact, at most ``most``."""
    model, data = world.simulation.model, world.simulation.data
    one_geoms, other_geoms = _geoms(model, name), _geoms(model, other)
    points = np.zeros(6)
    distances = (
        mujoco.mj_geomDistance(model, data, one, two, most, points) for one in one_geoms for two in other_geoms
    )
    return max(0.0, min(distances, default=most))


def _geoms(model: mujoco.MjModel, name: str) -> Collection[int]:
    return [geom for geom in range(model.ngeom) if thing_of(model.body(model.geom_bodyid[geom]).name) == name]
