"""Model of one object: appearance, contact geometry and physics."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from nimbus.datagen.arrays import FloatArray, ImageArray, IndexArray, Quaternion

if TYPE_CHECKING:
    from nimbus.datagen.objects.cable import CableChain
    from nimbus.datagen.objects.grains import GrainHeap

FlexibleKind = Literal["cloth", "cable", "grains", ""]
"""Word for a flexible kind; empty for a rigid one."""
FLEXIBLE_NOUNS = {"cloth": "cloth", "cable": "a cable", "grains": "a heap of grains"}
"""Words for flexible kinds in messages."""


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
    """Smallest tilt at which the object tips over, over all directions [rad]."""


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
    """Friction torque or force of the joint [N m or N]."""
    stiffness: float = 0.0
    """Stiffness of a spring that returns the joint to 0 [N m/rad or N/m]."""
    speed: float = 0.0
    """Speed of a belt's surface along the axis [m/s]; the part itself stays in place."""


@dataclass(frozen=True, kw_only=True)
class Handle:
    """Straight feature that two fingers can grasp; all directions are unit vectors in the part's frame."""

    position: FloatArray
    """(3,) middle of the handle [m]."""
    along: FloatArray
    """(3,) axis of the handle, about which the hand may rotate."""
    approach: FloatArray
    """(3,) direction of a hand that approaches straight."""
    width: float
    """Distance of the pads when they hold the handle [m]."""
    length: float
    """Length along the axis within which the handle can be held [m]."""
    turns: tuple[float, float]
    """Range of the hand's rotation about the axis, relative to the straight approach [rad]."""
    round: bool
    """True if the handle may rotate between the fingers."""


@dataclass(frozen=True, kw_only=True)
class Pressing:
    """Point that a fingertip can press, in the part's frame."""

    position: FloatArray
    """(3,) position [m]."""
    normal: FloatArray
    """(3,) unit normal, out of the surface."""


@dataclass(frozen=True, kw_only=True)
class Sheet:
    """Flexible sheet: a grid of cells in the plane of x and y, whose vertices move freely in physics."""

    cells: tuple[int, int]
    """Number of cells along x and y."""
    size: tuple[float, float]
    """Extent along x and y [m]."""
    thickness: float
    """[m]"""
    is_firm: bool = False
    """True if edges keep their length under tension."""

    @property
    def count(self) -> int:
        """Number V of vertices."""
        return (self.cells[0] + 1) * (self.cells[1] + 1)

    def points(self) -> FloatArray:
        """Return the vertices (V, 3) of the flat sheet in the object's frame [m]: row after row along x."""
        x, y = (np.linspace(-extent / 2, extent / 2, n + 1) for extent, n in zip(self.size, self.cells, strict=True))
        return np.stack([*np.broadcast_arrays(x[None, :], y[:, None], 0.0)], axis=-1).reshape(-1, 3)

    def faces(self) -> IndexArray:
        """Return the triangles (F, 3), two for each cell, counter-clockwise as seen from +z."""
        columns, rows = self.cells
        row = columns + 1
        first = (np.arange(rows)[:, None] * row + np.arange(columns)[None, :]).ravel()
        lower, upper = [first, first + 1, first + row + 1], [first, first + row + 1, first + row]
        return np.stack([np.column_stack(lower), np.column_stack(upper)], axis=1).reshape(-1, 3).astype(np.int32)


@dataclass(frozen=True, kw_only=True)
class MovingPart:
    """Moving part of an object. Its origin is the joint's; at joint position 0 its axes are the object's."""

    name: str
    """Name of the part and of its joint, such as ``drawer_0``, ``door`` or ``lid``."""
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
    """Points at which the part can be pushed toward joint position 0, or pressed."""
    frames: dict[str, FloatArray] = field(default_factory=dict)
    """(4, 4) part_T_frame by name, as in :class:`ObjectModel`."""
    cavities: dict[str, FloatArray] = field(default_factory=dict)
    """(2, 3) corners by name [m], as in :class:`ObjectModel`."""


@dataclass(frozen=True, kw_only=True)
class TriedGrasp:
    """Grasp tested in physics by lifting and shaking when the object was imported."""

    object_T_tool: FloatArray
    """(4, 4) pose of the tool in the object's frame."""
    width: float
    """Distance of the contacts [m]."""
    holds: bool


