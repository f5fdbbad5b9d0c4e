"""Whether the robot stands free when an episode starts, and objects stay where they are put."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from nimbus.datagen.doctor.case import Case
from nimbus.datagen.doctor.finding import Finding, finding
from nimbus.datagen.execute.planner import settle
from nimbus.datagen.execute.planning import planning_scene

_LAYOUTS = 4
_MOVED = 0.03
"""[m] An object that moves so far while it settles does not stand there."""


def check_start(case: Case) -> Iterator[Finding]:
    """Load layouts, look for contacts of the robot, and let objects come to rest."""
    touched: dict[str, str] = {}
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
        before = {name: simulation.body_pose(name)[:3, 3] for name in groups}
        settle(simulation)
        for name, group in groups.items():
            way = float(np.linalg.norm(simulation.body_pose(name)[:3, 3] - before[name]))
            if way > _MOVED:
                rolled[group] = max(way, rolled.get(group, 0.0))
    for group, contact in touched.items():
        yield _touching(case, group, contact)
    for group, way in rolled.items():
        what = f"objects of '{group}' move by {way * 100:.0f} cm before the robot does anything"
        keys, instead = ("objects", group, "lying"), "write lying: 0 %, or a region away from the edge"
        yield finding("start", case.task, keys, what, instead=instead)


def _touching(case: Case, group: str, contact: str) -> Finding:
    task = case.task
    if group:
        region = task.objects[group].region
        what = f"at the start {contact} touch: the arm's home posture is above the region"
        keys = ("regions", region) if region in task.regions else ("objects", group, "region")
        return finding("start", task, keys, what, instead="move its center away from the hand")
    keys = ("randomize", "start_posture") if "start_posture" in task.randomize else ("robot",)
    instead = "write a smaller range" if len(keys) > 1 else "another scene, or another home in the robot's file"
    return finding("start", task, keys, f"at the start {contact} touch", instead=instead)
