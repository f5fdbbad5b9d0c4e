"""PhysX attributes beyond UsdPhysics, with which robot and objects behave as in the default simulator.

The schemas are those of ``omni.usd.schema.physx``; without them the attributes are plain names and values that no
simulator reads.
"""
# The stubs of pxr say that most calls return None.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

USUAL_FRICTION = 1.0
"""Friction of table, fixtures and fingers."""
PART_ARMATURE = {"hinge": 1e-4, "slide": 0.01}
"""Armature of the joints of light parts [kg m², kg]; without it, stiff contact makes them vibrate."""
_CONTACT_OFFSET = 0.002
"""Distance at which PhysX begins to handle a contact [m]; the default of some centimeters is for larger things."""
_BODY_ITERATIONS, _ROBOT_ITERATIONS = 16, 32
"""Number of iterations of the contact solver for bodies and robots; with PhysX's default of 4, objects sink into the
pads."""
_DEPENETRATION_SPEED = 1.0
"""Largest speed at which PhysX separates overlapping bodies [m/s]; without a limit a grip can throw its object."""


def contact_friction(friction: float, nominal: float) -> float:
    """Return the friction of a thing against table, fixtures and fingers, as the default simulator applies it.

    It is the larger friction of both surfaces, scaled in proportion to the drawn friction.

    Args:
        friction: Coefficient of this episode.
        nominal: Coefficient of the kind.
    """
    return friction / nominal * max(USUAL_FRICTION, nominal)


def adapt_part_joint(joint: Any, kind: str, *, friction: float) -> None:
    """Set armature and dry friction of the joint of an object's part.

    Args:
        joint: Prim of the joint.
        kind: ``hinge`` or ``slide``.
        friction: Dry friction [N m, N]; only informative, because PhysX gets it through its tensor interface.
    """
    _set(joint, "PhysxJointAPI", "physxJoint:armature", PART_ARMATURE[kind])
    joint.GetAttribute("nimbus:friction").Set(friction)


def refine_contacts(root: Any) -> None:
    """Set contact distances and solver iterations for hand-sized things."""
    from pxr import Usd, UsdPhysics

    for prim in Usd.PrimRange(root):
        if prim.HasAPI(UsdPhysics.CollisionAPI):
            _set(prim, "PhysxCollisionAPI", "physxCollision:contactOffset", _CONTACT_OFFSET)
            _set(prim, "PhysxCollisionAPI", "physxCollision:restOffset", 0.0)
        if prim.HasAPI(UsdPhysics.RigidBodyAPI):
            _set(prim, "PhysxRigidBodyAPI", "physxRigidBody:solverPositionIterationCount", _BODY_ITERATIONS)
            _set(prim, "PhysxRigidBodyAPI", "physxRigidBody:maxDepenetrationVelocity", _DEPENETRATION_SPEED)
        if prim.HasAPI(UsdPhysics.ArticulationRootAPI):
            _set(prim, "PhysxArticulationAPI", "physxArticulation:solverPositionIterationCount", _ROBOT_ITERATIONS)


def adapt_robot(root: Any, armatures: Mapping[str, float]) -> None:
    """Fix the base, compensate gravity, disable collisions of overlapping links, and set the armatures of joints.

    A robot with one base is a single articulation with its root at ``root``. A robot of separate arms has one
    articulation per arm, with its root at the joint that fixes the arm to the world.

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
    # An articulation root on a link would mean a floating base, held by a joint outside of the articulation.
    for place in [root] if len(links) == 1 else [_anchor(root, link) for link in links]:
        UsdPhysics.ArticulationRootAPI.Apply(place)
        _set(place, "PhysxArticulationAPI", "physxArticulation:enabledSelfCollisions", False)


def use_own_friction(scene: Any, things: Iterable[Any]) -> None:
    """Make each thing's friction independent of the material it touches, as in the default simulator.

    Args:
        scene: The prim of the physics scene.
        things: Prims of materials with their own friction; the scene's rough default applies to everything else.
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
    """Remove the articulation root from a prim."""
    for schema in prim.GetAppliedSchemas():
        if schema.endswith("ArticulationRootAPI"):  # Newton's schema includes the one of USD
            prim.RemoveAppliedSchema(schema)


def _set(prim: Any, schema: str, name: str, value: bool | int | float | str) -> None:
    from pxr import Sdf

    names = Sdf.ValueTypeNames
    prim.AddAppliedSchema(schema)
    kinds = {bool: names.Bool, int: names.Int, float: names.Float, str: names.Token}
    prim.CreateAttribute(name, kinds[type(value)], custom=False).Set(value)
