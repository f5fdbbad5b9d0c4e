"""Puts a scene together for Newton: every asset is parsed once, worlds are assembled from the parts."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

import newton
import numpy as np
import warp as wp

from nimbus.datagen.layout import PlacedObject
from nimbus.datagen.objects.library import ObjectLibrary
from nimbus.datagen.robot import Robot
from nimbus.datagen.usd.robot import robot_usd
from nimbus.datagen.usd.stage import StageInfo

_GRAVITY_COMPENSATION = "mujoco:gravcomp"
_ROLLING_FRICTION = 2e-3
"""[m] Of household things with dents and seams: what rolls comes to rest within a second or two."""


def _leaf(label: str) -> str:
    return label.rsplit("/", 1)[-1]


@lru_cache(maxsize=256)
def parse_usd(path: Path, *, visuals: bool) -> newton.ModelBuilder:
    """Parse a USD asset; the result is shared, never changed."""
    builder = newton.ModelBuilder()
    newton.solvers.SolverMuJoCo.register_custom_attributes(builder)
    builder.add_usd(str(path), load_visual_shapes=visuals, load_static_visual_shapes=visuals)
    return builder


class SceneBuilder:
    """Assembles worlds of one stage and one robot with any objects.

    Bodies carry short unique labels: a fixture's or object's name, a robot link's name.

    Args:
        stage: The scene.
        robot: The robot on its mount.
        visuals: Load what only cameras see; physics leaves it out.
    """

    def __init__(self, stage: StageInfo, robot: Robot, *, visuals: bool) -> None:
        self.stage, self.robot, self.visuals = stage, robot, visuals
        self._fixed = self._parse_fixed()

    def world(self, objects: Iterable[PlacedObject]) -> newton.ModelBuilder:
        """One world: stage, robot and objects at their places."""
        builder = newton.ModelBuilder()
        newton.solvers.SolverMuJoCo.register_custom_attributes(builder)
        builder.add_builder(self._fixed)
        for item in objects:
            self._add_object(builder, item)
        return builder

    def _parse_fixed(self) -> newton.ModelBuilder:
        builder = newton.ModelBuilder()
        newton.solvers.SolverMuJoCo.register_custom_attributes(builder)
        builder.add_builder(parse_usd(self.stage.path, visuals=self.visuals))
        builder.body_label[:] = [_leaf(label) for label in builder.body_label]
        first_body, first_joint = builder.body_count, builder.joint_count
        w, x, y, z = self.stage.robot_wxyz
        place = wp.transform(wp.vec3(*self.stage.robot_position), wp.quat(x, y, z, w))
        usd = robot_usd(self.robot)  # pyright: ignore[reportArgumentType] (a frozen model is hashable)
        builder.add_builder(parse_usd(usd, visuals=self.visuals), xform=place)
        for body in range(first_body, builder.body_count):
            builder.body_label[body] = _leaf(builder.body_label[body])
        compensation = builder.custom_attributes[_GRAVITY_COMPENSATION]
        values: Any = compensation.values if compensation.values is not None else {}
        for body in range(first_body, builder.body_count):
            values[body] = 1.0
        compensation.values = values
        self._set_gains(builder, first_joint)
        return builder

    def _set_gains(self, builder: newton.ModelBuilder, first_joint: int) -> None:
        """Give every actuated joint its controller, and start at home."""
        joints = {_leaf(builder.joint_label[index]): index for index in range(first_joint, builder.joint_count)}
        for name, index in joints.items():
            builder.joint_label[index] = name
        arm, gripper = self.robot.arm, self.robot.gripper
        for place, name in enumerate(arm.joints):
            gains = (arm.stiffness[place], arm.damping[place], arm.effort_limits[place], arm.armature)
            _set_joint(builder, joints[name], arm.home[place], *gains)
        for name in gripper.joints:
            gains = (gripper.stiffness, gripper.damping, gripper.effort_limit, gripper.armature)
            _set_joint(builder, joints[name], gripper.open, *gains)
        leader, follower = (joints[name] for name in gripper.joints)
        builder.set_joint_mimic(follower, leader)

    def _add_object(self, builder: newton.ModelBuilder, item: PlacedObject) -> None:
        library = ObjectLibrary.open(item.library)
        first_body, first_shape = builder.body_count, builder.shape_count
        w, x, y, z = item.wxyz
        place = wp.transform(wp.vec3(*item.position), wp.quat(x, y, z, w))
        builder.add_builder(parse_usd(library.usd_path(item.kind, item.variant), visuals=self.visuals), xform=place)
        builder.body_label[first_body] = item.name
        ratio = item.mass / builder.body_mass[first_body]
        builder.body_mass[first_body] = item.mass
        builder.body_inertia[first_body] = wp.mat33(np.array(builder.body_inertia[first_body]).reshape(3, 3) * ratio)
        for shape in range(first_shape, builder.shape_count):
            builder.shape_material_mu[shape] = item.friction
            builder.shape_material_mu_rolling[shape] = _ROLLING_FRICTION


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
