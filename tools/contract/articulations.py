"""Parts of an articulation of a USD stage."""

from __future__ import annotations

from typing import Any


def dof_paths(stage: Any, place: str) -> list[str]:
    """Return the movable joints of the articulation at a prim, in an order that differs from Nimbus's."""
    from pxr import UsdPhysics

    joints, _ = articulation_parts(stage, place)
    moving = [prim for prim in joints if not prim.IsA(UsdPhysics.FixedJoint)]
    return sorted((str(prim.GetPath()) for prim in moving), reverse=True)


def articulation_parts(stage: Any, place: str) -> tuple[list[Any], set[Any]]:
    """Return the joints of the articulation at a prim, and the paths of its links."""
    from pxr import Usd, UsdPhysics

    def ends(prim: Any) -> list[Any]:
        joint: Any = UsdPhysics.Joint(prim)
        found = [*joint.GetBody0Rel().GetTargets(), *joint.GetBody1Rel().GetTargets()]
        return [end for end in found if stage.GetPrimAtPath(end).HasAPI(UsdPhysics.RigidBodyAPI)]

    root = stage.GetPrimAtPath(place)
    joints = [prim for prim in stage.Traverse() if prim.IsA(UsdPhysics.Joint)]
    bodies = [prim.GetPath() for prim in Usd.PrimRange(root) if prim.HasAPI(UsdPhysics.RigidBodyAPI)]
    reached = set(ends(root) if root in joints else bodies)
    own: list[Any] = []
    while further := [prim for prim in joints if prim not in own and reached.intersection(ends(prim))]:
        own += further
        reached.update(end for prim in further for end in ends(prim))
    return own, reached
