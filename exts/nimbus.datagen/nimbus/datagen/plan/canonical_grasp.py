"""Canonical grasps: straight down on an object's center, with the closing axis near that of the home posture."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.plan.grasp import GraspAxes, GripperShape

_GRID = np.radians(15.0)
"""Spacing of the headings that are sampled [rad]; the narrowest heading is then searched between two of them."""
_BETWEEN, _NEAR_HOME = (0.2, 0.4, 0.6, 0.8), np.radians(30.0)
"""Fractions of the rotation from the home heading to a narrowest heading, and the largest such rotation [rad]. Where
both headings are about equally good, headings between them make the choice change in small steps."""
_NARROWEST = 3
"""Largest number of narrowest headings."""
_HALVINGS = 12
"""Number of steps of the golden-section search for a narrowest heading, which ends within 0.1 degrees."""
_HEIGHTS = 0.006 * np.array([0, 1, -1, 2, -2, 3, 4, 5])
"""Offsets of a closing axis from the preferred height [m]."""
_SIDEWAYS = (0.0, 0.008, -0.008, 0.016, -0.016, 0.024, -0.024, 0.036, -0.036)
"""Offsets of the hand across its closing axis, where no axis passes through the center [m]."""
_UNDER_PALM = 0.001
"""Clearance between an object and the palm [m]."""
_BESIDE = 0.48
"""Offset of the rays beside an axis, as a fraction of the pad's width."""
_SAME = 0.015
"""Distance from the contact at a pad's center within which that pad also touches another surface [m]."""
_BLUNT = 1e-9
"""Projected area of a triangle below which a ray sees it edge-on [m²]."""

_HEADING = 1.0
"""Cost per radian between the closing axis and the one of the home posture; it sets the scale of the costs below."""
_WIDER, _HARDLY_WIDER = 300.0, 0.001
"""Cost of excess width over the narrowest axis [1/m], and the excess [m] below which the cost grows quadratically. With
these values, an axis across two faces of a box wins over a heading nearer to home (each radian of rotation adds 17 mm
to the width for a pad of 17 mm), a clearly narrower axis wins over a wider one, and the facets of a round mesh do not
matter."""
_TILT = 2.5
"""Cost per radian between the approach and straight down."""
_OFF_MIDDLE = 20.0
"""Cost of a horizontal offset from the center [1/m]."""
_OFF_HEIGHT = 25.0
"""Cost of an offset from the height of the center, or from the lowest height that the palm allows [1/m]."""
_BADLY_ALIGNED, _BADLY_SUPPORTED, _TIGHT, _OTHER_SIDE = 0.3, 0.3, 0.1, 0.05
"""Costs of surfaces that face the pads badly, cover little of them, or leave little clearance, and of the wall that is
farther from the home posture's closing axis."""
_WELL_SUPPORTED = 0.4
"""Covered fraction of a pad above which more cover has no advantage."""


@dataclass(frozen=True, kw_only=True)
class CentralAxes:
    """Closing axes through the center of an object in its pose, and the excess width of all axes."""

    axes: GraspAxes
    """Sampled axes, followed by those through the center."""
    excess: FloatArray
    """(N,) width beyond that of the narrowest heading at the same position [m]."""


