"""Decisions of the import about unit, category and mass, with reasons and alternatives."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.assets.found import FoundAsset
from nimbus.datagen.errors import InputError
from nimbus.datagen.objects.categories import Category, find_category
from nimbus.datagen.objects.imported.surface import ImportedSurface

Value = str | float
SMALLEST, LARGEST = 0.003, 1.5
"""Plausible range of the longest side [m]."""
_ANY = (0.03, 0.35)
"""Range of the longest side of nine out of ten tabletop objects [m]."""
_UNITS = {"m": (1.0, 0.0), "cm": (0.01, 0.3), "mm": (0.001, 0.3), "dm": (0.1, 1.5), "in": (0.0254, 1.0)}
"""Length of each unit [m], and its penalty for a file that states no unit, as the logarithm of a size ratio."""
_DOUBT = {"certain": 2.5, "format": 1.5, "claimed": 0.3}
"""Penalty of each unit that differs from the stated one, by the origin of the statement: layout, format, or unreliable
metadata."""
_RANKED = 4
"""Largest number of recorded alternatives."""
_DENSITY = 400.0
"""Default density [kg/m³]."""
_DENSITIES = (2.0, 25_000.0)
"""Range of plausible densities [kg/m³], from foam to gold."""
_PLAUSIBLE = (60.0, 3000.0)
"""Range of the density that a stated mass may imply without a known category [kg/m³]."""
_SLACK = 1.5
"""Factor by which a stated mass may be outside the range of its category."""
_LIGHTEST, _HEAVIEST = 5e-5, 20.0
"""Range of plausible masses [kg]."""


@dataclass(frozen=True, kw_only=True)
class Decision:
    """Value, with its reason and alternatives."""

    value: Value
    why: str
    others: tuple[tuple[Value, str], ...] = ()
    """Alternatives with their reasons, the best first."""


def decide_category(asset: FoundAsset, given: Mapping[str, Value]) -> tuple[Decision, Category | None]:
    """Find the category in the names of the asset, or use the given one."""
    if name := str(given.get("category", "")):
        found = find_category((name,))
        return Decision(value=name, why="given"), found[1] if found else None
    found = find_category(asset.words)
    if found is None:
        own = " ".join(asset.name.lower().replace("_", " ").replace("-", " ").split())
        if not any(letter.isalpha() for letter in own):
            return Decision(value="object", why="its name is a number"), None
        return Decision(value=own[:80], why="its names contain no known category"), None
    category, entry, words = found
    others = ((category.replace("_", " "), "its category"),) if words != category.replace("_", " ") else ()
    return Decision(value=words, why=f"its name contains '{words}' ({category})", others=others), entry


def class_of(category: Category | None) -> Decision:
    """Return the class of a category."""
    if category is None:
        return Decision(value="object", why="no known category")
    return Decision(value=category.object_class, why="class of its category")


def decide_scale(
    surface: ImportedSurface, asset: FoundAsset, category: Category | None, given: Mapping[str, Value]
) -> Decision:
    """Choose the length of the file's unit [m] from the format, the size of the asset, and usual sizes.

    Raises:
        InputError: No unit gives a plausible size.
    """
    longest = float(np.ptp(surface.corners.reshape(-1, 3), axis=0).max())
    if longest <= 0:
        raise InputError("all points coincide", instead="export it again")
    if "scale" in given:
        scale = float(given["scale"])
        _check_size(longest * scale, longest)
        return Decision(value=scale, why=f"given: {_length(longest * scale)} long")
    known, trust = _known_unit(surface, asset)
    likely = (category.long[0] / 100, category.long[1] / 100) if category else _ANY
    ranked = []
    for metres, doubt, why in _candidates(known, trust, category, longest):
        size = longest * metres
        if SMALLEST <= size <= LARGEST:
            away = max(0.0, math.log(likely[0] / size), math.log(size / likely[1]))
            ranked.append((away + doubt, metres, f"{why}: {_length(size)} long"))
    ranked.sort()
    if not ranked:
        _check_size(longest * (known or 1.0), longest)
    (_, scale, why), *others = ranked
    if category:
        why += f", {category.long[0]:g} to {category.long[1]:g} cm is usual"
    return Decision(value=scale, why=why, others=tuple((metres, reason) for _, metres, reason in others[:_RANKED]))


def _known_unit(surface: ImportedSurface, asset: FoundAsset) -> tuple[float | None, str]:
    """Return the length of the file's unit [m], and the certainty of this value (a key of ``_DOUBT``)."""
    if asset.metres is not None:
        if asset.metres <= 0:
            return None, ""  # the layout states no unit
        return asset.metres, "certain" if asset.is_unit_certain else "format"
    if surface.unit_is_known:
        return surface.metres, "format" if surface.metres == 1.0 else "claimed"
    return None, ""


