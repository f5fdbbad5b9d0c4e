"""Export of a layout or episode as one USD stage with scene, robot, objects and cameras, for any USD program."""
# The stubs of pxr say that every Define and Apply returns None.
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.episode.layout import Camera, Layout, PhysicalLayout, PlacedObject, RobotSetup, part_label
from nimbus.datagen.errors import InputError
from nimbus.datagen.geometry.transforms import make_transform, quat_from_matrix
from nimbus.datagen.objects.articulated.pose import object_T_part
from nimbus.datagen.objects.articulated.usd import BASE
from nimbus.datagen.objects.model import FLEXIBLE_NOUNS
from nimbus.datagen.robots.robot import Robot
from nimbus.datagen.usd.materials import apply_materials
from nimbus.datagen.usd.physics_schemas import (
    adapt_part_joint,
    adapt_robot,
    contact_friction,
    refine_contacts,
    remove_articulation_root,
    use_own_friction,
)
from nimbus.datagen.usd.stacked_stage import add_light, define_camera, refer, set_pose
from nimbus.datagen.usd.stage import StageInfo, layout_stage
from nimbus.datagen.usd.stage_meshes import PictureFolder

SCENE, ROBOT, OBJECTS = "/World/scene", "/World/robot", "/World/objects"
_FAR = 100.0
"""Far clipping distance of the cameras [m]."""


@dataclass(frozen=True, kw_only=True)
class BodyMotion:
    """Poses of all bodies at one or several times."""

    names: Sequence[str]
    positions: FloatArray
    """(T, B, 3) [m], world frame"""
    wxyz: FloatArray
    """(T, B, 4)"""
    rate: float = 0.0
    """Rate of the motion [Hz]; unused when T is 1."""


def write_layout_stage(
    path: Path, stage: StageInfo, robot: Robot, layout: Layout, motion: BodyMotion | None = None
) -> None:
    """Write a stage with physics: bodies, masses, friction, drives and their targets.

    Args:
        path: File to write; it must not be open in this process.
        stage: The scene.
        robot: The robot.
        layout: Objects, cameras and light.
        motion: Poses of all bodies. Several times give an animation, in which physics is off. By default the robot has
            the posture of its file.

    Raises:
        InputError: An animation has cloth or a cable, whose mesh would not bend.
    """
    from pxr import Usd, UsdGeom, UsdPhysics

    if motion is not None and len(motion.positions) > 1:
        _refuse_flexible(layout)

    path.parent.mkdir(parents=True, exist_ok=True)
    stage = layout_stage(stage, layout.physical)
    written: Any = Usd.Stage.CreateNew(str(path))
    UsdGeom.SetStageMetersPerUnit(written, 1.0)
    UsdGeom.SetStageUpAxis(written, UsdGeom.Tokens.z)
    UsdPhysics.SetStageKilogramsPerUnit(written, 1.0)
    written.SetDefaultPrim(UsdGeom.Xform.Define(written, "/World").GetPrim())
    scene = UsdPhysics.Scene.Define(
        written, "/PhysicsScene"
    )  # Isaac Sim uses the physics scene at this path; otherwise it creates another one
    _add_things(written, path, stage, robot, layout.physical)
    materials = [prim for prim in Usd.PrimRange(written.GetPrimAtPath(OBJECTS)) if prim.HasAPI(UsdPhysics.MaterialAPI)]
    use_own_friction(scene.GetPrim(), materials)
    _dress(written, path, stage, layout)
    bodies = body_prims(written, stage)
    _set_drives(written, robot, layout.physical.robot)
    refine_contacts(written.GetPrimAtPath("/World"))
    if motion is not None:
        _move(written, bodies, motion)
        if len(motion.positions) > 1:
            clear_static_poses(written)
    for camera in layout.visual.cameras:
        _add_camera(written, camera, bodies)
    add_light(written, layout.visual.light, layout.visual.dome)
    written.GetRootLayer().Save()


def _refuse_flexible(layout: Layout) -> None:
    from nimbus.datagen.objects.libraries import open_library

    for item in layout.physical.objects:
        if bends := open_library(item.library).kind(item.kind).bends_as:
            what = f"'{item.name}' is {FLEXIBLE_NOUNS[bends]}, and an animation in USD has rigid bodies only"
            instead = "give the task instead, which writes the layout alone, or use 'nimbus view'"
            raise InputError(what, where=layout.key.id, instead=instead)


def body_prims(stage: Any, info: StageInfo) -> dict[str, Any]:
    """Return the prim of every body of an exported stage, by the body's name in trajectories."""
    from pxr import UsdPhysics

    found = {}
    for prim in stage.Traverse():
        if prim.HasAPI(UsdPhysics.RigidBodyAPI):
            found[_body_name(str(prim.GetPath()))] = prim
    for name, fixture in info.fixtures.items():
        below = fixture.prim_path.split("/", 2)
        found[name] = stage.GetPrimAtPath(f"{SCENE}/{below[2]}")
    return found


