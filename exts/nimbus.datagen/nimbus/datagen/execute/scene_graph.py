"""Scene graph: relations between the objects of a scene, computed from the current state of physics.

Conditions and the checker of proposals use these functions; each threshold is defined only here. Sides are those seen
by a robot that looks along x; front is nearer to it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.execute.contacts import UPWARD, WORLD, Contact, find_all_contacts, find_contacts, measure_gap
from nimbus.datagen.geometry.transforms import quat_to_matrix

if TYPE_CHECKING:
    from nimbus.datagen.tasks.workcell_interface import World

BESIDE, NEAR = 0.08, 0.05
"""Largest distances between the surfaces of objects that are beside each other, and near each other [m]."""
OPEN, SHUT, PRESSED = 0.8, 0.05, 0.9
"""Fractions of a joint's range: a part counts as open or turned at ``OPEN`` or more, as closed at ``SHUT`` or less, and
as pressed at ``PRESSED`` or more."""
LEAN = math.radians(15)
"""Largest deviation from vertical of an upright or inverted object, and from level of a lying one [rad]."""
MOVED, TURNED = 0.02, 0.2
"""Largest displacement [m] and rotation [rad] of an untouched object."""
_SIDES = {"left_of": (0, 1), "right_of": (0, -1), "in_front_of": (-1, 0), "behind": (1, 0)}
"""Direction x, y of each side in the robot's frame."""


@dataclass(frozen=True, order=True)
class Relation:
    """Edge of the graph."""

    relation: str
    object: str
    target: str = ""
    """Second object; empty for a state of a single object, ``world`` for table and floor."""


def contains(world: World, container: str, name: str, *, cavity: str | None = None) -> bool:
    """Return True if an object's center of mass lies within a container's walls and below its rim.

    Args:
        world: The scene.
        container: A fixture, or an object with cavities.
        name: The object.
        cavity: Cavity, or part with cavities, to consider; all when None.
    """
    center = world.pose(name) @ np.append(world.model(name).center_of_mass, 1.0)
    return _is_inside(center, _rooms(world, container, cavity))


def count_inside(world: World, container: str, name: str) -> tuple[int, int]:
    """Return the number of grains of a heap within a container, and of all its grains; another object counts as one."""
    if world.model(name).heap is None:
        return int(contains(world, container, name)), 1
    rooms, points = list(_rooms(world, container, None)), world.points(name)
    return sum(_is_inside(np.append(point, 1.0), rooms) for point in points), len(points)


def _is_inside(point: FloatArray, rooms: Iterable[tuple[FloatArray, FloatArray, FloatArray]]) -> bool:
    """Return True if a homogeneous point (4,) in the world frame [m] is within a room."""
    places = (((np.linalg.inv(frame) @ point)[:3], low, high) for frame, low, high in rooms)
    return any(bool(np.all(place > low) and np.all(place < high)) for place, low, high in places)


def _rooms(world: World, container: str, cavity: str | None) -> Iterator[tuple[FloatArray, FloatArray, FloatArray]]:
    """Yield the interiors of a container: frame (4, 4) in the world, lower and upper corner (3,) [m]."""
    if container not in world.objects:
        low, high = world.fixture(container).bounds
        yield world.pose(container), np.array(low), np.array(high)
        return
    model = world.model(container)
    frames = {container: model.interiors} | {f"{container}.{part.name}": part.cavities for part in model.parts}
    for body, cavities in frames.items():
        for name, (low, high) in cavities.items():
            if cavity in (None, name, body.removeprefix(f"{container}.")):
                yield world.pose(body), low, high


def is_on_side(world: World, name: str, other: str, relation: str) -> bool:
    """Return True if the center of a thing is on a side of another thing, such as ``left_of``, within 45 degrees."""
    one, two = (np.add(*world.bounds(thing)) / 2 for thing in (name, other))
    return _is_way_to_side(world, one - two, relation)


def _is_way_to_side(world: World, way: FloatArray, relation: str) -> bool:
    """Return True if a displacement (3,) in the world frame [m] is within 45 degrees of a side's direction."""
    ahead, left, _ = quat_to_matrix(world.stage.robot_wxyz).T @ way
    return bool(np.array(_SIDES[relation]) @ (ahead, left) >= np.hypot(ahead, left) * np.cos(np.pi / 4))


def measure_lean(world: World, name: str) -> float:
    """Return the angle [rad] between an object's own vertical axis and the world's: 0 upright, pi inverted."""
    return math.acos(max(-1.0, min(1.0, float(world.pose(name)[2, 2]))))


def measure_motion(world: World, name: str) -> tuple[FloatArray, float]:
    """Return a thing's displacement (3,) [m] since the start, in the world frame, and its rotation angle [rad]."""
    start, now = world.start_poses[name], world.pose(name)
    turn = start[:3, :3].T @ now[:3, :3]
    return now[:3, 3] - start[:3, 3], float(np.arccos(np.clip((np.trace(turn) - 1) / 2, -1, 1)))


def is_gripped(world: World, name: str, arm: str | None = None) -> bool:
    """Return True if all fingers of an arm, or of any arm when None, touch an object."""
    return any(one.is_gripping(name) for label, one in world.arms.items() if arm in (None, label))


