"""Assembly of worlds for Newton from assets that are parsed once."""

from __future__ import annotations

import itertools
import tempfile
import warnings
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from nimbus.datagen.arrays import Quaternion
from nimbus.datagen.episode.layout import PlacedObject, Vector, part_label
from nimbus.datagen.errors import InputError
from nimbus.datagen.geometry.mujoco_library import mujoco
from nimbus.datagen.media.picture_files import limit_formats
from nimbus.datagen.objects.libraries import open_library
from nimbus.datagen.objects.model import ObjectModel
from nimbus.datagen.robots.robot import Robot
from nimbus.datagen.simulate.newton_library import newton
from nimbus.datagen.usd.physics_schemas import PART_ARMATURE, contact_friction
from nimbus.datagen.usd.robot import base_pose, robot_usd
from nimbus.datagen.usd.stage import StageInfo

_GRAVITY_COMPENSATION = "mujoco:gravcomp"
_PRIORITY = "mujoco:geom_priority"
ROLLING_FRICTION = 2e-3
"""Rolling friction [m] of household objects with dents and seams; they come to rest within a second or two."""


_GRAZE = 1e-4
"""Distance below which two links of the robot in its home posture count as overlapping and do not collide [m]."""


def _leaf(label: str) -> str:
    return label.rsplit("/", 1)[-1]


@lru_cache(maxsize=256)
def parse_usd(path: Path, *, visuals: bool, anchored: bool = False) -> newton.ModelBuilder:
    """Parse a USD asset; the result is shared and must not be changed.

    Args:
        path: The file.
        visuals: Load purely visual geometry.
        anchored: Fix bodies without a parent to the world.

    Raises:
        InputError: Newton refuses a part of the file.
    """
    builder = newton.ModelBuilder()
    newton.solvers.SolverMuJoCo.register_custom_attributes(builder)
    floating = False if anchored else None
    limit_formats()  # Newton opens the textures of the file
    try:
        builder.add_usd(str(path), load_visual_shapes=visuals, load_static_visual_shapes=visuals, floating=floating)
    except ValueError as error:
        what, instead = f"Newton cannot load this file: {str(error)[:160]!a}", "correct the part, or export it again"
        raise InputError(what, where=str(path), instead=instead) from error
    unmirror(builder)
    return builder


def unmirror(builder: newton.ModelBuilder) -> None:
    """Mirror the points of meshes with a negative scale, which MuJoCo's models cannot have."""
    for shape in range(builder.shape_count):
        mesh, scale = builder.shape_source[shape], np.array(builder.shape_scale[shape], dtype=float)
        if not isinstance(mesh, newton.Mesh) or scale.min() >= 0.0:
            continue
        faces = np.asarray(mesh.indices).reshape(-1, 3)
        # An odd number of mirrored axes turns faces inside out; their reversed order restores them.
        turned = faces[:, ::-1] if scale.prod() < 0.0 else faces
        mirrored = newton.Mesh(
            np.asarray(mesh.vertices) * np.sign(scale),
            turned.flatten(),
            normals=None if mesh.normals is None else np.asarray(mesh.normals) * np.sign(scale),
            uvs=mesh.uvs,
            compute_inertia=False,
            maxhullvert=mesh.maxhullvert,
            color=mesh.color,
            texture=mesh.texture,
        )
        builder.shape_source[shape] = mirrored
        builder.shape_scale[shape] = wp.vec3(*np.abs(scale))


@lru_cache(maxsize=8)
def fixed_world(stage: Path, base: tuple[Vector, Quaternion], robot: Robot, *, visuals: bool) -> newton.ModelBuilder:
    """Add a robot in its home posture to a stage; the result is shared and must not be changed.

    Args:
        stage: The file.
        base: Position [m] and orientation (wxyz) of the robot's mount in the world.
        robot: The robot.
        visuals: Load purely visual geometry.
    """
    builder = newton.ModelBuilder()
    newton.solvers.SolverMuJoCo.register_custom_attributes(builder)
    builder.add_builder(parse_usd(stage, visuals=visuals))
    builder.body_label[:] = [_leaf(label) for label in builder.body_label]
    first_body, first_joint = builder.body_count, builder.joint_count
    position, (w, x, y, z) = base
    place = wp.transform(wp.vec3(*position), wp.quat(x, y, z, w))
    usd = robot_usd(robot)  # pyright: ignore[reportArgumentType] (a frozen model is hashable)
    builder.add_builder(parse_usd(usd, visuals=visuals), xform=place)
    for body in range(first_body, builder.body_count):
        builder.body_label[body] = _leaf(builder.body_label[body])
    _set_all(builder, _GRAVITY_COMPENSATION, range(first_body, builder.body_count), 1.0)
    _set_gains(builder, robot, first_joint)
    if not visuals:
        _ignore_touching(builder, first_body)
    return builder