def _body_name(path: str) -> str:
    """Return the name of a link, fixture or object; bodies of articulated objects are named as in trajectories."""
    *above, leaf = path.split("/")
    if "/".join(above[:-1]) != OBJECTS:
        return leaf
    return above[-1] if leaf == BASE else part_label(above[-1], leaf)


def _add_things(written: Any, path: Path, stage: StageInfo, robot: Robot, layout: PhysicalLayout) -> None:
    from pxr import UsdGeom

    from nimbus.datagen.objects.libraries import open_library
    from nimbus.datagen.usd.robot import moved_base_pose, robot_usd

    refer(written, SCENE, stage.path, path)
    usd = robot_usd(robot)  # pyright: ignore[reportArgumentType] (a frozen model is hashable)
    set_pose(refer(written, ROBOT, usd, path), *moved_base_pose(stage, robot, layout.robot))
    UsdGeom.Scope.Define(written, OBJECTS)
    for item in layout.objects:
        usd = open_library(item.library).usd_path(item.kind, item.variant, item.scale)
        prim = refer(written, f"{OBJECTS}/{item.name}", usd, path)
        set_pose(prim, item.position, item.wxyz)
        _set_physics(prim, item)
        _set_joints(written, prim, item)


def _dress(written: Any, path: Path, stage: StageInfo, layout: Layout) -> None:
    """Apply tints and textures of the layout; images are written to a folder beside the file."""
    surfaces, folder = layout.visual.surfaces, PictureFolder(path.with_name(f"{path.stem}_textures"))
    for name, look in surfaces.items():
        fixture = stage.fixtures.get(name)
        places = (fixture.prim_path,) if fixture else stage.roles.get(name, ())
        wanted = [f"{SCENE}/{place.split('/', 2)[2]}" for place in places] or [f"{OBJECTS}/{name}"]
        for place in wanted:
            if prim := written.GetPrimAtPath(place):
                apply_materials(prim, look, textures=folder, role=name)


def _set_physics(prim: Any, item: PlacedObject) -> None:
    """Set mass and friction of this episode; the inertia is scaled with the mass."""
    from pxr import Usd, UsdPhysics

    from nimbus.datagen.objects.libraries import open_library

    friction = contact_friction(item.friction, open_library(item.library).model(item.kind, item.variant).friction)
    masses: list[Any] = [UsdPhysics.MassAPI(below) for below in Usd.PrimRange(prim) if below.HasAPI(UsdPhysics.MassAPI)]
    ratio = item.mass / sum(mass.GetMassAttr().Get() for mass in masses)
    for mass in masses:
        mass.GetMassAttr().Set(mass.GetMassAttr().Get() * ratio if len(masses) > 1 else item.mass)
        mass.GetDiagonalInertiaAttr().Set(mass.GetDiagonalInertiaAttr().Get() * ratio)
    for below in Usd.PrimRange(prim):
        if below.HasAPI(UsdPhysics.MaterialAPI):
            material: Any = UsdPhysics.MaterialAPI(below)
            material.GetStaticFrictionAttr().Set(friction)
            material.GetDynamicFrictionAttr().Set(friction)


def _set_joints(written: Any, prim: Any, item: PlacedObject) -> None:
    """Set parts to their initial positions, with the damping of this episode; fix anchored objects to the world."""
    from pxr import Gf, UsdPhysics

    from nimbus.datagen.objects.libraries import open_library

    model = open_library(item.library).model(item.kind, item.variant, item.scale)
    for part in model.parts:
        place = object_T_part(part, item.joints.get(part.name, 0.0))
        set_pose(written.GetPrimAtPath(f"{prim.GetPath()}/{part.name}"), place[:3, 3], quat_from_matrix(place[:3, :3]))
        joint = written.GetPrimAtPath(f"{prim.GetPath()}/joints/{part.name}")
        drive: Any = UsdPhysics.DriveAPI(joint, "angular" if part.joint.kind == "hinge" else "linear")
        drive.GetDampingAttr().Set(drive.GetDampingAttr().Get() * item.damping)
        adapt_part_joint(joint, part.joint.kind, friction=part.joint.friction * item.damping)
    if model.parts and not item.anchored:
        # PhysX would treat the prim as the root link of a floating articulation.
        remove_articulation_root(prim)
        UsdPhysics.ArticulationRootAPI.Apply(written.GetPrimAtPath(f"{prim.GetPath()}/{BASE}"))
    if item.anchored:
        body = f"{prim.GetPath()}/{BASE}" if model.parts else str(prim.GetPath())
        anchor: Any = UsdPhysics.FixedJoint.Define(written, f"{prim.GetPath()}/anchor")
        anchor.CreateBody1Rel().SetTargets([body])
        anchor.CreateLocalPos0Attr(item.position)
        anchor.CreateLocalRot0Attr(Gf.Quatf(*item.wxyz))