def find_others(world: World, name: str) -> list[str]:
    """Return the names of all things that an object touches, without grippers, sorted."""
    return sorted({touch.other for touch in find_contacts(world, name)} - _gripper_links(world))


def _gripper_links(world: World) -> set[str]:
    return {link for arm in world.arms.values() for link in arm.robot.gripper.links}


@dataclass(frozen=True)
class _SceneSnapshot:
    """Scene at one instant, with contacts and bounds that several relations need."""

    world: World
    contacts: Mapping[str, Sequence[Contact]]
    bounds: Mapping[str, tuple[FloatArray, FloatArray]]
    """Corners of each object and fixture, along the axes of the world [m]."""

    @classmethod
    def of(cls, world: World) -> _SceneSnapshot:
        """Take a snapshot of a scene."""
        names = (*world.objects, *world.stage.fixtures)
        return cls(world, find_all_contacts(world), {name: world.bounds(name) for name in names})

    def touched(self, name: str, *, least_upward: float = -1.0) -> set[str]:
        """Return the names of the things that a thing touches.

        Args:
            name: The thing.
            least_upward: Vertical component of the unit normal toward the thing that a contact must exceed; -1 for all.
        """
        return {touch.other for touch in self.contacts.get(name, ()) if touch.upward > least_upward}


def describe_scene(world: World) -> tuple[Relation, ...]:
    """Return all relations of a scene, sorted.

    ``in`` excludes ``on`` for the same pair, and ``stacked`` means ``on`` a movable object. A thing in, on or below
    another one is neither beside nor near it. A thing with several moving parts has one state per part, such as the
    state of ``cabinet.drawer_0``.
    """
    view, found = _SceneSnapshot.of(world), set[Relation]()
    for name in world.objects:
        found |= set(_states(view, name))
        found |= set(_below(view, name))
    lower = {(edge.object, edge.target) for edge in found if edge.relation in ("in", "on")}
    busy = {target for _, target in lower}
    found |= {Relation("clear", name) for name in world.objects if name not in busy}
    names = tuple(view.bounds)
    for place, name in enumerate(names):
        for other in names[place + 1 :]:
            if name in world.objects and not {(name, other), (other, name)} & lower:
                found |= set(_around(view, name, other))
    return tuple(sorted(found))


def _below(view: _SceneSnapshot, name: str) -> Iterator[Relation]:
    world = view.world
    # Anchored objects, such as cabinets, are fixed to the world and not placed on or in anything.
    if world.objects[name].anchored:
        return
    containers = [other for other in view.bounds if other != name]
    inside = {other for other in containers if contains(world, other, name)}
    yield from (Relation("in", name, other) for other in inside)
    for other in view.touched(name, least_upward=UPWARD) - inside:
        if other in view.bounds or other == WORLD:
            yield Relation("on", name, other)
            if other in world.objects and not world.objects[other].anchored:
                yield Relation("stacked", name, other)


def _states(view: _SceneSnapshot, name: str) -> Iterator[Relation]:
    world = view.world
    model = world.model(name)
    for part in model.parts:
        label = f"{name}.{part.name}" if len(model.parts) > 1 else name
        share = world.joint_fraction(name, part.name)
        # A spring returns a pressed part; therefore its largest fraction so far decides.
        if part.joint.stiffness > 0.0:
            if world.largest_fraction(name, part.name) >= PRESSED:
                yield Relation("pressed", label)
        elif part.pressings:
            if share >= OPEN or share <= SHUT:
                yield Relation("open" if share >= OPEN else "closed", label)
        elif part.handles and share >= OPEN:
            yield Relation("turned", label)
    lean = measure_lean(world, name)
    for state, angle in (("upright", 0.0), ("lying", math.pi / 2), ("inverted", math.pi)):
        if abs(lean - angle) <= LEAN:
            yield Relation(state, name)
    # An object that also touches something else may be supported by it.
    if is_gripped(world, name) and not view.touched(name) - _gripper_links(world):
        yield Relation("held", name)
    way, turn = measure_motion(world, name)
    if np.linalg.norm(way) <= MOVED and turn <= TURNED:
        yield Relation("untouched", name)


def _around(view: _SceneSnapshot, name: str, other: str) -> Iterator[Relation]:
    """Yield the relations of two things at a distance, in both directions; a fixture is only a target."""
    world = view.world
    (low, high), (lower, upper) = view.bounds[name], view.bounds[other]
    # The distance between the boxes is a cheap lower bound on the distance between the surfaces.
    if np.linalg.norm(np.maximum(0.0, np.maximum(lower - high, low - upper))) > BESIDE:
        return
    distance = measure_gap(world, name, other, most=2 * BESIDE)
    for one, two in ((name, other), (other, name)):
        if one not in world.objects:
            continue
        if distance <= NEAR:
            yield Relation("near", one, two)
        if distance <= BESIDE:
            yield Relation("beside", one, two)
            way = (low + high - lower - upper) / 2 * (1 if one == name else -1)
            yield from (Relation(side, one, two) for side in _SIDES if _is_way_to_side(world, way, side))