def _set_gains(builder: newton.ModelBuilder, robot: Robot, first_joint: int) -> None:
    """Set the controller of every actuated joint, and the home posture as the start."""
    joints = {_leaf(builder.joint_label[index]): index for index in range(first_joint, builder.joint_count)}
    for name, index in joints.items():
        builder.joint_label[index] = name
    for one in robot.arms:
        arm, gripper = one.arm, one.gripper
        for place, name in enumerate(arm.joints):
            gains = (arm.stiffness[place], arm.damping[place], arm.effort_limits[place], arm.armature)
            _set_joint(builder, joints[name], arm.home[place], *gains)
        start = gripper.joint_positions(np.array(gripper.open)).tolist()
        for name, position in zip(gripper.joints, start, strict=True):
            gains = (gripper.stiffness, gripper.damping, gripper.effort_limit, gripper.armature)
            _set_joint(builder, joints[name], position, *gains)
            if gripper.friction is not None:  # the model's own damping belongs to its friction
                degree = builder.joint_qd_start[joints[name]]
                builder.joint_friction[degree], builder.joint_damping[degree] = gripper.friction, 0.0
        leader, *followers = gripper.joints
        offsets = (gripper.offsets or (0.0,) * len(gripper.joints))[1:]
        for name, offset, ratio in zip(followers, offsets, gripper.ratios[1:], strict=True):
            builder.set_joint_mimic(joints[name], joints[leader], coeffs=(offset, ratio))


class SceneBuilder:
    """Assembler of worlds of one stage and one robot with any objects.

    Bodies have short unique labels: the name of a fixture, an object or a robot link. A part of an object and its joint
    are labeled as in ``cabinet_0.drawer_0``.

    Args:
        stage: The scene.
        robot: The robot on its mount.
        visuals: Load purely visual geometry, which physics omits.
    """

    def __init__(self, stage: StageInfo, robot: Robot, *, visuals: bool) -> None:
        self.stage, self.robot, self.visuals = stage, robot, visuals
        pose = base_pose(stage, robot)
        self._fixed = fixed_world(stage.path, pose, robot, visuals=visuals)  # pyright: ignore[reportArgumentType]

    def world(self, objects: Iterable[PlacedObject]) -> newton.ModelBuilder:
        """Build one world: stage, robot and objects at their poses; flexible objects are left out."""
        builder = newton.ModelBuilder()
        newton.solvers.SolverMuJoCo.register_custom_attributes(builder)
        builder.add_builder(self._fixed)
        for item in objects:
            self._add_object(builder, item)
        return builder

    def _add_object(self, builder: newton.ModelBuilder, item: PlacedObject) -> None:
        library = open_library(item.library)
        model = library.model(item.kind, item.variant, item.scale)
        if model.is_flexible:
            return
        first_body, first_shape, first_joint = builder.body_count, builder.shape_count, builder.joint_count
        w, x, y, z = item.wxyz
        place = wp.transform(wp.vec3(*item.position), wp.quat(x, y, z, w))
        usd = library.usd_path(item.kind, item.variant, item.scale)
        builder.add_builder(parse_usd(usd, visuals=self.visuals, anchored=item.anchored), xform=place)
        builder.body_label[first_body] = item.name
        if model.parts:
            for body in range(first_body + 1, builder.body_count):
                builder.body_label[body] = part_label(item.name, _leaf(builder.body_label[body]))
            _set_part_joints(builder, item, model, first_joint)
        # Masses are scaled to the drawn mass of the object; inertias are proportional and scaled by the same factor.
        total = sum(builder.body_mass[first_body:])
        for body in range(first_body, builder.body_count):
            ratio = item.mass / total
            builder.body_mass[body] *= ratio
            builder.body_inertia[body] = wp.mat33(np.array(builder.body_inertia[body]).reshape(3, 3) * ratio)
        if not model.parts:
            builder.body_mass[first_body] = item.mass
        shapes = range(first_shape, builder.shape_count)
        for shape in shapes:
            builder.shape_material_mu[shape] = item.friction
            builder.shape_material_mu_rolling[shape] = ROLLING_FRICTION
        if item.friction != model.friction:
            # MuJoCo uses the larger friction of two surfaces. Objects are smoother than most surfaces, so their geoms
            # get priority, with which their own friction applies.
            _set_friction(builder, shapes, contact_friction(item.friction, model.friction))


def compile_world(builder: newton.ModelBuilder, **options: Any) -> mujoco.MjModel:
    """Compile a world into a MuJoCo model; the builder stays unchanged.

    Collisions are switched off while Newton finalizes the builder. Otherwise half of the time is spent on hulls for
    Newton's own collision pipeline, which is not used because MuJoCo finds the contacts.

    Args:
        builder: The world.
        options: Options of ``newton.solvers.SolverMuJoCo``.
    """
    flags = builder.shape_flags
    builder.shape_flags = [flag & ~int(newton.ShapeFlags.COLLIDE_SHAPES) for flag in flags]
    try:
        with warnings.catch_warnings():
            # Inertias of files with few digits violate the triangle inequality by their rounding, which check_model
            # accepts and Newton corrects. Larger violations are refused there.
            warnings.filterwarnings("ignore", message="Inertia validation corrected")
            model = builder.finalize(device="cpu")
    finally:
        builder.shape_flags = flags
    assert model.shape_flags is not None
    # The flags are restored before MuJoCo's model is made, which reads them.
    model.shape_flags.assign(flags)
    return newton.solvers.SolverMuJoCo(model, use_mujoco_cpu=True, **options).mj_model