def add_central_axes(axes: GraspAxes, world: FloatArray, *, heading: float, table_height: float) -> CentralAxes:
    """Add axes for a hand that comes straight down on the center of an object.

    Args:
        axes: Axes sampled on the object.
        world: (4, 4) ``world_T_object``.
        heading: Heading of the home posture's closing axis [rad].
        table_height: Height of the support [m].
    """
    cuts = _Cuts(axes, world, wanted_height(axes, world, table_height) + _HEIGHTS)
    # The grid rotates with the object, so that the results depend on the object's shape alone.
    level = world[:2, int(np.argmin(np.abs(world[2, :3])))]
    headings = np.arctan2(level[1], level[0]) + _GRID * np.arange(round(np.pi / _GRID))
    found: list[tuple[float, _Contacts]] = []
    for sideways in _SIDEWAYS:
        widths = [cuts.width(float(angle), sideways) for angle in headings]
        narrow = _narrowest(cuts, headings, widths, sideways)
        headings_here = [*headings, heading, *narrow, *_between(heading, narrow)]
        found = [
            (float(angle), contacts)
            for angle in headings_here
            for contacts in cuts.contacts(float(angle), sideways)
            if contacts.is_graspable(axes)
        ]
        if found:
            break
    least: dict[float, float] = {}
    for _, contacts in found:
        least[contacts.height] = min(contacts.padded, least.get(contacts.height, np.inf))
    turn, place = world[:3, :3], world[:3, 3]
    middles = np.array([contacts.middle for _, contacts in found]).reshape(-1, 3)
    directions = np.array([(np.cos(angle), np.sin(angle), 0.0) for angle, _ in found]).reshape(-1, 3)
    alignments = np.array([contacts.alignment for _, contacts in found])
    half_pad = axes.gripper.pad_width * np.sin(axes.friction_angle)
    return CentralAxes(
        axes=replace(
            axes,
            middles=np.vstack([axes.middles, (middles - place) @ turn]),
            directions=np.vstack([axes.directions, directions @ turn]),
            widths=np.append(axes.widths, [contacts.width for _, contacts in found]),
            alignments=np.append(axes.alignments, axes.alignment_of(alignments)),
        ),
        # The width of a sampled axis is measured by a single ray. A pad on a tilted surface touches its highest point,
        # which adds half of the pad's width times the sine of the tilt.
        excess=np.append(
            np.maximum(axes.widths - min(least.values(), default=np.inf), 0.0)
            + half_pad * np.sqrt(1.0 - axes.alignments),
            [contacts.padded - least[contacts.height] for _, contacts in found],
        ),
    )


def wanted_height(axes: GraspAxes, world: FloatArray, table_height: float) -> float:
    """Return the height of the pad centers [m]: that of the object's center, or the lowest that the hand can reach."""
    heights = axes.vertices @ world[2, :3] + world[2, 3]
    middle = float(world[2, :3] @ axes.center + world[2, 3])
    lowest = table_height + 0.5 * axes.gripper.pad_height + _UNDER_PALM
    return max(middle, float(heights.max()) - axes.gripper.finger_depth + _UNDER_PALM, lowest)


def distance_from_canonical(
    central: CentralAxes,
    world: FloatArray,
    *,
    frames: FloatArray,
    origins: FloatArray,
    which: np.ndarray,
    tilt: FloatArray,
    heading: float,
    table_height: float,
) -> FloatArray:
    """Return the distance (C,) of hands from the canonical grasp, without the cost of support.

    Args:
        central: Axes of the object.
        world: (4, 4) ``world_T_object``.
        frames: (C, 3, 3) frames of the hands.
        origins: (C, 3) origins of the hands [m].
        which: (C,) axis of each.
        tilt: (C,) tilt of each [rad].
        heading: Heading of the home posture's closing axis [rad].
        table_height: Height of the object's support [m].
    """
    axes, home = central.axes, np.array([np.cos(heading), np.sin(heading)])
    closing = frames[:, :2, 1] / np.maximum(np.linalg.norm(frames[:, :2, 1], axis=1, keepdims=True), 1e-9)
    turned = np.arccos(np.clip(np.abs(closing @ home), 0.0, 1.0))
    aside = origins - (world[:3, :3] @ axes.center + world[:3, 3])
    height = origins[:, 2] - wanted_height(axes, world, table_height)
    wider = central.excess[which]
    roomy = np.clip((axes.gripper.opening - axes.widths[which]) / 0.02, 0.0, 1.0)
    return (
        _HEADING * turned
        # Quadratic for small excess and linear beyond, without a kink: facets of a round mesh cost nothing.
        + _WIDER * wider**2 / (wider + _HARDLY_WIDER)
        + _TILT * tilt
        + _OFF_MIDDLE * np.linalg.norm(aside[:, :2], axis=1)
        + _OFF_HEIGHT * np.abs(height)
        + _BADLY_ALIGNED * (1.0 - axes.alignments[which])
        + _TIGHT * (1.0 - roomy)
        + _OTHER_SIDE * (aside[:, :2] @ home < -0.005)
    )


