"""Rest poses of an imported object, found by dropping it in many orientations in physics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse.csgraph import connected_components
from scipy.spatial.transform import Rotation

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.geometry.hulls import qhull
from nimbus.datagen.geometry.mujoco_library import mujoco
from nimbus.datagen.objects.model import RestPose
from nimbus.datagen.objects.rest_poses import turn_down
from nimbus.datagen.objects.shapes.contact import Piece, piece_triangles

DROPS = 64
"""Number of initial orientations."""
_RATE, _SECONDS = 500.0, 3.0
"""Number of physics steps per second [Hz], and longest duration of a drop [s]."""
_LOOKED_EVERY = 25
"""Number of steps between two checks for rest."""
_STILL = 0.02
"""Angular velocity below which an object counts as at rest [rad/s]."""
_SAME = np.deg2rad(10.0)
"""Angle between down directions below which two rest poses count as the same [rad]."""
_LEAST_MARGIN, _COMMON = np.deg2rad(4.0), 0.15
"""Tilt margin below which a rest pose is accidental [rad], and fraction of drops at which it is accepted anyway:
rolling objects have no margin."""
_BUMP, _RELATIVE_BUMP = 5e-4, 0.025
"""Depth [m], and fraction of the center's height, of dips that are ignored as bumps of a scan or facets of a round
object."""
_ROLLS = 0.06
"""Largest difference in height between rest poses of one round object, as a fraction of the height; it is 3.5 % for a
cylinder with twelve facets, and 8 % with eight."""
_LEVEL = 2e-5
"""Difference in height [m] within which the top of a tipping motion counts as reached."""
_TILTS = np.deg2rad(np.arange(1.0, 91.0))
_STRAIGHT = np.cos(np.deg2rad(25.0))
"""Cosine of the largest angle between the up axis of a standing object and the vertical; beyond it, the object lies."""


@dataclass(frozen=True, kw_only=True)
class RestingWay:
    """Rest pose found by dropping the object."""

    down: FloatArray
    """(3,) unit vector in the object's frame that points down."""
    height: float
    """Height of the object's origin above the ground [m]."""
    share: float
    """Fraction of the drops that end in this pose."""
    margin: float
    """Smallest tilt at which the object tips over, over all directions [rad]."""

    @property
    def numbers(self) -> FloatArray:
        """Stored form (6,): down direction, height, fraction, margin."""
        return np.array([*self.down, self.height, self.share, self.margin])

    @classmethod
    def of_numbers(cls, numbers: FloatArray) -> RestingWay:
        """Build from the stored form (6,)."""
        height, share, margin = numbers[3:].tolist()
        return cls(down=numbers[:3], height=height, share=share, margin=margin)

    def about(self, origin: FloatArray) -> RestingWay:
        """Return the pose with the object's origin moved to a point (3,) [m]."""
        return replace(self, height=self.height - float(self.down @ origin))


def settle(
    pieces: Sequence[Piece], center_of_mass: FloatArray, inertia: FloatArray, mass: float, *, drops: int = DROPS
) -> tuple[RestingWay, ...]:
    """Drop an object onto the ground, and return its rest poses, the most frequent first.

    The convex hull of all pieces touches the ground.

    Args:
        pieces: Contact geometry, object frame [m].
        center_of_mass: (3,) [m].
        inertia: (3, 3) about the center of mass [kg m²].
        mass: Mass [kg].
        drops: Number of initial orientations, which are evenly spread.
    """
    corners = piece_triangles(tuple(pieces))[0]
    corners = corners[qhull(corners).vertices] - center_of_mass
    model = _world(corners, inertia, mass)
    downs = np.array([_fall(model, corners, turn) for turn in _orientations(drops)])
    ways: list[RestingWay] = []
    left = np.arange(drops)
    while len(left):
        near = downs[left] @ downs[left].T > np.cos(_SAME)
        cluster = left[near[int(near.sum(axis=1).argmax())]]
        down = downs[cluster].sum(axis=0)
        down = _lowest(corners, down / np.linalg.norm(down))
        height = float((corners @ down).max() + center_of_mass @ down)
        way = RestingWay(down=down, height=height, share=len(cluster) / drops, margin=_margin(corners, down))
        if not any(way.down @ known.down > np.cos(_SAME) for known in ways):
            ways.append(way)
        left = np.setdiff1d(left, cluster)
    ways = _joined(ways, corners)
    likely = [way for way in ways if way.margin >= _LEAST_MARGIN or way.share >= _COMMON]
    return tuple(likely or ways[:1])


def name_rest_poses(ways: Sequence[RestingWay], names: Sequence[str], *, lies_on: str = "any") -> tuple[RestPose, ...]:
    """Name rest poses by the direction of the object's z axis, upright ones first; one is always named ``lying``.

    Args:
        ways: Rest poses found by :func:`settle`.
        names: Requested names in addition to ``lying``.
        lies_on: Meaning of ``lying``: on a ``side``, on its ``base`` (flat things), or in ``any`` pose.
    """
    ordered = sorted(ways, key=lambda way: -way.share * way.margin)
    sideways = [way for way in ordered if abs(way.down[2]) <= _STRAIGHT]
    upright = [way for way in ordered if way.down[2] < -_STRAIGHT]
    lying = ({"base": upright, "side": sideways}.get(lies_on) or sideways or ordered)[0]
    found = {
        "upright": upright,
        "lying": [lying],
        "on_side": [way for way in sideways if way is not lying and abs(way.down @ lying.down) < 0.5],
        "inverted": [way for way in ordered if way.down[2] > _STRAIGHT and way is not lying],
    }
    return tuple(
        RestPose(name=name, wxyz=turn_down(some[0].down), height=some[0].height, tilt_margin=some[0].margin)
        for name, some in found.items()
        if some and (name in names or name == "lying")
    )


