"""Look of a baked scene, from its sources weighted by the drawn light, and from the colors of reflecting surfaces."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from nimbus.datagen.arrays import Float32Array, FloatArray
from nimbus.datagen.episode.layout import Light, Vector
from nimbus.datagen.render.baked_light.light_basis import GROUPS, PLACES, SKY_BINS, ZENITH, LightBasis

DAYLIGHT = 4.0
"""Brightness of a home's windows relative to the light's sky."""
_DIMMED = 0.3
"""Light of each lamp other than the key light, as a fraction of the sky's light; drawn lights are added to it."""
_WINDOWS = 8.0
"""Largest brightness of windows relative to an open scene's sky, so that they light a room."""
_GLOW = 1.6
"""Light of emissive samples, slightly above white."""
_LEAST, _MOST = 0.4, 3.0
"""Range of the exposure that gives the workplace the light it would have without walls."""
_MIDDLE = 0.5
"""Median light of a home's samples after exposure."""
_OUTSIDE = 0.75
"""Smallest fraction of sky and ground in the surroundings of a sample that counts as outside."""
_BRIGHTEST = 6.0
"""Largest exposure of a home."""
_LUMINANCE = np.array([0.2126, 0.7152, 0.0722])


@dataclass(frozen=True, kw_only=True, eq=False)
class WeighedLight:
    """Light of one look."""

    values: Float32Array
    """(S, 4) linear light on each sample, and the fraction of ``key`` in it."""
    key: Vector
    """Linear light of the lamp that casts the shadows of moving bodies, at a sample with fraction 1."""
    light: Light
    """Light for moving bodies: that lamp as a directional light, and the remaining light at the workplace from above
    and below."""


def weigh(basis: LightBasis, light: Light, colors: FloatArray, sky: FloatArray | None = None) -> WeighedLight:
    """Combine the basis into a look.

    Args:
        basis: Basis of the scene.
        light: Drawn light; its directions select the lamps.
        colors: (GROUPS, 3) linear albedo of each group of surfaces.
        sky: (SKY_BINS, 3) radiance of the parts of the sky; by default that of the light.
    """
    towards = basis.lamps - basis.workplace
    towards /= np.linalg.norm(towards, axis=1, keepdims=True)
    ambient = np.asarray(light.sky, dtype=float)
    weights = np.zeros((PLACES + SKY_BINS, 3))
    weights[:PLACES] = _DIMMED * ambient
    chosen = int(np.argmax(towards @ -np.asarray(light.direction)))
    weights[chosen] = np.asarray(light.color) * max(-light.direction[2], 0.0)
    for lamp in light.lamps:
        weights[int(np.argmax(towards @ -np.asarray(lamp.direction)))] += np.asarray(lamp.color) * max(
            -lamp.direction[2], 0.0
        )
    direct = basis.direct.astype(np.float32)
    if sky is None:
        sky = np.array([light.sky] * (SKY_BINS - 1) + [light.ground])
    # The less of the sky the workplace sees (sample -2 faces up there), the brighter the sky is made, so that windows
    # light a room as an open sky would.
    weights[PLACES:] = sky * min(_WINDOWS, 1.0 / max(float(direct[-2, PLACES:].sum()), 1e-3))
    total = direct @ weights.astype(np.float32) + _reflected(basis, weights, colors)
    goal = weights[chosen] + ambient
    exposure = float(np.clip(_LUMINANCE @ goal / max(_LUMINANCE @ total[-2], 1e-6), _LEAST, _MOST))
    total, key = total * exposure, weights[chosen] * exposure
    share = direct[:, chosen]
    # Sample -7 stands for all light sources, such as windows; no shadow falls on it.
    total[-7], share[-7] = _GLOW, 0.0
    above, below = (np.maximum(total[end] - share[end] * key, 0.0) for end in (-2, -1))
    # The probe is horizontal. Division by the cosine gives the light on a surface that faces the lamp; the lower bound
    # keeps a low lamp from becoming extremely bright.
    key_light = key * share[-2] / max(float(towards[chosen, 2]), 0.2)
    moving = replace(
        light,
        direction=_vector(-towards[chosen]),
        color=_vector(key_light),
        sky=_vector(above),
        ground=_vector(below),
        lamps=(),
    )
    values = np.concatenate([total, share[:, None]], axis=1).astype(np.float32)
    return WeighedLight(values=values, key=_vector(key), light=moving)


