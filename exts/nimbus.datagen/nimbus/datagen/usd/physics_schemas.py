"""PhysX attributes of a robot beyond UsdPhysics, with which it moves as in the default simulator.

The schemas are those of ``omni.usd.schema.physx``; without them the attributes are plain names and values that no
simulator reads.
"""
# The stubs of pxr say that most calls return None.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any


def adapt_robot(root: Any, armatures: Mapping[str, float]) -> None:
    """Fix the base, compensate gravity, leave links that overlap alone, and give joints their rotors.

    A robot that stands on one base is one articulation, which begins at ``root``; one whose arms stand by themselves is
    several, each of which begins at the joint that fixes it to the world.

    Args:
        root: Prim of the robot, above all links.
        armatures: Rotor inertia seen at each joint [kg, kg m^2], by the joint's name.
    """
    from pxr import Usd, UsdPhysics

    links = [prim for prim in Usd.PrimRange(root) if prim.HasAPI(UsdPhysics.ArticulationRootAPI)]
    for prim in Usd.PrimRange(root):
        remove_articulation_root(prim)
        if prim.HasAPI(UsdPhysics.RigidBodyAPI):
            _set(prim, "PhysxRigidBodyAPI", "physxRigidBody:disableGravity", True)
        if prim.IsA(UsdPhysics.Joint) and prim.GetName() in armatures:
            _set(prim, "PhysxJointAPI", "physxJoint:armature", armatures[prim.GetName()])
    # On a link it would mean a base that floats, held by a joint that is none of the articulation's.
    for place in [root] if len(links) == 1 else [_anchor(root, link) for link in links]:
        UsdPhysics.ArticulationRootAPI.Apply(place)
        _set(place, "PhysxArticulationAPI", "physxArticulation:enabledSelfCollisions", False)


def use_own_friction(scene: Any, things: Iterable[Any]) -> None:
    """Make each thing's friction independent of the material it touches, as in the default simulator.

    Args:
        scene: The prim of the physics scene.
        things: Prims of materials that have a friction of their own; to all else the scene's rough default applies.
    """
    from pxr import UsdPhysics, UsdShade

    rough = UsdShade.Material.Define(scene.GetStage(), scene.GetPath().AppendChild("rough"))
    physics: Any = UsdPhysics.MaterialAPI.Apply(rough.GetPrim())
    physics.CreateStaticFrictionAttr(1.0)
    physics.CreateDynamicFrictionAttr(1.0)
    binding: Any = UsdShade.MaterialBindingAPI.Apply(scene)
    binding.Bind(rough, UsdShade.Tokens.weakerThanDescendants, "physics")
    for thing in things:
        _set(thing, "PhysxMaterialAPI", "physxMaterial:frictionCombineMode", "multiply")


def _anchor(root: Any, link: Any) -> Any:
    """Return the joint that fixes a link to the world, or the link itself without one."""
    from pxr import Usd, UsdPhysics

    for prim in Usd.PrimRange(root):
        if prim.IsA(UsdPhysics.FixedJoint) and link.GetPath() in UsdPhysics.Joint(prim).GetBody1Rel().GetTargets():
            return prim
    return link


def remove_articulation_root(prim: Any) -> None:
    """Take the mark away that an articulation begins here."""
    for schema in prim.GetAppliedSchemas():
        if schema.endswith("ArticulationRootAPI"):  # Newton's brings that of USD along
            prim.RemoveAppliedSchema(schema)


def _set(prim: Any, schema: str, name: str, value: bool | float | str) -> None:
    from pxr import Sdf

    prim.AddAppliedSchema(schema)
    kinds = {bool: Sdf.ValueTypeNames.Bool, float: Sdf.ValueTypeNames.Float, str: Sdf.ValueTypeNames.Token}
    prim.CreateAttribute(name, kinds[type(value)], custom=False).Set(value)
