"""Report about a robot before it is used: limits, hand, reach, self-collisions, a picture."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from nimbus.datagen.doctor.robot_report import ROBOT_SCENE, ArmReport, RobotReport
from nimbus.datagen.episode.layout import Camera, EpisodeKey, Layout, Light, PhysicalLayout, VisualLayout
from nimbus.datagen.execute.planning_scenes import planning_scene
from nimbus.datagen.files import strict_yaml
from nimbus.datagen.files.atomic import replacing
from nimbus.datagen.files.scene_files import scene_file
from nimbus.datagen.geometry.transforms import look_at, make_transform, quat_from_axis_angle
from nimbus.datagen.plan.ik import solve_ik
from nimbus.datagen.random_streams import generator
from nimbus.datagen.robots.mesh_checks import check_meshes
from nimbus.datagen.robots.robot import Manipulator, Robot, load_robot
from nimbus.datagen.robots.urdf import assemble
from nimbus.datagen.simulate.newton import NewtonSimulation
from nimbus.datagen.usd.robot import base_pose
from nimbus.datagen.usd.stage import StageInfo, read_stage

if TYPE_CHECKING:
    from nimbus.datagen.files.strict_yaml import Document
    from nimbus.datagen.plan.scene import PlanningScene

_RATE = 15.0
_HEIGHT = 0.04
"""Height of the tool above the base at which reach is checked, pointing down [m]."""
_RADII = np.arange(0.1, 1.51, 0.05)
_TURNS = np.radians([0, 90, 45, -45])
_DOWN = make_transform((0, 0, 0), (0.0, 1.0, 0.0, 0.0))
_LIGHT = Light(direction=(-0.48, -0.36, -0.8), color=(0.9, 0.88, 0.85), sky=(0.4, 0.42, 0.45), ground=(0.2, 0.2, 0.2))


def check_robot(name_or_path: str, *, picture: Path | None = None) -> RobotReport:
    """Load a robot file, and measure the robot in a scene.

    Args:
        name_or_path: A name from ``scenes/robots``, or the path of a file.
        picture: PNG file to draw the robot into; none by default.

    Raises:
        InputError: The file or its model has an error.
    """
    robot = load_robot(name_or_path)
    check_meshes(robot)
    stage = read_stage(ROBOT_SCENE)
    simulation = NewtonSimulation(stage, robot, rate=_RATE)
    simulation.load(PhysicalLayout(objects=()))
    document = strict_yaml.read(scene_file("robots", name_or_path, kind="robot"))
    arms = tuple(_arm(simulation, stage, robot, one, document) for one in robot.arms)
    notes = tuple(_massless(simulation, robot))
    links = _links(simulation, robot)
    if picture is not None:
        _draw(simulation, stage, robot, picture)
    mass = float(sum(simulation.model.body_mass[simulation.model.body(name).id] for name in links))
    return RobotReport(
        name=robot.name, description=robot.description, links=len(links), mass=mass, arms=arms, notes=notes
    )


def _massless(simulation: NewtonSimulation, robot: Robot) -> Iterator[str]:
    """Yield a note for each link that has a shape and no mass."""
    for link in assemble(robot.pieces, robot=robot.name).findall("link"):
        inertial, name = link.find("inertial/mass"), link.get("name", "")
        shown = link.find("visual") is not None or link.find("collision") is not None
        if shown and (inertial is None or float(inertial.get("value", "0")) == 0.0):
            mass = float(simulation.model.body_mass[simulation.model.body(name).id])
            yield f"link '{name}' has no mass in its model: simulated with {mass:.2f} kg"


def _links(simulation: NewtonSimulation, robot: Robot) -> list[str]:
    model = simulation.model
    bases = {int(model.body_rootid[model.body(one.tool.link).id]) for one in robot.arms}
    return [model.body(index).name for index in range(1, model.nbody) if int(model.body_rootid[index]) in bases]


def _arm(
    simulation: NewtonSimulation, stage: StageInfo, robot: Robot, one: Manipulator, document: Document
) -> ArmReport:
    at = () if len(robot.arms) == 1 else ("arms", one.name)
    scene = planning_scene(simulation, one.name)
    scene.set_world(simulation.data.qpos)
    home = np.array(one.arm.home)
    touching = scene.first_contact(home)
    if touching:
        what = f"in the home posture, {touching[0]} touches {touching[1]}"
        raise document.error((*at, "arm", "home"), what, instead="write another posture, or move it with 'place'")
    world_T_base = make_transform(*base_pose(stage, robot))
    at_home = np.linalg.inv(world_T_base) @ scene.tool_pose(home)
    rows = zip(one.arm.joints, scene.limits, one.arm.velocity_limits, one.arm.acceleration_limits, strict=True)
    joints = tuple(
        {"name": joint, "lower": float(low), "upper": float(high), "velocity": speed, "acceleration": acceleration}
        | {"effort": one.arm.effort_limits[place], "home": one.arm.home[place]}
        for place, (joint, (low, high), speed, acceleration) in enumerate(rows)
    )
    x, y, z = (float(value) for value in at_home[:3, 3])
    return ArmReport(
        name=one.name,
        joints=joints,
        tool_link=one.tool.link,
        tool_home=(x, y, z),
        gripper_joints=one.gripper.joints,
        opening=one.gripper.width,
        reach=_reach(scene, home, robot, one.name),
        watched_pairs=len(scene.watched_pairs),
    )


def _reach(scene: PlanningScene, home: np.ndarray, robot: Robot, arm: str) -> tuple[float, float] | None:
    """Return the range of distances along the line from the base through the tool at home; see `ArmReport.reach`."""
    start = scene.tool_pose(home)
    base = np.array(robot.position[:2])
    ahead = start[:2, 3] - base
    ahead /= max(float(np.linalg.norm(ahead)), 1e-9)
    reached = []
    for index, radius in enumerate(_RADII):
        x, y = base + radius * ahead
        goals = (
            make_transform((x, y, _HEIGHT), quat_from_axis_angle((0, 0, 1), float(turn))) @ _DOWN for turn in _TURNS
        )
        rng = generator(0, "reach", robot.name, arm, index)
        if any(solve_ik(scene, goal, seed_q=home, rng=rng, solutions=1) for goal in goals):
            reached.append(float(radius))
    return (min(reached), max(reached)) if reached else None


def _draw(simulation: NewtonSimulation, stage: StageInfo, robot: Robot, path: Path) -> None:
    from PIL import Image

    from nimbus.datagen.render.scene_renderer import SceneRenderer

    positions = simulation.body_positions()
    links = [simulation.body_names.index(name) for name in _links(simulation, robot)]
    low, high = positions[links].min(axis=0), positions[links].max(axis=0)
    middle, size = (low + high) / 2, float(np.linalg.norm(high - low)) + 0.25
    at = middle + size * np.array([1.25, -0.95, 0.55])
    eye, target = tuple(float(value) for value in at), tuple(float(value) for value in middle)
    turn = look_at(eye, target)
    camera = Camera(name="c", mount="", position=eye, wxyz=turn, vertical_fov=0.75, width=800, height=600)  # type: ignore[arg-type]
    visual = VisualLayout(light=_LIGHT, cameras=(camera,))
    key = EpisodeKey(task="robot", task_hash="", seed=0, index=0)
    renderer = SceneRenderer(stage, robot, stack=1, modalities=("rgb",))
    renderer.load(Layout(key=key, physical=PhysicalLayout(objects=()), visual=visual))
    frames = renderer.render(simulation.body_names, positions[None], simulation.body_wxyz()[None])["c"]
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path, durable=False, shared=True) as temporary:  # replaces a symbolic link instead of following it
        Image.fromarray(np.asarray(frames.rgb)[0]).save(temporary, "PNG")