def weigh_scene(basis: LightBasis, light: Light, colors: FloatArray) -> WeighedLight:
    """Combine the basis of a whole static scene, exposed so that its median light is fixed.

    Args:
        basis: Basis of the scene, which has its own lamps.
        light: Drawn light: ``color`` of all lamps, or ``lamps`` for each source; ``sky`` enters through windows.
        colors: (GROUPS, 3) linear albedo of each group of surfaces.
    """
    lamps = [lamp.color for lamp in light.lamps] if len(light.lamps) == PLACES else [light.color] * PLACES
    weights = np.concatenate([np.array(lamps), np.array([light.sky] * SKY_BINS) * DAYLIGHT])
    direct = basis.direct.astype(np.float32)
    total = direct @ weights.astype(np.float32) + _reflected(basis, weights, colors)
    # Outer faces of a building, in full daylight, would make its rooms dark.
    inside = (basis.weight > 0) & (direct[:, PLACES:].sum(axis=1) < _OUTSIDE)
    middle = float(np.median((total @ _LUMINANCE)[inside if inside.any() else basis.weight > 0]))
    total *= float(np.clip(_MIDDLE / max(middle, 1e-6), _LEAST, _BRIGHTEST))
    total[-7] = _GLOW
    values = np.concatenate([total, np.zeros((len(total), 1))], axis=1).astype(np.float32)
    return WeighedLight(values=values, key=(0.0, 0.0, 0.0), light=light)


def sky_parts(picture: FloatArray, *, turn: float, intensity: float) -> FloatArray:
    """Return the radiance (SKY_BINS, 3) of the parts of an environment map, by solid angle.

    Args:
        picture: (H, W, 3) linear light, equirectangular; its top row is straight up, its left edge at +x, and its
            columns run clockwise as seen from above.
        turn: Rotation about the vertical [rad].
        intensity: Factor on the light.
    """
    height, width = picture.shape[:2]
    rise = np.pi * (0.5 - (np.arange(height) + 0.5) / height)
    around = turn - 2 * np.pi * (np.arange(width) + 0.5) / width
    quarter = 2 * (np.cos(around) < 0) + (np.sin(around) < 0)
    part = np.where(rise[:, None] < 0, 5, np.where(np.sin(rise)[:, None] > ZENITH, 4, quarter[None]))
    weight = np.broadcast_to(np.cos(rise)[:, None], part.shape).ravel()
    area = np.maximum(np.bincount(part.ravel(), weight, SKY_BINS), 1e-9)
    light = [np.bincount(part.ravel(), weight * channel, SKY_BINS) for channel in picture.reshape(-1, 3).T]
    return intensity * np.stack(light, axis=1) / area[:, None]


def _reflected(basis: LightBasis, weights: FloatArray, colors: FloatArray) -> FloatArray:
    """Return (S, 3) reflected light: the first bounce exactly, further ones with the mean brightness of each group."""
    once = np.einsum("skg,kc,gc->sc", basis.bounce.astype(np.float32), weights, colors, optimize=True)
    share = basis.share.astype(np.float32)
    parts = [basis.weight * (basis.group == group) for group in range(GROUPS)]
    mean = np.stack([part / max(float(part.sum()), 1e-9) for part in parts])
    first, between = mean @ once, mean @ share
    rest = np.empty((GROUPS, 3))
    for channel in range(3):
        # The sum of all further bounces is a geometric series of the exchange between groups, solved in closed form.
        rest[:, channel] = np.linalg.solve(np.eye(GROUPS) - between * colors[:, channel], first[:, channel])
    return once + share @ (colors * rest)


def _vector(values: FloatArray) -> Vector:
    x, y, z = (float(value) for value in values)
    return x, y, z