def describe_world(builder: newton.ModelBuilder) -> tuple[mujoco.MjModel, str]:
    """Compile a world, and return it with its description in MJCF."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "world.xml"
        model = compile_world(builder, cone="pyramidal", impratio=1.0, solver="cg", save_to_mjcf=str(path))
        return model, path.read_text(encoding="utf-8")


def start_positions(model: mujoco.MjModel, builder: newton.ModelBuilder) -> NDArray[np.float64]:
    """Return the builder's start positions in MuJoCo's order: (nq,) [m, rad, unit quaternions wxyz]."""
    qpos = np.zeros(model.nq)
    joint_of = {label: index for index, label in enumerate(builder.joint_label)}
    body_of = {label: index for index, label in enumerate(builder.body_label)}
    for joint in range(model.njnt):
        address = model.jnt_qposadr[joint]
        if model.jnt_type[joint] == mujoco.mjtJoint.mjJNT_FREE:
            transform: Any = builder.body_q[body_of[model.body(model.jnt_bodyid[joint]).name]]
            x, y, z, qx, qy, qz, qw = (float(value) for value in transform)
            qpos[address : address + 7] = (x, y, z, qw, qx, qy, qz)
        else:
            qpos[address] = builder.joint_q[builder.joint_q_start[joint_of[model.joint(joint).name]]]
    return qpos


def _set_friction(builder: newton.ModelBuilder, shapes: Iterable[int], friction: float) -> None:
    """Set the friction of shapes, with priority over the friction of any surface that they touch."""
    for shape in shapes:
        builder.shape_material_mu[shape] = friction
    _set_all(builder, _PRIORITY, shapes, 1)


def _set_all(builder: newton.ModelBuilder, name: str, places: Iterable[int], value: float) -> None:
    """Set a MuJoCo attribute of bodies or shapes."""
    attribute = builder.custom_attributes[name]
    values: Any = attribute.values if attribute.values is not None else {}
    attribute.values = values | dict.fromkeys(places, value)


def _ignore_touching(builder: newton.ModelBuilder, first_body: int) -> None:
    """Exclude collisions between links that overlap at home, as in the planner; convex hulls are wider than links."""
    model, bodies = compile_world(builder), {label: body for body, label in enumerate(builder.body_label)}
    data = mujoco.MjData(model)
    data.qpos[:] = start_positions(model, builder)
    mujoco.mj_forward(model, data)
    for geoms in data.contact.geom[data.contact.dist < _GRAZE]:
        one, other = (bodies.get(model.body(body).name, -1) for body in model.geom_bodyid[geoms])
        if min(one, other) >= first_body:
            for pair in itertools.product(builder.body_shapes[one], builder.body_shapes[other]):
                builder.add_shape_collision_filter_pair(*pair)


def _set_part_joints(builder: newton.ModelBuilder, item: PlacedObject, model: ObjectModel, first_joint: int) -> None:
    """Set passive joints: no controller, but damping, dry friction and springs, which USD cannot express in full."""
    joints = {_leaf(builder.joint_label[index]): index for index in range(first_joint, builder.joint_count)}
    for part in model.parts:
        index, joint = joints[part.name], part.joint
        coordinate, degree = builder.joint_q_start[index], builder.joint_qd_start[index]
        builder.joint_label[index] = part_label(item.name, part.name)
        builder.joint_q[coordinate] = item.joints.get(part.name, 0.0)
        builder.joint_target_mode[degree] = int(newton.JointTargetMode.NONE)
        builder.joint_target_ke[degree] = builder.joint_target_kd[degree] = 0.0
        builder.joint_stiffness[degree], builder.joint_damping[degree] = joint.stiffness, joint.damping * item.damping
        builder.joint_friction[degree] = joint.friction * item.damping
        builder.joint_armature[degree] = PART_ARMATURE[joint.kind]


def _set_joint(
    builder: newton.ModelBuilder,
    joint: int,
    position: float,
    stiffness: float,
    damping: float,
    effort: float,
    armature: float,
) -> None:
    coordinate, degree = builder.joint_q_start[joint], builder.joint_qd_start[joint]
    builder.joint_q[coordinate] = position
    builder.joint_target_mode[degree] = int(newton.JointTargetMode.POSITION)
    builder.joint_target_ke[degree] = stiffness
    builder.joint_target_kd[degree] = damping
    builder.joint_effort_limit[degree] = effort
    builder.joint_armature[degree] = armature
