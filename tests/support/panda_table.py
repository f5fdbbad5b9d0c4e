"""A Panda at a table with three bins and a few loose objects, composed from the robot package's own meshes."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import mujoco
import numpy as np

from nimbus.datagen.plan.scene import PlanningScene

JOINTS = tuple(f"panda_joint{index}" for index in range(1, 8))
GRIPPER = ("panda_hand", "panda_leftfinger", "panda_rightfinger")
ROBOT = tuple(f"panda_link{index}" for index in range(8)) + GRIPPER
HOME = np.array([0.0, -0.785, 0.0, -2.356, 0.0, 1.571, 0.785])
HAND_T_TOOL = np.eye(4)
HAND_T_TOOL[2, 3] = 0.1034
VELOCITY = np.array([2.175] * 4 + [2.61] * 3)
ACCELERATION = np.array([15.0, 7.5, 10.0, 12.5, 15.0, 20.0, 20.0])
BINS = {"left": (0.45, 0.45), "right": (0.45, -0.45), "back": (0.0, -0.55)}
"""Centers of bins on the table, 0.28 m wide and 0.15 m high."""


def _panda() -> mujoco.MjSpec:
    cmeel = importlib.util.find_spec("cmeel")
    assert cmeel is not None and cmeel.submodule_search_locations
    share = Path(cmeel.submodule_search_locations[0]).parent / "cmeel.prefix/share/example-robot-data"
    text = (share / "robots/panda_description/urdf/panda.urdf").read_text()
    text = re.sub(r"<visual>.*?</visual>", "", text, flags=re.S)
    text = text.replace("package://example-robot-data", str(share))
    compiler = '<mujoco><compiler fusestatic="false" strippath="false" balanceinertia="true"/></mujoco>'
    spec = mujoco.MjSpec.from_string(text.replace("</robot>", compiler + "</robot>"))
    for body in spec.bodies:
        # Frames without mass are welded to a link; only a compiled model needs a mass.
        if body.mass == 0 and body.name:
            body.mass, body.inertia, body.explicitinertial = 1e-3, (1e-6, 1e-6, 1e-6), True
    return spec


def _add_box(spec: mujoco.MjSpec, position: tuple[float, ...], half: tuple[float, ...]) -> None:
    spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_BOX, pos=position, size=half)


def _add_bin(spec: mujoco.MjSpec, x: float, y: float, *, half: float = 0.14, wall: float = 0.004) -> None:
    _add_box(spec, (x, y, wall), (half, half, wall))
    for sign in (-1, 1):
        _add_box(spec, (x + sign * half, y, 0.075), (wall, half, 0.075))
        _add_box(spec, (x, y + sign * half, 0.075), (half, wall, 0.075))


def _add_cubby(spec: mujoco.MjSpec, x: float, y: float, *, half: float, roof: float) -> None:
    """Add walls on three sides and a roof; the cubby is open towards the middle of the table."""
    _add_box(spec, (x, y, roof), (half, half, 0.005))
    _add_box(spec, (x, y + np.sign(y) * half, 0.5 * roof), (half, 0.005, 0.5 * roof))
    for sign in (-1, 1):
        _add_box(spec, (x + sign * half, y, 0.5 * roof), (0.005, half, 0.5 * roof))


def table_model(*, cubby: bool = False, half: float = 0.19, roof: float = 0.5) -> mujoco.MjModel:
    """Panda, table with its top at z = 0, three bins, and four loose objects as free bodies. With ``cubby``, the left
    bin stands in a cubby with this half width and height of the roof [m].
    """
    spec = _panda()
    _add_box(spec, (0.45, 0.0, -0.025), (0.6, 0.9, 0.025))
    for x, y in BINS.values():
        _add_bin(spec, x, y)
    if cubby:
        _add_cubby(spec, *BINS["left"], half=half, roof=roof)
    shapes = {
        "carton": (mujoco.mjtGeom.mjGEOM_BOX, (0.02, 0.03, 0.05)),
        "can": (mujoco.mjtGeom.mjGEOM_CYLINDER, (0.028, 0.055, 0.0)),
        "block": (mujoco.mjtGeom.mjGEOM_BOX, (0.02, 0.02, 0.02)),
        "stick": (mujoco.mjtGeom.mjGEOM_CYLINDER, (0.015, 0.08, 0.0)),
    }
    for index, (name, (shape, size)) in enumerate(shapes.items()):
        body = spec.worldbody.add_body(
            name=name, pos=(0.4 + 0.1 * (index % 2), -0.15 + 0.1 * index, size[2] or size[1])
        )
        body.add_freejoint()
        body.add_geom(type=shape, size=size)
    return spec.compile()


def make_scene(model: mujoco.MjModel, *, margin: float = 0.004) -> PlanningScene:
    """Return the planning scene of that model, with open fingers."""
    scene = PlanningScene(
        model,
        arm_joints=JOINTS,
        tool_body="panda_hand",
        body_T_tool=HAND_T_TOOL,
        robot_bodies=ROBOT,
        gripper_bodies=GRIPPER,
        margin=margin,
        home=HOME,
    )
    scene.set_world(start_positions(model))
    return scene


def start_positions(model: mujoco.MjModel) -> np.ndarray:
    """Return the positions of the model, with the arm at home and the fingers open."""
    qpos = np.array(model.qpos0)
    qpos[[model.joint(name).qposadr[0] for name in JOINTS]] = HOME
    for name in ("panda_finger_joint1", "panda_finger_joint2"):
        qpos[model.joint(name).qposadr[0]] = 0.04
    return qpos


def top_down(x: float, y: float, z: float, yaw: float = 0.0) -> np.ndarray:
    """Return ``world_T_tool`` of a hand that points straight down."""
    pose = np.eye(4)
    pose[:2, :2] = [[np.cos(yaw), np.sin(yaw)], [np.sin(yaw), -np.cos(yaw)]]
    pose[2, 2] = -1.0
    pose[:3, 3] = x, y, z
    return pose
