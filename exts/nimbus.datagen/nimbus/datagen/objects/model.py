"""Model of one object: appearance, contact geometry and physics."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from nimbus.datagen.arrays import FloatArray, ImageArray, IndexArray, Quaternion


@dataclass(frozen=True, kw_only=True)
class RestPose:
    """Rest pose on a horizontal surface, up to a yaw about the vertical."""

    name: str
    """``upright``, ``lying``, ``on_side``, ``inverted``."""
    wxyz: Quaternion
    """surface_T_object rotation."""
    height: float
    """Height of the object's origin above the surface [m]."""
    tilt_margin: float
    """Smallest tilt at which it tips over, over all directions [rad]."""


@dataclass(frozen=True, kw_only=True)
class Joint:
    """Joint of a part; 0 is the modeled position, for example closed."""

    kind: Literal["hinge", "slide"]
    axis: FloatArray
    """(3,) unit axis in the object's frame; a hinge follows the right-hand rule."""
    origin: FloatArray
    """(3,) point on the axis, object frame [m]; origin of the part's own frame."""
    range: tuple[float, float]
    """Range of the joint [rad or m]."""
    damping: float
    """Damping of the joint [N m s/rad or N s/m]."""
    friction: float
    """Torque or force that holds it in place [N m or N]."""
    stiffness: float = 0.0
    """Stiffness of a spring that returns it to 0 [N m/rad or N/m]."""
    speed: float = 0.0
    """Speed of a belt's surface along the axis [m/s]; the part itself stays in place."""


@dataclass(frozen=True, kw_only=True)
class Handle:
    """Straight feature that two fingers can grasp; vectors are unit, in the part's frame."""

    position: FloatArray
    """(3,) its middle [m]."""
    along: FloatArray
    """(3,) its axis, about which the hand may rotate."""
    approach: FloatArray
    """(3,) straight approach direction of a hand."""
    width: float
    """Distance of the pads when they hold it [m]."""
    length: float
    """Range along its axis in which it can be held [m]."""
    turns: tuple[float, float]
    """Range of rotation of the hand about its axis, from the straight approach [rad]."""
    round: bool
    """True if it may rotate between the fingers."""


@dataclass(frozen=True, kw_only=True)
class Pressing:
    """Point that a fingertip can press, in the part's frame."""

    position: FloatArray
    """(3,) [m]"""
    normal: FloatArray
    """(3,) unit normal, out of the surface."""


@dataclass(frozen=True, kw_only=True)
class MovingPart:
    """Link of an object; its frame has the joint's origin, and at joint position 0 the axes of the object."""

    name: str
    """``drawer_0``, ``door``, ``lid``, which is also the joint's name."""
    vertices: FloatArray
    """(n, 3) [m]"""
    faces: IndexArray
    normals: FloatArray
    uvs: FloatArray
    convex_pieces: tuple[tuple[FloatArray, IndexArray], ...]
    mass: float
    """Mass [kg]."""
    center_of_mass: FloatArray
    inertia: FloatArray
    joint: Joint
    handles: tuple[Handle, ...] = ()
    pressings: tuple[Pressing, ...] = ()
    """Points at which it can be pushed toward joint position 0, or pressed."""
    frames: dict[str, FloatArray] = field(default_factory=dict)
    """(4, 4) part_T_frame by name, as for an object."""
    cavities: dict[str, FloatArray] = field(default_factory=dict)
    """(2, 3) [m], as for an object."""


@dataclass(frozen=True, kw_only=True)
class TriedGrasp:
    """Grasp tested in physics by lifting and shaking when the object was imported."""

    object_T_tool: FloatArray
    """(4, 4) as for a grasp."""
    width: float
    """Distance of the contacts [m]."""
    holds: bool


@dataclass(frozen=True, kw_only=True)
class ObjectModel:
    """Variant of a kind, in its own frame: origin at the center of its bounds, z along its upright axis."""

    library: str
    kind: str
    variant: int
    object_class: str
    category: str
    vertices: FloatArray
    """(n, 3) [m] of the visual mesh."""
    faces: IndexArray
    """(m, 3), counter-clockwise from outside."""
    normals: FloatArray
    """(n, 3) unit."""
    uvs: FloatArray
    """(n, 2), v up: v = 1 is the texture's first row."""
    painter: Callable[[], ImageArray]
    """Function that paints :attr:`texture`, called on demand because it is slow and the USD file has the result."""
    convex_pieces: tuple[tuple[FloatArray, IndexArray], ...]
    """Contact geometry: vertices and faces of convex hulls, at most 32 vertices each."""
    mass: float
    """Mass [kg]."""
    center_of_mass: FloatArray
    """(3,) [m]"""
    inertia: FloatArray
    """(3, 3) about the center of mass [kg m²]."""
    friction: float
    """Coefficient of sliding friction (Coulomb)."""
    symmetry: str
    """``none``, ``revolution`` (about z) or ``box``."""
    keypoints: dict[str, FloatArray]
    """(3,) [m] by name: ``top``, ``base``, ``middle``, …"""
    rest_poses: tuple[RestPose, ...]
    """Upright first where the object can stand; one is always named ``lying``."""
    bounds: FloatArray
    """(2, 3) lower and upper corner [m]."""
    rolling: bool
    """True if it rolls when pushed while it lies."""
    color: str = ""
    """Name of its color, such as ``red``, if kinds differ by color."""
    frames: dict[str, FloatArray] = field(default_factory=dict)
    """(4, 4) object_T_frame by name: ``handle``, ``opening``, ``hole``, ``tip``, …; z points out of an opening."""
    cavities: dict[str, FloatArray] = field(default_factory=dict)
    """(2, 3) lower and upper corner of each cavity [m], by the name of the frame in its opening."""
    open_inside: bool = False
    """True if its cavities are open in contact geometry as well, so that a finger may reach in."""
    ball: float = 0.0
    """Radius of the sphere used for contact [m]; 0 to use the convex pieces."""
    parts: tuple[MovingPart, ...] = ()
    """Moving parts; shape, inertia and pieces above are those of the base, ``mass`` is the total."""
    anchored: bool = False
    """True if it is fixed in place."""
    tried_grasps: tuple[TriedGrasp, ...] = ()
    """Grasps tested when the object was imported."""
    not_graspable: str = ""
    """Reason why no grasp held when it was imported; empty if one did."""

    @property
    def texture(self) -> ImageArray:
        """Texture (H, W, 3) sRGB, painted on demand or the asset's own; read-only."""
        return self.painter()

    def part(self, name: str) -> MovingPart:
        """Return the part of a name."""
        return next(part for part in self.parts if part.name == name)

    def rest_pose(self, name: str) -> RestPose | None:
        """Return the rest pose of a name, or None."""
        return next((pose for pose in self.rest_poses if pose.name == name), None)


def features(model: ObjectModel) -> dict[str, FloatArray]:
    """Points (3,) of an object by name, in its own frame [m]."""
    cavities = {name: (np.asarray(box)[0] + np.asarray(box)[1]) / 2 for name, box in model.cavities.items()}
    frames = {name: np.asarray(frame)[:3, 3] for name, frame in model.frames.items()}
    return cavities | frames | dict(model.keypoints)


def known_features(points: Mapping[str, Any]) -> list[str]:
    """Return the names of points that may follow the dot."""
    return sorted({"center", "top", *points})
