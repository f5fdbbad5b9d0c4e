"""Check that the robot is free of collisions when an episode starts, and that objects stay in place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

from nimbus.datagen.doctor.case import make_finding
from nimbus.datagen.errors import Diagnostic
from nimbus.datagen.execute.contacts import contact_bodies
from nimbus.datagen.execute.planner import settle
from nimbus.datagen.execute.planning_scenes import planning_scene

if TYPE_CHECKING:
    from nimbus.datagen.doctor.case import Case
    from nimbus.datagen.simulate.newton import NewtonSimulation
    from nimbus.datagen.tasks.task import Task

_LAYOUTS = 4
_MOVED = 0.03
"""Displacement during settling above which the start of an object counts as unstable [m]."""
_INSIDE = 0.002
"""Penetration above which an object counts as inside a link instead of touching it [m]."""


def check_start(case: Case) -> Iterator[Diagnostic]:
    """Load layouts, look for contacts of the robot, and let objects come to rest."""
    touched: dict[str, str] = {}
    inside: dict[str, str] = {}
    rolled: dict[str, float] = {}
    layouts = case.layouts[:_LAYOUTS]
    for layout in layouts:
        simulation = case.simulation
        simulation.load(layout)
        groups = {item.name: item.group for item in layout.objects}
        for arm in case.assets.robot.arms:
            scene = planning_scene(simulation, arm.name)
            scene.set_world(simulation.data.qpos)
            home = np.array(
                [arm.arm.home[place] + layout.robot.start.get(name, 0.0) for place, name in enumerate(arm.arm.joints)]
            )
            if contact := scene.first_contact(home):
                names = [name for name in contact if name in groups]
                touched.setdefault(groups[names[0]] if names else "", " and ".join(contact))
        inside |= _inside_robot(simulation, groups)
        before = {name: simulation.body_pose(name)[:3, 3] for name in groups}
        settle(simulation)
        for name, group in groups.items():
            way = float(np.linalg.norm(simulation.body_pose(name)[:3, 3] - before[name]))
            if way > _MOVED:
                rolled[group] = max(way, rolled.get(group, 0.0))
    for group, contact in touched.items():
        yield _touching(case, group, contact)
    for group, link in inside.items():
        what = f"objects of '{group}' start inside {link}"
        keys = _place(case.task, group)
        yield make_finding("start", case.task, keys, what, instead="move its center away from the robot")
    for group, way in rolled.items():
        if group in inside:
            continue  # these objects move because the contact pushes them out of the robot, which is reported above
        what = f"objects of '{group}' move by {way * 100:.0f} cm before the robot does anything"
        keys, instead = ("objects", group, "lying"), "write lying: 0 %, or a region away from the edge"
        yield make_finding("start", case.task, keys, what, instead=instead)


def _touching(case: Case, group: str, contact: str) -> Diagnostic:
    task = case.task
    if group:
        what = f"at the start {contact} touch: the arm's home posture is above the region"
        return make_finding("start", task, _place(task, group), what, instead="move its center away from the hand")
    keys = ("randomize", "start_posture") if "start_posture" in task.randomize else ("robot",)
    instead = (
        "write a smaller range"
        if len(keys) > 1
        else "name another scene, or write another home or place in the robot's file"
    )
    return make_finding("start", task, keys, f"at the start {contact} touch", instead=instead)


def _place(task: Task, group: str) -> tuple[str, ...]:
    """Return the field that sets the start of a group."""
    region = task.objects[group].region
    return ("regions", region) if region in task.regions else ("objects", group, "region")


def _inside_robot(simulation: NewtonSimulation, groups: Mapping[str, str]) -> dict[str, str]:
    """Return, for each group with objects that start inside the robot, one link that contains such an object."""
    model, contact = simulation.model, simulation.data.contact
    others = {"world", *simulation.stage.fixtures}
    found: dict[str, str] = {}
    for bodies in contact_bodies(model, simulation.data)[contact.dist < -_INSIDE]:
        one, other = (model.body(body).name.partition(".")[0] for body in bodies)
        for name, link in ((one, other), (other, one)):
            if name in groups and link not in others and link not in groups:
                found.setdefault(groups[name], link)
    return found
