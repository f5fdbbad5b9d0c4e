"""Grains in MuJoCo: spheres that move freely and do not turn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from nimbus.datagen.episode.layout import PlacedObject, part_label
from nimbus.datagen.geometry.mujoco_library import mujoco
from nimbus.datagen.simulate.cloth import LAYERS, ROBOT, SURFACES

if TYPE_CHECKING:
    from nimbus.datagen.objects.grains import GrainHeap

_SOLIMP = (0.5, 0.9, 0.001, 0.5, 2.0)
"""Softness of contacts of grains, which the solver needs to bring a heap to rest in few iterations."""
_PRIORITY = 2
"""Priority of grains in a contact, above that of any object: their own friction and softness apply."""


def add_grains(spec: mujoco.MjSpec, root: mujoco.MjsBody, item: PlacedObject, heap: GrainHeap) -> None:
    """Add grains below a body that is fixed to the world.

    Grains slide and do not roll: like peas and lentils, they stop on a flat surface.
    """
    mass = item.mass / heap.count
    for grain, place in enumerate(heap.points()):
        body = root.add_body(
            name=part_label(item.name, str(grain)),
            pos=place,
            mass=mass,
            inertia=[0.4 * mass * heap.radius**2] * 3,
            explicitinertial=True,
        )
        for axis in np.eye(3):
            body.add_joint(type=mujoco.mjtJoint.mjJNT_SLIDE, axis=axis)
        body.add_geom(
            type=mujoco.mjtGeom.mjGEOM_SPHERE,
            size=[heap.radius, 0.0, 0.0],
            mass=0.0,
            contype=SURFACES | ROBOT | LAYERS,
            conaffinity=LAYERS,
            friction=[item.friction, 5e-3, 1e-4],
            priority=_PRIORITY,
        )


def keep_in_hand(model: mujoco.MjModel, heaps: Sequence[str]) -> None:
    """Set the contacts of a world whose flexible objects are all grains: containers do not turn or creep in the hand.

    With these settings cloth is unstable; in a world with cloth or cables, a held container creeps.

    Args:
        model: The compiled world.
        heaps: Names of the objects.
    """
    model.opt.cone, model.opt.impratio = mujoco.mjtCone.mjCONE_ELLIPTIC, 50.0
    roots = [model.body(name).id for name in heaps]
    grains = np.isin(model.body_rootid[model.geom_bodyid], roots)
    # Six dimensions have torsional friction, without which a container turns between the pads.
    model.geom_condim[~grains] = 6
    model.geom_solimp[grains] = _SOLIMP
