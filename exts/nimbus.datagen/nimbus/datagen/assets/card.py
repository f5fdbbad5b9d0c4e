"""File ``asset.yaml``: the decisions about one kind, which users may edit."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import yaml
from pydantic import Field

from nimbus.datagen.assets.decisions import Decision, Value
from nimbus.datagen.assets.found import FoundAsset
from nimbus.datagen.errors import InputError, suggest
from nimbus.datagen.files.strict_yaml import Name, StrictModel, load
from nimbus.datagen.objects.imported.settings import CavitySettings, NamedFrame, Point

_HEAD = "# Decisions of the import. Change a value and run the import again: yours wins.\n"
EDITABLE: dict[str, tuple[str, ...] | type] = {
    "class": str,
    "category": str,
    "scale": float,
    "up": ("x", "-x", "y", "-y", "z", "-z"),
    "mass": float,
    "friction": float,
    "symmetry": ("none", "revolution", "box"),
    "pieces": float,
    "license": str,
    "front": ("-x", "x", "-y", "y"),
}
"""Decisions that users may change, with the allowed values or the type of each."""
OF_PARTS: dict[str, tuple[str, ...] | type] = {
    "moves": ("hinge", "slide", "fixed"),
    "lower": float,
    "upper": float,
    "closed": ("lower", "upper"),
    "damping": float,
    "friction": float,
    "stiffness": float,
    "handle": str,
}
"""Decisions about a moving part; their names in the file follow the part's name and a dot."""
_ANY_SIGN = ("lower", "upper")
"""Decisions whose values may be negative."""


class OtherValue(StrictModel):
    """Alternative to a decision."""

    value: str | float
    why: str


class WrittenDecision(StrictModel):
    """Decision as written in the file."""

    value: str | float
    why: str = ""
    others: tuple[OtherValue, ...] = ()


class Additions(StrictModel):
    """Points, frames and cavities of the user in the kind's frame [m], in addition to those that are found."""

    keypoints: dict[Name, Point] = {}
    frames: dict[Name, NamedFrame] = {}
    cavities: dict[Name, CavitySettings] = {}


class AssetCard(StrictModel):
    """Schema of the file."""

    kind: str
    refused: str = ""
    source: dict[str, str] = {}
    decisions: dict[str, WrittenDecision] = {}
    found: dict[str, Annotated[str, Field(max_length=2000)]] = {}
    notes: tuple[str, ...] = ()
    add: Additions = Additions()


def card_text(
    kind: str,
    asset: FoundAsset,
    *,
    source: str,
    decisions: dict[str, Decision],
    found: dict[str, str],
    notes: tuple[str, ...],
    add: Additions,
    refused: str = "",
) -> str:
    """Compose the text of the file; equal decisions give equal text."""
    content: dict[str, object] = {"kind": kind}
    if refused:
        content["refused"] = refused
    content["source"] = {"file": source, "path": asset.path, "layout": asset.layout}
    content["decisions"] = {
        name: {"value": one.value, "why": one.why}
        | ({"others": [{"value": value, "why": why} for value, why in one.others]} if one.others else {})
        for name, one in decisions.items()
    }
    content["found"] = found
    if notes:
        content["notes"] = list(notes)
    content["add"] = add.model_dump(mode="json")
    return _HEAD + yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=1000)


def read_card(path: Path, automatic: dict[str, Value]) -> tuple[dict[str, Value], Additions]:
    """Read the changes of the user: decisions that differ from the import's, and additions.

    Raises:
        InputError: The file has an error.
    """
    card = load(path, AssetCard)
    given: dict[str, Value] = {}
    for name, decision in card.decisions.items():
        value, wanted = decision.value, _wanted(path, name, automatic)
        own = name.partition(".")[2]
        least = -math.inf if own in _ANY_SIGN else 0.0
        if wanted is float and (isinstance(value, str) or value < least or (value == 0 and own not in OF_PARTS)):
            what = f"decisions.{name}: {value!r} is not a number{'' if own in _ANY_SIGN else ' above 0'}"
            raise InputError(what, where=str(path), instead=f"write {automatic.get(name, 1.0)}")
        if isinstance(wanted, tuple) and value not in wanted:
            raise InputError(f"decisions.{name}: {value!r}", where=str(path), instead=suggest(str(value), wanted))
        if automatic.get(name) != value:
            given[name] = value
    return given, card.add


def _wanted(path: Path, name: str, automatic: dict[str, Value]) -> tuple[str, ...] | type:
    """Return the allowed values or the type of a decision; decisions about parts depend on the parts of the asset."""
    part, _, own = name.rpartition(".")
    if part and f"{part}.moves" in automatic and own in OF_PARTS:
        return OF_PARTS[own]
    if name in EDITABLE:
        return EDITABLE[name]
    parts = [known.removesuffix(".moves") for known in automatic if known.endswith(".moves")]
    known = [*EDITABLE, *(f"{one}.{field}" for one in parts for field in OF_PARTS)]
    raise InputError(f"there is no decision '{name}'", where=str(path), instead=suggest(name, known))