def price_of_support(support: FloatArray) -> FloatArray:
    """Return the distance (C,) from the canonical grasp that the covered fraction of the pads adds."""
    return _BADLY_SUPPORTED * (1.0 - np.minimum(support / _WELL_SUPPORTED, 1.0))


def turn_home(frames: FloatArray, heading: float) -> FloatArray:
    """Rotate frames (C, 3, 3) of a symmetric gripper by half a turn where y is then nearer to a heading [rad]."""
    away = frames[:, :2, 1] @ np.array([np.cos(heading), np.sin(heading)]) < 0.0
    return np.where(away[:, None, None], frames * np.array([-1.0, -1.0, 1.0]), frames)


@dataclass(frozen=True, kw_only=True)
class _Contacts:
    middle: FloatArray
    """(3,) center in the world [m]."""
    height: float
    """Requested height [m]."""
    width: float
    """Width along the axis [m]."""
    padded: float
    """Distance of the outermost surfaces that the pads touch, over most of their width [m]."""
    alignment: float
    """Cosine of the larger angle between the axis and a normal."""

    def is_graspable(self, axes: GraspAxes) -> bool:
        """Return True if the pads can close on the pair, and its surfaces face them."""
        fits = axes.min_width <= self.width and self.padded <= axes.gripper.max_width
        return fits and self.alignment >= np.cos(axes.friction_angle)


class _Cuts:
    """Horizontal lines through an object in its pose.

    Args:
        axes: Axes of the object.
        world: (4, 4) ``world_T_object``.
        heights: Heights of the lines in order of preference [m].
    """

    def __init__(self, axes: GraspAxes, world: FloatArray, heights: FloatArray) -> None:
        self._gripper: GripperShape | None = axes.gripper if axes.open_inside else None
        self._heights = heights
        corners = axes.triangles @ world[:3, :3].T + world[:3, 3]
        low, high = corners[:, :, 2].min(axis=1), corners[:, :, 2].max(axis=1)
        self._center = world[:3, :3] @ axes.center + world[:3, 3]
        self._corners = corners[(low < heights.max()) & (high > heights.min())] - self._center
        self._first = corners[(low < heights[0]) & (high > heights[0])] - self._center
        self._beside = _BESIDE * axes.gripper.pad_width

    def width(self, heading: float, sideways: float) -> float:
        """Return the width between pads at the preferred height [m]; infinite without contact."""
        found = self._cut(self._first, self._heights[:1], heading, sideways)
        return min((contacts.padded for contacts in found), default=np.inf)

    def contacts(self, heading: float, sideways: float) -> Iterator[_Contacts]:
        """Yield pairs of contacts of a hand with a heading [rad] and an offset from the center [m], at all heights."""
        return self._cut(self._corners, self._heights, heading, sideways)

    def _cut(self, corners: FloatArray, heights: FloatArray, heading: float, sideways: float) -> Iterator[_Contacts]:
        closing = np.array([np.cos(heading), np.sin(heading), 0.0])
        across = np.array([closing[1], -closing[0], 0.0])
        x, y = corners @ across, corners @ closing
        reach = abs(sideways) + self._beside
        here = (x.min(axis=1) < reach) & (x.max(axis=1) > -reach)
        at = sideways + np.array([0.0, self._beside, -self._beside])
        lines = np.stack(np.meshgrid(at, heights - self._center[2], indexing="ij"), axis=-1)
        hits, facing = _hits(x[here], y[here], corners[here, :, 2], lines.reshape(-1, 2))
        hits = hits.reshape(3, len(heights), -1)
        for row, height in enumerate(heights):
            places = np.flatnonzero(np.isfinite(hits[0, row]))
            places = places[np.argsort(hits[0, row, places], kind="stable")]
            beside = hits[1:, row][np.isfinite(hits[1:, row])]
            for first, last in _pairs(hits[0, row, places], self._gripper):
                low, high = hits[0, row, places[first]], hits[0, row, places[last]]
                middle = self._center + sideways * across + 0.5 * (low + high) * closing
                yield _Contacts(
                    middle=np.array([middle[0], middle[1], height]),
                    height=float(height),
                    width=float(high - low),
                    padded=_outermost(beside, high, 1.0) - _outermost(beside, low, -1.0),
                    alignment=float(min(-facing[places[first]], facing[places[last]])),
                )


