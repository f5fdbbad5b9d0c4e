"""A small scene for the tests of rendering: the tabletop stage, the Panda, three objects, two cameras."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from nimbus.datagen.episode.layout import (
    Camera,
    EpisodeKey,
    Layout,
    Light,
    PhysicalLayout,
    PlacedObject,
    SurfaceLook,
    VisualLayout,
)
from nimbus.datagen.episode.trajectory import Outcome, Reason, StartState, Trajectory
from nimbus.datagen.geometry.transforms import look_at
from nimbus.datagen.objects.libraries import open_library
from nimbus.datagen.render.scene_renderer import SceneRenderer
from nimbus.datagen.robots.robot import load_robot
from nimbus.datagen.simulate.newton import NewtonSimulation
from nimbus.datagen.usd.stage import read_stage

STEPS = 5
LIGHT = Light(direction=(-0.48, -0.36, -0.8), color=(0.9, 0.88, 0.85), sky=(0.4, 0.42, 0.45), ground=(0.2, 0.2, 0.2))
FRONT_AT, WRIST_AT = (1.45, 0.0, 0.95), (0.085, 0.0, 0.0)


def layout(
    *, width: int = 64, height: int = 48, surfaces: dict[str, SurfaceLook] | None = None, light: Light = LIGHT
) -> Layout:
    library = open_library("trash")
    objects = []
    for place, kind in enumerate(library.kinds[:3]):
        model = library.model(kind, 0)
        rest = model.rest_poses[0]
        objects.append(
            PlacedObject(
                name=f"items_{place}",
                group="items",
                library="trash",
                kind=kind,
                variant=0,
                object_class=model.object_class,
                position=(0.45 + 0.06 * place, -0.15 + 0.15 * place, rest.height),
                wxyz=rest.wxyz,
                rest_pose=rest.name,
                mass=model.mass,
                friction=model.friction,
            )
        )
    front = Camera(
        name="front",
        mount="",
        position=FRONT_AT,
        wxyz=look_at(FRONT_AT, (0.28, 0, 0.15)),
        vertical_fov=0.84,
        width=width,
        height=height,
    )
    wrist = Camera(
        name="wrist",
        mount="panda_hand",
        position=WRIST_AT,
        wxyz=look_at(WRIST_AT, (0.015, 0, 0.2), up=(1, 0, 0)),
        vertical_fov=math.radians(70),
        width=width,
        height=height,
    )
    shown = {"table": SurfaceLook(texture="wood", texture_seed=1)} if surfaces is None else surfaces
    return Layout(
        key=EpisodeKey(task="render", task_hash="0", seed=0, index=0),
        physical=PhysicalLayout(objects=tuple(objects)),
        visual=VisualLayout(light=light, cameras=(front, wrist), surfaces=shown),
    )


@lru_cache
def stage_and_robot():
    return read_stage("tabletop"), load_robot("panda")


@lru_cache
def states():
    """Return names, positions and orientations of all bodies while the arm moves a little."""
    stage, robot = stage_and_robot()
    simulation = NewtonSimulation(stage, robot, rate=15)
    simulation.load(layout().physical)
    action = np.append(robot.arm.home, robot.gripper.open)
    positions, wxyz = [], []
    for step in range(STEPS):
        action[0] = 0.1 * step
        simulation.advance(action)
        positions.append(simulation.body_positions())
        wxyz.append(simulation.body_wxyz())
    return simulation.body_names, np.array(positions), np.array(wxyz)


def trajectory(*, success: bool = True) -> Trajectory:
    """Return the same small motion as a trajectory."""
    names, positions, wxyz = states()
    nothing = np.zeros((STEPS, 0))
    return Trajectory(
        rate=15.0,
        time=np.arange(STEPS) / 15,
        joint_names=(),
        joint_positions=nothing,
        joint_velocities=nothing,
        action_names=(),
        actions=nothing,
        body_names=names,
        body_positions=positions,
        body_wxyz=wxyz,
        segments=(),
        outcome=Outcome(success=success, reason=Reason.NONE if success else Reason.NO_IK),
        start=StartState(joint_positions=np.zeros(0), joint_velocities=np.zeros(0)),
    )


def render(shown: Layout, *, stack: int = STEPS, steps: slice = slice(None), shadows: bool = True):
    """Return frames by camera, and the renderer."""
    stage, robot = stage_and_robot()
    names, positions, wxyz = states()
    renderer = SceneRenderer(stage, robot, stack=stack, shadows=shadows)
    renderer.load(shown)
    first = steps.start or 0
    return renderer.render(names, positions[steps], wxyz[steps], first_step=first), renderer