def _set_drives(written: Any, robot: Robot, setup: RobotSetup) -> None:
    """Set position controllers to the home posture with this episode's gains; USD has angles in degrees."""
    from pxr import UsdPhysics

    gains: dict[str, tuple[float, float, float, float]] = {}
    armatures: dict[str, float] = {}
    for one in robot.arms:
        arm, gripper = one.arm, one.gripper
        gains |= {
            name: (
                arm.stiffness[place] * setup.stiffness,
                arm.damping[place] * setup.damping,
                arm.effort_limits[place],
                arm.home[place],
            )
            for place, name in enumerate(arm.joints)
        }
        gains |= {
            name: (gripper.stiffness, gripper.damping, gripper.effort_limit, position)
            for name, position in zip(
                gripper.joints, gripper.joint_positions(np.array(gripper.open)).tolist(), strict=True
            )
        }
        armatures |= dict.fromkeys(arm.joints, arm.armature) | dict.fromkeys(gripper.joints, gripper.armature)
    adapt_robot(written.GetPrimAtPath(ROBOT), armatures)
    for prim in written.Traverse():
        if prim.GetName() not in gains or not prim.IsA(UsdPhysics.Joint):
            continue
        stiffness, damping, effort, target = gains[prim.GetName()]
        turns = prim.IsA(UsdPhysics.RevoluteJoint)
        unit = math.degrees(1.0) if turns else 1.0
        drive = UsdPhysics.DriveAPI.Apply(prim, "angular" if turns else "linear")
        drive.CreateTypeAttr(UsdPhysics.Tokens.force)
        drive.CreateStiffnessAttr(stiffness / unit)
        drive.CreateDampingAttr(damping / unit)
        drive.CreateMaxForceAttr(effort)
        drive.CreateTargetPositionAttr(target * unit)


def _move(written: Any, bodies: Mapping[str, Any], motion: BodyMotion) -> None:
    """Set every body's pose in the frame of its parent body."""
    from pxr import Usd, UsdGeom

    times = [Usd.TimeCode.Default()]
    if len(motion.positions) > 1:
        times = [Usd.TimeCode(step) for step in range(len(motion.positions))]
        written.SetTimeCodesPerSecond(motion.rate)
        written.SetStartTimeCode(0)
        written.SetEndTimeCode(len(times) - 1)
    rows = {name: row for row, name in enumerate(motion.names) if name in bodies}
    owner = {bodies[name].GetPath(): name for name in rows}
    still: Any = UsdGeom.XformCache()
    hung = {name: _hangs_on(bodies[name], owner, still) for name in rows}
    matrices = {
        name: [make_transform(motion.positions[t, row], motion.wxyz[t, row]) for t in range(len(times))]
        for name, row in rows.items()
    }
    for name in rows:
        base, base_T_parent = hung[name]
        for t, time in enumerate(times):
            parent = (matrices[base][t] if base else np.eye(4)) @ base_T_parent
            local = np.linalg.inv(parent) @ matrices[name][t]
            set_pose(bodies[name], local[:3, 3], quat_from_matrix(local[:3, :3]), time=time)


def clear_static_poses(written: Any) -> None:
    """Switch physics off for everything that moves, because physics ignores the time samples of dynamic bodies.

    Joints are deactivated and not only disabled, because USD does not allow joints between disabled bodies.
    """
    from pxr import UsdPhysics

    prims = list(written.Traverse())
    for prim in prims:
        if prim.HasAPI(UsdPhysics.RigidBodyAPI):
            UsdPhysics.RigidBodyAPI(prim).CreateRigidBodyEnabledAttr(False)
        remove_articulation_root(prim)
    for path in [prim.GetPath() for prim in prims if prim.IsA(UsdPhysics.Joint)]:
        if joint := written.GetPrimAtPath(path):  # a joint below another one is already inactive
            joint.SetActive(False)


def _hangs_on(prim: Any, owner: Mapping[Any, str], still: Any) -> tuple[str, FloatArray]:
    """Return the nearest body above a prim, empty for none, and the pose of the prim's parent in that body's frame."""
    parent = prim.GetParent()
    above = parent
    while above and not above.IsPseudoRoot():
        if above.GetPath() in owner:
            matrix, _ = still.ComputeRelativeTransform(parent, above) if parent != above else (None, None)
            return owner[above.GetPath()], np.eye(4) if matrix is None else np.array(matrix).T
        above = above.GetParent()
    return "", np.array(still.GetLocalToWorldTransform(parent)).T


def _add_camera(written: Any, camera: Camera, bodies: Mapping[str, Any]) -> None:
    from pxr import UsdGeom

    if camera.mount:
        if not (mount := bodies.get(camera.mount)):
            what = f"the camera '{camera.name}' is fixed to '{camera.mount}', which is no body of the scene"
            raise InputError(what, instead="restore the episode from a copy")
        place = f"{mount.GetPath()}/camera_{camera.name}"
    else:
        UsdGeom.Scope.Define(written, "/World/cameras")
        place = f"/World/cameras/{camera.name}"
    set_pose(define_camera(written, place, camera, far=_FAR), camera.position, camera.wxyz)
