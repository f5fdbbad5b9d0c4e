"""A robot, a table with bins and one or two objects, for tests of physics, execution, conditions and skills."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache, partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from nimbus.datagen.episode.layout import PhysicalLayout, PlacedObject
from nimbus.datagen.episode.trajectory import Reason
from nimbus.datagen.execute.planner import make_motion_planner, settle
from nimbus.datagen.execute.workcell import SimulatedWorkcell
from nimbus.datagen.files.strict_yaml import StrictModel
from nimbus.datagen.geometry.transforms import quat_from_axis_angle, quat_multiply
from nimbus.datagen.load.scene_loader import load_assets
from nimbus.datagen.objects.libraries import open_library
from nimbus.datagen.random_streams import generator
from nimbus.datagen.robots.robot import load_robot
from nimbus.datagen.simulate.newton import NewtonSimulation
from nimbus.datagen.tasks.plugins import discover_components
from nimbus.datagen.tasks.scene_assets import SceneAssets
from nimbus.datagen.tasks.statements import Predicate
from nimbus.datagen.tasks.task import Task, parse_task
from nimbus.datagen.tasks.task_file import Region
from nimbus.datagen.usd.stage import read_stage

TEXT = """\
robot: panda
scene: tabletop
regions:
  start: {on: table, center: [0.5, 0.0], size: [0.4, 0.5]}
objects:
  items: {library: trash, kinds: [can], count: 1, region: start, yaw: any}
steps:
  - for item in items:
      - pick: item
      - place: {object: item, into: "bins[item.class]"}
  - home
success:
  - for item in items:
      - inside: {object: item, container: "bins[item.class]"}
      - at_rest: item
  - gripper_clear
  - fixtures_unmoved
  - nothing_on_floor
cameras:
  front: {position: [1.5, 0.0, 0.9], look_at: [0.45, 0.0, 0.05], vertical_fov: 42 deg, size: [64, 48]}
instructions: ["Sort the trash."]
"""

Model = TypeVar("Model", bound=StrictModel)

discover_components()


def make(model: type[Model], **parameters: Any) -> Model:
    """Make a skill, a condition or a randomizer; other parameters have their defaults."""
    return model(**parameters)


@lru_cache
def task(text: str = TEXT) -> Task:
    return parse_task(text)


@lru_cache
def assets() -> SceneAssets:
    return load_assets(task())


def thing(
    name: str = "items_0", *, kind: str = "can", x: float = 0.5, y: float = 0.0, z: float = 0.0, rest: str = "upright"
) -> PlacedObject:
    """Return an object on the table or ``z`` [m] above it, with its graspable width along y."""
    model = open_library("trash").model(kind, 0)
    pose = model.rest_pose(rest) or model.rest_poses[0]
    return PlacedObject(
        name=name,
        group="items",
        library="trash",
        kind=kind,
        variant=0,
        object_class=model.object_class,
        position=(x, y, z + pose.height + 0.0005),
        wxyz=quat_multiply(quat_from_axis_angle((0, 0, 1), 0.3), pose.wxyz),
        rest_pose=pose.name,
        mass=model.mass,
        friction=model.friction,
    )


def layout(*things: PlacedObject) -> PhysicalLayout:
    return PhysicalLayout(objects=things)


def simulation(*things: PlacedObject, rate: float = 15.0) -> NewtonSimulation:
    """Return a separate simulation, loaded and not yet settled."""
    made = NewtonSimulation(read_stage("tabletop"), load_robot("panda"), rate=rate)
    made.load(layout(*things))
    return made


def workcell(
    *things: PlacedObject, seed: int = 0, rate: float = 15.0, regions: Mapping[str, Region] | None = None
) -> SimulatedWorkcell:
    """Return a settled workcell for skills."""
    made = simulation(*things, rate=rate)
    settle(made)
    planner = make_motion_planner("ompl", made.robot, rate=made.rate)
    return SimulatedWorkcell(
        made, planner, layout(*things), streams=partial(generator, seed), regions=dict(regions or {})
    )


def reason(cell: SimulatedWorkcell, condition: Predicate) -> Reason:
    """Return the reason why a condition does not hold; a failure has a line of detail."""
    failure = condition.failure(cell)
    if failure is None:
        return Reason.NONE
    assert not failure.success and failure.detail and "\n" not in failure.detail
    return failure.reason


def put(made: NewtonSimulation, name: str, position: ArrayLike, wxyz: ArrayLike = (1, 0, 0, 0)) -> None:
    """Set the pose of a free body, at rest."""
    import mujoco

    joint = int(made.model.body_jntadr[made.model.body(name).id])
    address, degree = int(made.model.jnt_qposadr[joint]), int(made.model.jnt_dofadr[joint])
    made.data.qpos[address : address + 7] = np.append(position, wxyz)
    made.data.qvel[degree : degree + 6] = 0.0
    mujoco.mj_forward(made.model, made.data)


def home_action(made: NewtonSimulation) -> np.ndarray:
    """Return the action that keeps the arm at home with open fingers."""
    return np.append(made.robot.arm.home, made.robot.gripper.open)
