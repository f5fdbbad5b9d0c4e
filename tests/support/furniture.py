"""A robot at a bare table with one piece of furniture on it, for tests."""

from __future__ import annotations

from functools import partial

from nimbus.datagen.episode.layout import PhysicalLayout, PlacedObject
from nimbus.datagen.execute.planner import make_motion_planner, settle
from nimbus.datagen.execute.workcell import SimulatedWorkcell
from nimbus.datagen.objects.libraries import open_library
from nimbus.datagen.random_streams import generator
from nimbus.datagen.robots.robot import load_robot
from nimbus.datagen.simulate.newton import NewtonSimulation
from nimbus.datagen.usd.stage import read_stage


def piece(
    kind: str, *, x: float, variant: int = 0, fractions: dict[str, float] | None = None, anchored: bool | None = None
) -> PlacedObject:
    """Return a piece in front of the robot, facing it, with its joints at fractions of their ranges."""
    model = open_library("furniture").model(kind, variant)
    joints = {
        part.name: part.joint.range[0] + fraction * (part.joint.range[1] - part.joint.range[0])
        for name, fraction in (fractions or {}).items()
        if (part := model.part(name))
    }
    return PlacedObject(
        name="thing_0",
        group="thing",
        library="furniture",
        kind=kind,
        variant=variant,
        object_class=model.object_class,
        position=(x, 0.0, model.rest_poses[0].height + 0.0005),
        wxyz=(1.0, 0.0, 0.0, 0.0),
        rest_pose="upright",
        mass=model.mass,
        friction=model.friction,
        anchored=model.anchored if anchored is None else anchored,
        joints=joints,
    )


def simulation(item: PlacedObject) -> NewtonSimulation:
    """Return a simulation of the piece, not yet settled."""
    made = NewtonSimulation(read_stage("table"), load_robot("panda"), rate=15.0)
    made.load(PhysicalLayout(objects=(item,)))
    return made


def workcell(item: PlacedObject) -> SimulatedWorkcell:
    """Return a settled workcell for skills."""
    made = simulation(item)
    settle(made)
    planner = make_motion_planner("ompl", made.robot, rate=made.rate)
    return SimulatedWorkcell(made, planner, PhysicalLayout(objects=(item,)), streams=partial(generator, 0))
