"""What PhysX must be told of a robot beyond UsdPhysics, so that it moves as in the default simulator.

The schemas are those of ``omni.usd.schema.physx``; without them their attributes stay what they are: names
and values that nobody reads.
"""
# The stubs of pxr say that most calls return None.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def adapt_robot(root: Any, armatures: Mapping[str, float]) -> None:
    """Fix the base, compensate gravity, leave links that overlap alone, and give joints their rotors.

    Args:
        root: Prim of the robot, above all links.
        armatures: Rotor inertia seen at each joint [kg, kg m^2], by the joint's name.
    """
    from pxr import Usd, UsdPhysics

    for prim in Usd.PrimRange(root):
        remove_articulation_root(prim)
        if prim.HasAPI(UsdPhysics.RigidBodyAPI):
            _set(prim, "PhysxRigidBodyAPI", "physxRigidBody:disableGravity", True)
        if prim.IsA(UsdPhysics.Joint) and prim.GetName() in armatures:
            _set(prim, "PhysxJointAPI", "physxJoint:armature", armatures[prim.GetName()])
    # On a link it would mean a base that floats, held by a joint that is none of the articulation's.
    UsdPhysics.ArticulationRootAPI.Apply(root)
    _set(root, "PhysxArticulationAPI", "physxArticulation:enabledSelfCollisions", False)


def remove_articulation_root(prim: Any) -> None:
    """Take the mark away that an articulation begins here."""
    for schema in prim.GetAppliedSchemas():
        if schema.endswith("ArticulationRootAPI"):  # Newton's brings that of USD along
            prim.RemoveAppliedSchema(schema)


def _set(prim: Any, schema: str, name: str, value: bool | float) -> None:
    from pxr import Sdf

    prim.AddAppliedSchema(schema)
    kind = Sdf.ValueTypeNames.Bool if isinstance(value, bool) else Sdf.ValueTypeNames.Float
    prim.CreateAttribute(name, kind, custom=False).Set(value)