def _world(corners: FloatArray, inertia: FloatArray, mass: float) -> mujoco.MjModel:
    """Build a model of the object, with its center of mass at the origin, above a plane."""
    spec = mujoco.MjSpec()
    spec.option.timestep, spec.option.integrator = 1.0 / _RATE, mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[0, 0, 1], friction=[1, 0.005, 1e-3], condim=6)
    moments, axes = np.linalg.eigh(inertia)
    if np.linalg.det(axes) < 0:
        axes[:, 2] *= -1
    x, y, z, w = Rotation.from_matrix(axes).as_quat()
    spec.compiler.balanceinertia = True
    body = spec.worldbody.add_body(mass=mass, ipos=[0, 0, 0], inertia=moments, iquat=[w, x, y, z])
    body.explicitinertial = True
    body.add_freejoint()
    radius = float(np.linalg.norm(corners, axis=1).max())
    spec.add_mesh(name="hull", uservert=corners.ravel().tolist())
    body.add_geom(
        type=mujoco.mjtGeom.mjGEOM_MESH, meshname="hull", mass=0.0, condim=6, friction=[1, 0.005, 1e-3 * radius]
    )
    return spec.compile()


def _fall(model: mujoco.MjModel, corners: FloatArray, turn: Rotation) -> FloatArray:
    """Drop the object once, and return its direction (3,) that points down when it rests."""
    data = mujoco.MjData(model)
    x, y, z, w = turn.as_quat()
    data.qpos[:] = (0, 0, 1e-3 - float(turn.apply(corners)[:, 2].min()), w, x, y, z)
    for step in range(1, round(_RATE * _SECONDS) + 1):
        mujoco.mj_step(model, data)
        if step % _LOOKED_EVERY == 0 and step > 0.2 * _RATE and np.abs(data.qvel[3:]).max() < _STILL:
            break
    return -data.xmat[1].reshape(3, 3)[2]


def _orientations(count: int) -> list[Rotation]:
    """Return evenly spread rotations: super-Fibonacci spirals (Alexa, CVPR 2022)."""
    phi, psi = np.sqrt(2.0), 1.533751168755204288118041
    steps = np.arange(count) + 0.5
    share = steps / count
    alpha, beta = 2 * np.pi * steps / phi, 2 * np.pi * steps / psi
    small, large = np.sqrt(share), np.sqrt(1 - share)
    quats = np.column_stack([small * np.sin(alpha), small * np.cos(alpha), large * np.sin(beta), large * np.cos(beta)])
    return list(Rotation.from_quat(quats))


def _joined(ways: Sequence[RestingWay], corners: FloatArray) -> list[RestingWay]:
    """Merge rest poses between which an object rolls freely, the most frequent first."""
    ordered = sorted(ways, key=lambda way: -way.share)
    rolls = np.array([[_rolls(corners, one.down, other.down) for other in ordered] for one in ordered])
    label = connected_components(rolls, directed=False)[1]
    found = []
    for name in dict.fromkeys(label.tolist()):
        members = [way for way, own in zip(ordered, label, strict=True) if own == name]
        found.append(replace(members[0], share=sum(way.share for way in members)))
    return sorted(found, key=lambda way: -way.share)


def _rolls(corners: FloatArray, one: FloatArray, other: FloatArray) -> bool:
    """Return True if only bumps separate two rest poses."""
    shares = np.linspace(0, 1, 25)[:, None]
    path = (1 - shares) * one + shares * other
    length = np.linalg.norm(path, axis=1, keepdims=True)
    if length.min() < 0.3:
        return False
    height = (corners @ (path / length).T).max(axis=0)
    return bool(height.max() - min(height[0], height[-1]) < max(_BUMP, _ROLLS * height[0]))


def _lowest(corners: FloatArray, down: FloatArray) -> FloatArray:
    """Return the face normal near a direction with the lowest center of mass.

    Contacts in the simulation are compliant, so the direction of a resting object is slightly off.
    """
    equations = qhull(corners).equations
    near = equations[equations[:, :3] @ down > np.cos(_SAME)]
    return near[int(np.argmin(-near[:, 3])), :3] if len(near) else down


def _margin(corners: FloatArray, down: FloatArray) -> float:
    """Return the smallest tilt [rad] at which the center of mass passes the edge of support; bumps are ignored."""
    across = np.cross(down, np.eye(3)[int(np.argmin(np.abs(down)))])
    across /= np.linalg.norm(across)
    other = np.cross(down, across)
    margins = []
    for angle in np.linspace(0, 2 * np.pi, 24, endpoint=False):
        side = np.cos(angle) * across + np.sin(angle) * other
        tilted = np.cos(_TILTS)[:, None] * down + np.sin(_TILTS)[:, None] * side
        height = (corners @ tilted.T).max(axis=0)
        top = np.maximum.accumulate(height)
        over = np.flatnonzero(top - height > max(_BUMP, _RELATIVE_BUMP * height[0]))
        end = int(over[0]) if len(over) else len(_TILTS)
        margins.append(float(_TILTS[int(np.argmax(height[:end] > height[:end].max() - _LEVEL))]))
    return min(margins)
