"""Object library of a prepared library: the index is read at once, and a kind's arrays on first use."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import numpy as np

from nimbus.datagen.arrays import ImageArray
from nimbus.datagen.errors import InputError, suggest
from nimbus.datagen.files.asset_folders import check_all_below
from nimbus.datagen.files.bounded import read_bytes
from nimbus.datagen.files.cache import cache_folder
from nimbus.datagen.files.codec import to_json
from nimbus.datagen.objects.library import GENERATOR_VERSION, Kind, ObjectLibrary, kind_name
from nimbus.datagen.objects.model import ObjectModel
from nimbus.datagen.objects.prepared.index import AGAIN, CARD_NAME, INDEX_NAME, SHAPE_NAME, AssetEntry, read_index
from nimbus.datagen.objects.prepared.shape_file import AssetShape, read_shape
from nimbus.datagen.version import versioned_hash


class PreparedLibrary(ObjectLibrary):
    """Accepted kinds of a prepared library.

    Args:
        folder: Folder of the prepared library.

    Raises:
        InputError: The index cannot be read, or has no accepted kind.
    """

    def __init__(self, folder: Path) -> None:
        index, content = read_index(folder)
        self.folder = folder
        self.refused = {entry.kind: entry.refused for entry in index.kinds if entry.refused}
        """Reason and fix of each refused kind."""
        self.entries = {entry.kind: entry for entry in index.kinds if not entry.refused}
        if not self.entries:
            first = next(iter(self.refused.values()), "it is empty")
            what, instead = f"the import accepted no kind of this library: {first}", "import other assets into it"
            raise InputError(what, where=str(folder / INDEX_NAME), instead=instead)
        classes = tuple(sorted({entry.object_class for entry in self.entries.values()}))
        content_hash = versioned_hash(content, GENERATOR_VERSION)
        super().__init__(kind_name(folder), self.entries, classes, content_hash)

    def kind(self, name: str) -> Kind:
        """Return the entry of a kind.

        Raises:
            InputError: The kind does not exist, or the import refused it.
        """
        if entry := self.entries.get(name):
            return entry
        where = f"object library '{self.name}'"
        if line := self.refused.get(name):
            what = f"the import refused '{name}': {line}"
            raise InputError(what, where=where, instead="name another kind")
        raise InputError(f"unknown kind '{name}'", where=where, instead=suggest(name, self.kinds))

    def usd_path(self, kind: str, variant: int, scale: float = 1.0) -> Path:
        """Return the path of the kind's USD file, which is generated on first use."""
        self.kind(kind)
        entry = self.entries[kind]
        folder = cache_folder("objects") / f"{self.name}-{GENERATOR_VERSION}-{_identity(entry)}"
        path = folder / (f"{kind}.usda" if scale == 1.0 else f"{kind}-{scale!r}.usda")
        if not path.is_file():
            from nimbus.datagen.objects.usd import write_usd

            write_usd(self.model(kind, variant, scale), path)
        return path

    def _build(self, kind: str, variant: int) -> ObjectModel:
        entry, folder = self.entries[kind], self.folder / kind
        check_all_below([folder / CARD_NAME, folder / SHAPE_NAME], self.folder)
        card = read_bytes(folder / CARD_NAME)
        if hashlib.sha256(card).hexdigest() != entry.card:
            raise InputError("changed since the import", where=str(folder / CARD_NAME), instead=AGAIN)
        return build_model(self.name, entry, read_shape(folder / SHAPE_NAME, entry.shape))


def build_model(library: str, entry: AssetEntry, shape: AssetShape) -> ObjectModel:
    """Build the model of a kind from its entry and its arrays."""
    return ObjectModel(
        library=library,
        kind=entry.kind,
        variant=0,
        object_class=entry.object_class,
        category=entry.category,
        vertices=shape.vertices,
        faces=shape.faces,
        normals=shape.normals,
        uvs=shape.uvs,
        painter=_painter(shape.texture),
        convex_pieces=shape.pieces,
        mass=entry.mass,
        center_of_mass=shape.center_of_mass,
        inertia=shape.inertia * (entry.mass - sum(part.mass for part in shape.parts)),
        friction=entry.friction,
        symmetry=entry.symmetry,
        keypoints=shape.keypoints,
        rest_poses=shape.rest_poses,
        bounds=np.array([shape.vertices.min(axis=0), shape.vertices.max(axis=0)]),
        rolling=entry.symmetry == "revolution",
        frames=shape.frames,
        cavities=shape.cavities,
        open_inside=True,
        anchored=entry.anchored,
        tried_grasps=shape.grasps,
        not_graspable=entry.not_graspable,
        parts=shape.parts,
    )


def _painter(texture: ImageArray) -> Callable[[], ImageArray]:
    return lambda: texture


def _identity(entry: AssetEntry) -> str:
    """Return a hash of all that a model consists of, so that no library of the same name stands for another."""
    return hashlib.sha256(to_json(entry).encode()).hexdigest()[:32]
