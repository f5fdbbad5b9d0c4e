"""Cables in MuJoCo: chains of capsules that are joined by ball joints with springs and dampers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from nimbus.datagen.episode.layout import PlacedObject, part_label
from nimbus.datagen.geometry.mujoco_library import mujoco
from nimbus.datagen.simulate.cloth import LAYERS, ROBOT, SURFACES

if TYPE_CHECKING:
    from nimbus.datagen.objects.cable import CableChain

_ARMATURE = 1e-6
"""Inertia added to each joint [kg m²]; without it, the light links vibrate."""
_FREE_DAMPING = 1e-5
"""Damping of the first link's rotation [N m s/rad]."""


def add_chain(spec: mujoco.MjSpec, root: mujoco.MjsBody, item: PlacedObject, chain: CableChain) -> None:
    """Add the links of a cable below a body that is fixed to the world; the first link moves freely."""
    parent, before = root, np.eye(4)
    for link, frame in enumerate(chain.frames()):
        place = np.linalg.inv(before) @ frame
        x, y, z, w = Rotation.from_matrix(place[:3, :3]).as_quat()
        body = parent.add_body(name=part_label(item.name, str(link)), pos=place[:3, 3], quat=[w, x, y, z])
        if parent is root:
            for axis in np.eye(3):
                body.add_joint(type=mujoco.mjtJoint.mjJNT_SLIDE, axis=axis)
            body.add_joint(type=mujoco.mjtJoint.mjJNT_BALL, damping=_FREE_DAMPING, armature=_ARMATURE)
        else:
            stiffness = chain.stiffness / chain.link_length
            body.add_joint(
                type=mujoco.mjtJoint.mjJNT_BALL, stiffness=stiffness, damping=chain.damping, armature=_ARMATURE
            )
        body.add_geom(
            type=mujoco.mjtGeom.mjGEOM_CAPSULE,
            size=[chain.radius, 0.0, 0.0],
            fromto=[0.0, 0.0, 0.0, chain.link_length, 0.0, 0.0],
            mass=item.mass / chain.links,
            contype=SURFACES | ROBOT | LAYERS,
            conaffinity=LAYERS,
            friction=[item.friction, 5e-3, 1e-4],
        )
        parent, before = body, frame


def roots_of_links(model: mujoco.MjModel) -> NDArray[np.int64]:
    """Return for each body the cable that it is a link of, otherwise the body itself."""
    bodies = np.arange(model.nbody)
    # Only cables have ball joints.
    links = model.jnt_bodyid[model.jnt_type == mujoco.mjtJoint.mjJNT_BALL]
    bodies[links] = model.body_rootid[links]
    return bodies