@dataclass(frozen=True, kw_only=True)
class ObjectModel:
    """Variant of a kind, in its own frame: the origin is the center of its bounds, and z is its upright axis."""

    library: str
    kind: str
    variant: int
    object_class: str
    category: str
    vertices: FloatArray
    """(n, 3) vertices of the visual mesh [m]."""
    faces: IndexArray
    """(m, 3), counter-clockwise from outside."""
    normals: FloatArray
    """(n, 3) unit normals."""
    uvs: FloatArray
    """(n, 2), v up: v = 1 is the texture's first row."""
    painter: Callable[[], ImageArray]
    """Function that paints :attr:`texture`; it is called on demand, because it is slow and USD files contain the
    result."""
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
    """Rest poses, upright first if the object can stand; one is always named ``lying``."""
    bounds: FloatArray
    """(2, 3) lower and upper corner [m]."""
    rolling: bool
    """True if the object rolls when it is pushed while lying."""
    color: str = ""
    """Name of the object's color, such as ``red``, if its kinds differ by color."""
    frames: dict[str, FloatArray] = field(default_factory=dict)
    """(4, 4) object_T_frame by name: ``handle``, ``opening``, ``hole``, ``tip``, …; z points out of an opening."""
    cavities: dict[str, FloatArray] = field(default_factory=dict)
    """(2, 3) lower and upper corner of each cavity [m], by the name of the frame in its opening."""
    open_inside: bool = False
    """True if the contact geometry leaves the cavities open, and a finger may reach in."""
    ball: float = 0.0
    """Radius of the sphere used for contact [m]; 0 to use the convex pieces."""
    sheet: Sheet | None = None
    """Grid of a cloth, which bends; None for any other object."""
    chain: CableChain | None = None
    """Links of a cable, which bends; None for any other object."""
    heap: GrainHeap | None = None
    """Grains, such as peas, which move freely; None for any other object."""
    parts: tuple[MovingPart, ...] = ()
    """Moving parts. Shape, inertia and pieces above are those of the base; ``mass`` is the total."""
    anchored: bool = False
    """True if the object is fixed in place."""
    tried_grasps: tuple[TriedGrasp, ...] = ()
    """Grasps tested when the object was imported."""
    not_graspable: str = ""
    """Reason why no grasp held during the import; empty if one did."""

    @property
    def is_flexible(self) -> bool:
        """True for a cloth, a cable or grains, whose shape changes in physics."""
        return self.body_count > 0

    @property
    def bends_as(self) -> FlexibleKind:
        """Word for the flexible kind; empty for a rigid one."""
        return "cloth" if self.sheet else "cable" if self.chain else "grains" if self.heap else ""

    @property
    def body_count(self) -> int:
        """Number of bodies of a flexible object: vertices of a cloth, links of a cable, or grains; 0 if rigid."""
        if self.sheet:
            return self.sheet.count
        return self.chain.links if self.chain else self.heap.count if self.heap else 0

    @property
    def texture(self) -> ImageArray:
        """Texture (H, W, 3) sRGB, read-only; it is painted on demand, or comes from the asset."""
        return self.painter()

    @property
    def interiors(self) -> dict[str, FloatArray]:
        """(2, 3) corners of the space of each cavity [m], down to the underside of the body.

        The floor of a cavity is flat. In a round bowl, things lie below it.
        """
        return {name: self._deepen(box) for name, box in self.cavities.items()}

    def _deepen(self, box: FloatArray) -> FloatArray:
        """Lower the floor of a cavity to the underside of the body, unless another cavity is below it."""
        below = (
            np.all(other[0, :2] < box[1, :2]) and np.all(other[1, :2] > box[0, :2])
            for other in self.cavities.values()
            if other[0, 2] < box[0, 2]
        )
        return box if any(below) else np.array([[*box[0, :2], min(self.bounds[0, 2], box[0, 2])], box[1]])

    def part(self, name: str) -> MovingPart:
        """Return the part with the given name."""
        return next(part for part in self.parts if part.name == name)

    def rest_pose(self, name: str) -> RestPose | None:
        """Return the rest pose with the given name, or None."""
        return next((pose for pose in self.rest_poses if pose.name == name), None)


def features(model: ObjectModel) -> dict[str, FloatArray]:
    """Return the named points (3,) of an object in its own frame [m]."""
    cavities = {name: (np.asarray(box)[0] + np.asarray(box)[1]) / 2 for name, box in model.cavities.items()}
    frames = {name: np.asarray(frame)[:3, 3] for name, frame in model.frames.items()}
    return cavities | frames | dict(model.keypoints)


def known_features(points: Mapping[str, Any]) -> list[str]:
    """Return the names of points that may follow the dot in a reference, such as ``item.top``."""
    return sorted({"center", "top", *points})
