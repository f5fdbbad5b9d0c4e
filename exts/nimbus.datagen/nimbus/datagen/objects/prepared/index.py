"""Index of a prepared library: all data for proposing, checking and drawing kinds without loading their arrays."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.asset_folders import check_below
from nimbus.datagen.files.bounded import Finite, as_typed, parse_plain, read_bytes
from nimbus.datagen.files.codec import to_json
from nimbus.datagen.objects.model import FlexibleKind

INDEX_NAME = "index.json"
CARD_NAME, SHAPE_NAME = "asset.yaml", "shape.npz"
"""Files in the folder of a kind: its decisions and its arrays."""
FORMAT = 1
_LARGEST = 256 << 20
"""Largest size of the index [bytes]: 14,000 kinds take 12 MB."""
AGAIN = "run 'nimbus assets import' with the same sources and --out again"

KindName = Annotated[str, Meta(pattern=r"^[a-z][a-z0-9_]{0,79}$")]


@dataclass(frozen=True, kw_only=True)
class AssetEntry:
    """Kind that the import accepted, or refused with a reason."""

    kind: KindName
    object_class: str = "object"
    category: str = ""
    synonyms: tuple[str, ...] = ()
    """Other names of the category."""
    caption: str = ""
    """Noun phrase without an article, such as ``red soup can``."""
    color_names: tuple[str, ...] = ()
    """Colors of the surface, the largest area first."""
    size: tuple[Finite, Finite, Finite] = (0.0, 0.0, 0.0)
    """Extent of the bounds [m]."""
    mass: Finite = 0.0
    """Mass [kg]."""
    friction: Finite = 0.7
    symmetry: str = "none"
    anchored: bool = False
    rests: tuple[str, ...] = ()
    """Names of the rest poses."""
    rooms: tuple[str, ...] = ()
    """Names of the cavities."""
    grasps: int = 0
    """Number of grasps that held in the trials."""
    not_graspable: str = ""
    """Reason why no grasp held; empty if one did."""
    joints: tuple[str, ...] = ()
    """Names of the moving parts."""
    source: str
    """Imported file or folder."""
    path: str
    """Path of the main file, relative to the source."""
    layout: str
    """Recognized layout, for example ``ycb``."""
    license: str = ""
    """License, as an SPDX name where possible; empty if none is stated."""
    is_restricted: bool = False
    """True if the license restricts redistribution."""
    refused: str = ""
    """Reason and fix in one line; empty for an accepted kind."""
    notes: tuple[str, ...] = ()
    """Notes about changed or omitted data."""
    inputs: str = ""
    """Hash of all inputs."""
    card: str = ""
    """SHA-256 of ``asset.yaml``."""
    shape: str = ""
    """SHA-256 of ``shape.npz``; empty for a refused kind."""
    automatic: dict[str, str | float] = field(default_factory=dict)
    """Decisions of the import by name. A different value in ``asset.yaml`` comes from the user."""

    @property
    def variants(self) -> int:
        """Number of variants, which is one for a mesh."""
        return 1

    @property
    def bends_as(self) -> FlexibleKind:
        """Empty: prepared objects are rigid."""
        return ""

    @property
    def colors(self) -> dict[str, str]:
        """Colors by name; a mesh has none."""
        return {}


@dataclass(frozen=True, kw_only=True)
class AssetIndex:
    """Content of ``index.json``, with the kinds sorted by name."""

    format: int = FORMAT
    importer: str
    """Version of the importer that last wrote the index."""
    kinds: tuple[AssetEntry, ...]


def read_index(folder: Path) -> tuple[AssetIndex, bytes]:
    """Read the index of a library, and also return its bytes.

    Raises:
        InputError: The file is not an index, has another format, or is a link out of the folder.
    """
    path = folder / INDEX_NAME
    check_below(path, folder)
    content = read_bytes(path, limit=_LARGEST)
    try:
        plain = parse_plain(content.decode(), where=str(path))
    except UnicodeDecodeError:
        raise InputError("is not a text file", where=str(path), instead=AGAIN) from None
    if not isinstance(plain, dict) or plain.get("format") != FORMAT:
        found = plain.get("format") if isinstance(plain, dict) else None
        what = f"has the index format {found}; this version reads format {FORMAT}"
        raise InputError(what, where=str(path), instead=AGAIN)
    return as_typed(AssetIndex, plain, where=str(path)), content


def index_text(index: AssetIndex) -> str:
    """Write an index with one line per kind."""
    head = f'{{"format":{index.format},"importer":{to_json(index.importer)},"kinds":[\n'
    return head + ",\n".join(to_json(entry) for entry in index.kinds) + "\n]}\n"