def _candidates(
    known: float | None, trust: str, category: Category | None, longest: float
) -> list[tuple[float, float, str]]:
    """Return candidate units: length [m], penalty and reason."""
    if known is None:
        found = [(metres, doubt, f"no unit is stated; as {name}") for name, (metres, doubt) in _UNITS.items()]
        if category:
            middle = math.sqrt(category.long[0] * category.long[1]) / 100
            found.append((float(f"{middle / longest:.6g}"), 1.2, "scaled to the usual size of its category"))
        return found
    found = [(known, 0.0, "the file's unit")]
    if category or trust == "claimed":  # without a known size, a deliberately stated unit is not doubted
        found += [
            (metres, doubt + _DOUBT[trust], f"not the file's unit; as {name}")
            for name, (metres, doubt) in _UNITS.items()
            if metres != known
        ]
    return found


def _check_size(size: float, longest: float) -> None:
    if SMALLEST <= size <= LARGEST:
        return
    what = f"it is {_length(size)} long; expected {1000 * SMALLEST:g} mm to {LARGEST:g} m"
    raise InputError(
        what, instead=f"set 'scale' to the length of the model's unit in meters; the model is {longest:.3g} units long"
    )


def decide_mass(
    asset: FoundAsset, category: Category | None, *, volume: float, longest: float, given: Mapping[str, Value]
) -> Decision:
    """Choose the mass [kg]: the given one, the source's if plausible, the usual one of the category, or by density.

    Args:
        asset: Asset with the values that the source states.
        category: Category of the asset.
        volume: Volume of the solid [m³].
        longest: Longest side [m].
        given: Values of the user.

    Raises:
        InputError: The given mass is implausible.
    """
    if "mass" in given:
        mass, why = float(given["mass"]), "given"
        density = mass / volume
        if not (_LIGHTEST <= mass <= _HEAVIEST and _DENSITIES[0] <= density <= _DENSITIES[1]):
            what = f"a mass of {mass:.3g} kg for {volume * 1e6:.3g} cm³ ({density:.3g} kg/m³) is implausible"
            raise InputError(what, instead=f"write a mass that gives {_DENSITIES[0]:g} to {_DENSITIES[1]:g} kg/m³")
        return Decision(value=mass, why=why)
    ranked: list[tuple[float, str]] = []
    doubted: list[tuple[float, str]] = []
    if asset.mass is not None:
        low, high = (category.mass[0] / 1000 / _SLACK, category.mass[1] / 1000 * _SLACK) if category else (0.0, 0.0)
        density = asset.mass / volume
        is_plausible = low <= asset.mass <= high if category else _PLAUSIBLE[0] <= density <= _PLAUSIBLE[1]
        line = f"the source states {1000 * asset.mass:.3g} g, {density:.3g} kg/m³"
        (ranked if is_plausible else doubted).append((asset.mass, line if is_plausible else f"{line}; not plausible"))
    if category:
        (low, high), (small, large) = category.mass, category.long
        share = min(max(math.log(100 * longest / small) / math.log(large / small), 0.0), 1.0)
        usual = low * (high / low) ** share / 1000
        ranked.append((usual, f"{low:g} to {high:g} g is usual for its category; interpolated by size"))
    ranked.append((_DENSITY * volume, f"computed with {_DENSITY:g} kg/m³ for a solid"))
    ranked = [
        (float(f"{min(max(mass, _LIGHTEST), _HEAVIEST):.4g}"), why)
        for mass, why in ranked
        if _DENSITIES[0] <= mass / volume <= _DENSITIES[1] or why.endswith("solid")
    ]
    (mass, why), *others = [*ranked, *doubted]
    return Decision(value=mass, why=why, others=tuple(others))


def _length(metres: float) -> str:
    if metres >= 1:
        return f"{metres:.3g} m"
    return f"{metres * 100:.3g} cm" if metres >= 0.01 else f"{metres * 1000:.3g} mm"


def flat(extent: FloatArray) -> bool:
    """Return True for an extent (3,) of a flat surface, thinner than 0.2 mm."""
    return bool(extent.min() < 2e-4)
