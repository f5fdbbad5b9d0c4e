"""Assembly of an articulated object: its base and links in one frame, before conversion to a model."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.objects.articulated.solids import CREASE, Solids, TextureMapping
from nimbus.datagen.objects.mass import mass_properties
from nimbus.datagen.objects.model import Handle, Joint, MovingPart, Pressing
from nimbus.datagen.objects.shapes.contact import piece_triangles
from nimbus.datagen.objects.shapes.shape import smooth_normals


@dataclass(kw_only=True)
class Link:
    """Moving part; all points and frames are in the frame of the assembly."""

    name: str
    solids: Solids
    joint: Joint
    density: float = 1.0
    """Density relative to that of the base."""
    handles: list[Handle] = field(default_factory=list)
    pressings: list[Pressing] = field(default_factory=list)
    frames: dict[str, FloatArray] = field(default_factory=dict)
    cavities: dict[str, FloatArray] = field(default_factory=dict)

    def part(self, origin: FloatArray, mass: float) -> MovingPart:
        """Build the moving part of a model, in a frame whose origin is that of the joint.

        Args:
            origin: (3,) origin of the model's frame, in the frame of the assembly [m].
            mass: Mass of the part [kg].
        """
        here = self.joint.origin
        surface = self.solids.surface
        vertices, faces, normals, uvs = smooth_normals(surface.vertices - here, surface.faces, surface.uvs, CREASE)
        pieces = tuple((points - here, triangles) for points, triangles in self.solids.pieces)
        center, inertia = mass_properties(*piece_triangles(pieces), mass=mass, in_surface=False)
        return MovingPart(
            name=self.name,
            vertices=vertices,
            faces=faces,
            normals=normals,
            uvs=uvs,
            convex_pieces=pieces,
            mass=mass,
            center_of_mass=center,
            inertia=inertia,
            joint=replace(self.joint, origin=here - origin),
            handles=tuple(replace(handle, position=handle.position - here) for handle in self.handles),
            pressings=tuple(replace(pressing, position=pressing.position - here) for pressing in self.pressings),
            frames=move_frames(self.frames, -here),
            cavities={name: cavity - here for name, cavity in self.cavities.items()},
        )


@dataclass(kw_only=True)
class Assembly:
    """Complete object. In its frame, x runs from front to back, y to the left as seen from the front, and z up."""

    looks: TextureMapping
    base: Solids
    links: list[Link] = field(default_factory=list)
    frames: dict[str, FloatArray] = field(default_factory=dict)
    """(4, 4) frames by name, as in an object model."""
    cavities: dict[str, FloatArray] = field(default_factory=dict)


def move_frames(frames: dict[str, FloatArray], shift: FloatArray) -> dict[str, FloatArray]:
    """Shift the origins of frames.

    Args:
        frames: (4, 4) frames by name, translations in [m].
        shift: (3,) displacement of each origin [m].

    Returns:
        (4, 4) frames by the same names, translations in [m].
    """
    step = np.zeros((4, 4))
    step[:3, 3] = shift
    return {name: frame + step for name, frame in frames.items()}


def unit(vector: ArrayLike) -> FloatArray:
    """Scale a vector (3,) of any unit to a direction (3,) of length 1 [no unit]."""
    return np.asarray(vector, dtype=float) / np.linalg.norm(vector)


def frame(position: ArrayLike, z: ArrayLike) -> FloatArray:
    """Return a frame (4, 4) at a point with a given z axis; x is level where possible."""
    out = np.eye(4)
    out[:3, 2], out[:3, 3] = unit(z), position
    out[:3, 0] = unit(np.cross((0.0, 0.0, 1.0), out[:3, 2]) if abs(out[2, 2]) < 0.9 else (1.0, 0.0, 0.0))
    out[:3, 1] = np.cross(out[:3, 2], out[:3, 0])
    return out


def hinge(
    axis: ArrayLike, origin: ArrayLike, *, limit: float, damping: float, friction: float, stiffness: float = 0.0
) -> Joint:
    """Make a hinge from 0 to a limit.

    Args:
        axis: (3,) direction of its axis, of any length.
        origin: (3,) point on the axis [m].
        limit: Largest angle [rad].
        damping: Damping of the joint [N m s/rad].
        friction: Friction torque of the joint [N m].
        stiffness: Stiffness of a spring that returns the joint to 0 [N m/rad].
    """
    origin = np.asarray(origin, dtype=float)
    return Joint(
        kind="hinge",
        axis=unit(axis),
        origin=origin,
        range=(0.0, limit),
        damping=damping,
        friction=friction,
        stiffness=stiffness,
    )


def slide(
    axis: ArrayLike, origin: ArrayLike, *, limit: float, damping: float, friction: float, stiffness: float = 0.0
) -> Joint:
    """Make a slide from 0 to a limit.

    Args:
        axis: (3,) direction of its motion, of any length.
        origin: (3,) point on the axis [m].
        limit: Largest distance [m].
        damping: Damping of the joint [N s/m].
        friction: Friction force of the joint [N].
        stiffness: Stiffness of a spring that returns the joint to 0 [N/m].
    """
    return replace(
        hinge(axis, origin, limit=limit, damping=damping, friction=friction, stiffness=stiffness), kind="slide"
    )


def bar(
    solids: Solids,
    start: ArrayLike,
    end: ArrayLike,
    approach: ArrayLike,
    *,
    standoff: float,
    look: str = "handle",
    radius: float = 0.006,
    turns: tuple[float, float],
) -> Handle:
    """Add a bar handle on two posts.

    Args:
        solids: Solids that receive the bar and its posts.
        start: (3,) foot of the first post, on the surface [m].
        end: (3,) foot of the second post [m].
        approach: (3,) direction into the surface, from which a hand approaches; of any length.
        standoff: Distance from the surface to the bar's axis [m].
        look: Region of the texture.
        radius: Radius of the bar [m].
        turns: Smallest and largest rotation of a hand about the bar [rad].
    """
    start, end, into = np.asarray(start, dtype=float), np.asarray(end, dtype=float), unit(approach)
    along = unit(end - start)
    out = -standoff * into
    solids.rod(start + out - 0.008 * along, end + out + 0.008 * along, radius, look)
    for foot in (start, end):
        solids.rod(foot, foot + out, 0.8 * radius, look, sides=10)
    return Handle(
        position=(start + end) / 2 + out,
        along=along,
        approach=into,
        width=2 * radius,
        length=max(float(np.linalg.norm(end - start)) - 0.045, 0.0),
        turns=turns,
        round=True,
    )
