"""Bodies and joints of an articulated object in its USD file."""
# The stubs of pxr say that every Define and Apply returns None.
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.objects.model import MovingPart, ObjectModel
from nimbus.datagen.objects.usd import add_body, add_contact, add_visual

if TYPE_CHECKING:
    from pxr import Usd

BASE = "base"
"""Name of the static base's prim."""


def add_bodies(stage: Usd.Stage, root: Any, model: ObjectModel, looks: Any, touch: Any) -> None:
    """Write the base, the parts, and a joint for each part below the root."""
    from pxr import Gf, UsdGeom, UsdPhysics

    UsdPhysics.ArticulationRootAPI.Apply(root)
    path = str(root.GetPath())
    base_mass = model.mass - sum(part.mass for part in model.parts)
    for name, thing, mass in ((BASE, model, base_mass), *((part.name, part, part.mass) for part in model.parts)):
        prim = UsdGeom.Xform.Define(stage, f"{path}/{name}")
        if isinstance(thing, MovingPart):
            UsdGeom.XformCommonAPI(prim).SetTranslate(Gf.Vec3d(*thing.joint.origin.tolist()))
        add_body(prim.GetPrim(), thing, mass)
        add_visual(stage, f"{path}/{name}", thing, looks)
        add_contact(stage, f"{path}/{name}", thing, touch)
    UsdGeom.Scope.Define(stage, f"{path}/joints")
    for part in model.parts:
        _add_joint(stage, path, part)


def _add_joint(stage: Usd.Stage, path: str, part: MovingPart) -> None:
    """Add a hinge or slide along x of both local frames, which are rotated to the joint's axis; USD uses degrees."""
    from pxr import Gf, Sdf, UsdPhysics

    hinge, place = part.joint.kind == "hinge", f"{path}/joints/{part.name}"
    joint = (UsdPhysics.RevoluteJoint if hinge else UsdPhysics.PrismaticJoint).Define(stage, place)
    joint.CreateBody0Rel().SetTargets([Sdf.Path(f"{path}/{BASE}")])
    joint.CreateBody1Rel().SetTargets([Sdf.Path(f"{path}/{part.name}")])
    turn = Gf.Quatf(*_turned_x(part.joint.axis))
    joint.CreateLocalPos0Attr(Gf.Vec3f(*part.joint.origin.tolist()))
    joint.CreateLocalPos1Attr(Gf.Vec3f(0, 0, 0))
    joint.CreateLocalRot0Attr(turn)
    joint.CreateLocalRot1Attr(turn)
    joint.CreateAxisAttr(UsdPhysics.Tokens.x)
    unit = math.degrees(1.0) if hinge else 1.0
    lower, upper = part.joint.range
    joint.CreateLowerLimitAttr(lower * unit)
    joint.CreateUpperLimitAttr(upper * unit)
    joint.CreateCollisionEnabledAttr(False)
    drive = UsdPhysics.DriveAPI.Apply(joint.GetPrim(), "angular" if hinge else "linear")
    drive.CreateTypeAttr(UsdPhysics.Tokens.force)
    drive.CreateTargetPositionAttr(0.0)
    drive.CreateStiffnessAttr(part.joint.stiffness / unit)
    drive.CreateDampingAttr(part.joint.damping / unit)
    joint.GetPrim().CreateAttribute("nimbus:friction", Sdf.ValueTypeNames.Float, custom=True).Set(part.joint.friction)


def _turned_x(axis: FloatArray) -> tuple[float, float, float, float]:
    """Return the quaternion, wxyz, that rotates x onto an axis (3,) of length 1."""
    x = np.array((1.0, 0.0, 0.0))
    if axis @ x < -0.999999:
        return 0.0, 0.0, 0.0, 1.0
    w, turn = 1.0 + float(x @ axis), np.cross(x, axis)
    length = math.hypot(w, *turn.tolist())
    y, z = float(turn[1]), float(turn[2])  # the axis of this rotation is perpendicular to x
    return w / length, 0.0, y / length, z / length