def _hits(x: FloatArray, y: FloatArray, z: FloatArray, lines: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Intersect lines along y with triangles; return y of hits (K, m) [m], NaN for misses, and y of unit normals (m,).

    Args:
        x: (m, 3) x of the corners [m].
        y: (m, 3) y of the corners [m].
        z: (m, 3) z of the corners [m].
        lines: (K, 2) x and z [m].
    """
    one = np.stack([x[:, 1] - x[:, 0], y[:, 1] - y[:, 0], z[:, 1] - z[:, 0]])
    two = np.stack([x[:, 2] - x[:, 0], y[:, 2] - y[:, 0], z[:, 2] - z[:, 0]])
    normal = np.cross(one, two, axis=0)
    seen = -normal[1]
    safe = np.where(np.abs(seen) < _BLUNT, np.inf, seen)
    dx, dz = lines[:, :1] - x[:, 0], lines[:, 1:] - z[:, 0]
    u = (dx * two[2] - dz * two[0]) / safe
    v = (dz * one[0] - dx * one[2]) / safe
    inside = (u >= 0) & (v >= 0) & (u + v <= 1) & np.isfinite(safe)
    places = np.where(inside, y[:, 0] + u * one[1] + v * two[1], np.nan)
    facing = normal[1] / np.maximum(np.linalg.norm(normal, axis=0), 1e-15)
    return places, facing


def _pairs(places: FloatArray, gripper: GripperShape | None) -> Iterator[tuple[int, int]]:
    """Yield the first and last of the sorted hits between two pads: the outermost ones, or those of a hollow's wall."""
    if len(places) < 2:
        return
    inner = np.flatnonzero(np.diff(places) > 1e-5)
    room = np.inf if gripper is None else gripper.finger_thickness + 0.5 * gripper.opening
    wide = [int(gap) for gap in inner if places[gap + 1] - places[gap] >= room and 0 < gap < len(places) - 2]
    if not wide:
        yield 0, len(places) - 1
        return
    yield 0, wide[0]
    yield wide[-1] + 1, len(places) - 1


def _outermost(beside: FloatArray, contact: float, sign: float) -> float:
    """Return the contact, or the outermost surface beside it that the same pad touches [m]."""
    near = sign * beside[np.abs(beside - contact) < _SAME]
    return sign * max(sign * contact, float(near.max(initial=-np.inf)))


def _narrowest(cuts: _Cuts, headings: FloatArray, widths: Sequence[float], sideways: float) -> list[float]:
    """Return headings between grid points at which an object is locally narrowest, by golden section [rad]."""
    count, ratio = len(widths), (np.sqrt(5) - 1) / 2
    lows = [
        index
        for index in range(count)
        if np.isfinite(widths[index]) and widths[index] <= min(widths[index - 1], widths[(index + 1) % count])
    ]
    found = []
    for index in sorted(lows, key=lambda index: widths[index])[:_NARROWEST]:
        low, high = headings[index] - _GRID, headings[index] + _GRID
        for _ in range(_HALVINGS):
            left, right = high - ratio * (high - low), low + ratio * (high - low)
            if cuts.width(float(left), sideways) <= cuts.width(float(right), sideways):
                high = right
            else:
                low = left
        found.append(float((low + high) / 2))
    return found


def _between(heading: float, narrow: Sequence[float]) -> Iterator[float]:
    """Yield headings between a heading and each narrowest one near it; headings are equal modulo half a turn."""
    for other in narrow:
        way = (other - heading + np.pi / 2) % np.pi - np.pi / 2
        if abs(way) < _NEAR_HOME:
            yield from (heading + share * float(way) for share in _BETWEEN)
