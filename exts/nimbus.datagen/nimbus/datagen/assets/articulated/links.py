"""Geometry of the base and the moving parts of an asset, read from its files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.assets.articulated.chains import merge_still
from nimbus.datagen.assets.articulated.handles import NAMED
from nimbus.datagen.assets.decisions import Decision, Value
from nimbus.datagen.assets.found import FoundAsset
from nimbus.datagen.assets.read_parts import read_part
from nimbus.datagen.errors import InputError
from nimbus.datagen.objects.imported.surface import ImportedSurface
from nimbus.datagen.objects.shapes.contact import Piece


@dataclass
class Notebook:
    """Decisions, facts and notes about an asset, collected while it is prepared."""

    given: Mapping[str, Value]
    decisions: dict[str, Decision] = field(default_factory=dict)
    found: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


@dataclass
class LinkGeometry:
    """Geometry of a moving part, or of the base."""

    seen: list[ImportedSurface] = field(default_factory=list)
    touched: list[ImportedSurface] = field(default_factory=list)
    named: list[int] = field(default_factory=list)
    """Indices in ``seen`` of geometry named as a handle."""
    pieces: list[Piece] = field(default_factory=list)

    def points(self) -> FloatArray:
        """Return all corners (n, 3)."""
        return np.vstack([one.corners.reshape(-1, 3) for one in (*self.seen, *self.touched)])

    def move(self, place: FloatArray) -> LinkGeometry:
        """Transform the geometry by a matrix (4, 4), which may include a scale."""
        turn, shift = place[:3, :3].T, place[:3, 3]

        def moved(surfaces: list[ImportedSurface]) -> list[ImportedSurface]:
            """Transform surfaces."""
            return [replace(one, corners=one.corners @ turn + shift) for one in surfaces]

        pieces = [(points @ turn + shift, faces) for points, faces in self.pieces]
        return LinkGeometry(moved(self.seen), moved(self.touched), self.named, pieces)


def read_links(root: Path, asset: FoundAsset, book: Notebook, moving: list[str]) -> dict[str, LinkGeometry]:
    """Return the geometry of the base (under the key ``""``) and of each moving part, by name.

    Unreadable pieces are omitted with a note.

    Args:
        root: Root folder of the source.
        asset: Recognized asset.
        book: Receiver of notes.
        moving: Names of the moving parts.

    Raises:
        InputError: The base or a moving part has no readable geometry.
    """
    still = {joint.link: joint.on for joint in asset.joints if joint.link not in moving}
    links = {name: LinkGeometry() for name in ("", *moving)}
    for part in merge_still(asset.parts, still):
        try:
            surface = read_part(root, part)
        except InputError as error:
            line = f"{part.mesh or part.solid}: {error.what}; it is omitted"
            book.notes += [] if line in book.notes else [line]
            continue
        link = links[part.link]
        (link.touched if part.is_touched else link.seen).append(surface)
        if not part.is_touched and NAMED.search(part.name):
            link.named.append(len(link.seen) - 1)
        book.notes += [note for note in surface.notes if note not in book.notes]
    for link in links.values():
        link.seen = link.seen or link.touched
    if empty := [name for name, link in links.items() if not link.seen]:
        what = f"no geometry of {empty[0] or 'its base'} can be read"
        fixed = f", or write decisions.{empty[0]}.moves.value: fixed" if empty[0] else ""
        raise InputError(what, instead=f"add its meshes to the source{fixed}")
    return links
