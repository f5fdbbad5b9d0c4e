"""Cloth in MuJoCo: point masses at the vertices of a grid, held together by constraints on the lengths of edges.

docs/decisions.md has figures and reasons.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nimbus.datagen.episode.layout import PlacedObject, part_label
from nimbus.datagen.geometry.mujoco_library import mujoco

if TYPE_CHECKING:
    from nimbus.datagen.objects.model import Sheet

LAYERS, SURFACES, ROBOT = 1 << 20, 1 << 21, 1 << 22
"""Collision bits beyond Newton's: of flexible objects with each other, with surfaces, and with the robot."""
SOLREF, SOLIMP = (0.004, 1.0), (0.95, 0.99, 0.001, 0.5, 2.0)
"""Stiffness of contacts in a world with flexible objects."""
_EDGE_DAMPING = 0.001


def add_sheet(spec: mujoco.MjSpec, root: mujoco.MjsBody, item: PlacedObject, sheet: Sheet) -> None:
    """Add vertices, faces and edges of a sheet below a body that is fixed to the world."""
    radius = sheet.thickness / 2
    mass = item.mass / sheet.count
    labels = [part_label(item.name, str(vertex)) for vertex in range(sheet.count)]
    for label, place in zip(labels, sheet.points(), strict=True):
        body = root.add_body(name=label, pos=place, mass=mass, inertia=[mass * radius**2] * 3, explicitinertial=True)
        for axis in np.eye(3):
            body.add_joint(type=mujoco.mjtJoint.mjJNT_SLIDE, axis=axis)
        # Vertices instead of faces touch surfaces: a face on a box has several contacts.
        body.add_geom(
            type=mujoco.mjtGeom.mjGEOM_SPHERE,
            size=[radius, 0.0, 0.0],
            mass=0.0,
            contype=SURFACES | LAYERS,
            conaffinity=0,
            friction=[item.friction, 5e-3, 1e-4],
        )
    flex = spec.add_flex(name=item.name, dim=2, radius=radius, vertbody=labels, elem=sheet.faces().ravel().tolist())
    flex.contype, flex.conaffinity = ROBOT, LAYERS
    flex.selfcollide = mujoco.mjtFlexSelf.mjFLEXSELF_NONE
    flex.condim = 3
    flex.friction = [item.friction, 5e-3, 1e-4]
    flex.solref, flex.solimp = SOLREF, SOLIMP
    flex.edgedamping = _EDGE_DAMPING
    edges = spec.add_equality(type=mujoco.mjtEq.mjEQ_FLEX, objtype=mujoco.mjtObj.mjOBJ_FLEX)
    edges.name1 = item.name
    if sheet.is_firm:
        edges.solref, edges.solimp = SOLREF, SOLIMP
