"""Object libraries: a file of kinds, or a folder of meshes, and every variant of them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Protocol, cast

from nimbus.datagen.errors import InputError, suggest
from nimbus.datagen.files.cache import cache_folder
from nimbus.datagen.files.scene_files import is_path, scene_file, scene_names
from nimbus.datagen.files.strict_yaml import load
from nimbus.datagen.objects.build import build_object
from nimbus.datagen.objects.declaration import LibraryFile, ObjectKind
from nimbus.datagen.objects.model import ObjectModel
from nimbus.datagen.objects.scale import scale_object
from nimbus.datagen.version import versioned_hash

GENERATOR_VERSION = 1
"""Version of the code that makes objects and their files: raise it when any variant comes out otherwise."""

_ROOM = "objects"
_MODELS_KEPT = 512
"""Models kept by a library: 0.2 MB each, and 40 ms to make again."""
_SCALED_KEPT = 64
_opened: dict[str, Path] = {}
"""Libraries of people's own, by name: layouts name a library, so that they read the same on every machine."""


class Kind(Protocol):
    """What every library says about a kind."""

    @property
    def object_class(self) -> str:
        """Which bin it belongs in, and the like."""
        ...

    @property
    def category(self) -> str:
        """What people call it."""
        ...

    @property
    def variants(self) -> int:
        """How many there are."""
        ...

    @property
    def colors(self) -> Mapping[str, str]:
        """Its colour by name, where it has one."""
        ...


class ObjectLibrary:
    """Kinds of objects by name, and their variants by number.

    Open one with :meth:`open`; equal files share one instance in a process.
    """

    def __init__(self, name: str, kinds: Mapping[str, Kind], classes: tuple[str, ...], content_hash: str) -> None:
        self.name = name
        self.content_hash = content_hash
        """Version of the generator and hash of the file: libraries of one name with equal hashes give equal objects."""
        self._kinds, self._classes = kinds, classes
        self._model = lru_cache(maxsize=_MODELS_KEPT)(self._build)
        self._scaled = lru_cache(maxsize=_SCALED_KEPT)(self._build_scaled)

    @classmethod
    def open(cls, name_or_path: str | Path, *, where: str = "") -> ObjectLibrary:
        """The library of that name in ``scenes/objects``, of that file or folder; its name opens it from then on.

        Args:
            name_or_path: A name, the path of a file, or that of a folder of meshes, with a slash at its end.
            where: Where the name was given, for the error.

        Raises:
            InputError: No such library, or a mistake in its file.
        """
        path = _opened.get(str(name_or_path))
        if path is None and is_path(name_or_path) and Path(name_or_path).is_dir():
            path = Path(name_or_path)
        path = (path or scene_file(_ROOM, name_or_path, kind="object library", where=where)).resolve()
        if is_path(name_or_path) and path.stem in scene_names(_ROOM):
            if path.is_dir() or path != scene_file(_ROOM, path.stem, kind="object library").resolve():
                what = f"an object library '{path.stem}' comes with Nimbus"
                raise InputError(what, where=where or str(path), instead="give yours another name")
        library = _open(path)
        if is_path(name_or_path):
            _opened.setdefault(library.name, path)
        return library

    @property
    def kinds(self) -> tuple[str, ...]:
        """Names of the kinds, in the file's order."""
        return tuple(self._kinds)

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of the classes, in the file's order."""
        return self._classes

    def kind(self, name: str) -> Kind:
        """What the file says about a kind.

        Raises:
            InputError: No such kind.
        """
        try:
            return self._kinds[name]
        except KeyError:
            where = f"object library '{self.name}'"
            raise InputError(f"unknown kind '{name}'", where=where, instead=suggest(name, self.kinds)) from None

    def variant_count(self, kind: str) -> int:
        """How many variants a kind has."""
        return self.kind(kind).variants

    def model(self, kind: str, variant: int, scale: float = 1.0) -> ObjectModel:
        """One variant; shared within the process, so never changed.

        Args:
            kind: Its name.
            variant: Its number.
            scale: Every length times this.

        Raises:
            InputError: No such kind or variant.
        """
        count = self.variant_count(kind)
        if not 0 <= variant < count:
            where = f"object library '{self.name}'"
            raise InputError(f"no variant {variant} of '{kind}'", where=where, instead=f"write 0 to {count - 1}")
        return self._model(kind, variant) if scale == 1.0 else self._scaled(kind, variant, scale)

    def usd_path(self, kind: str, variant: int, scale: float = 1.0) -> Path:
        """The variant as a USD file, generated on first use."""
        folder = cache_folder("objects") / f"{self.name}-{self.content_hash}"
        path = folder / (f"{kind}-{variant:03d}.usda" if scale == 1.0 else f"{kind}-{variant:03d}-{scale!r}.usda")
        if not path.is_file():
            from nimbus.datagen.objects.usd import write_usd

            write_usd(self.model(kind, variant, scale), path)
        return path

    def _build_scaled(self, kind: str, variant: int, scale: float) -> ObjectModel:
        return scale_object(self._model(kind, variant), scale)

    def _build(self, kind: str, variant: int) -> ObjectModel:
        try:
            return build_object(self.name, kind, cast(ObjectKind, self.kind(kind)), variant)
        except InputError as error:
            where = f"object library '{self.name}': kinds.{kind}"
            raise InputError(error.what, where=where, instead=error.instead) from None


@lru_cache(maxsize=32)
def _open(path: Path) -> ObjectLibrary:
    if path.is_dir():
        from nimbus.datagen.objects.imported.library import AssetLibrary

        return AssetLibrary(path)
    file = load(path, LibraryFile)
    content_hash = versioned_hash(path.read_bytes(), GENERATOR_VERSION)
    return ObjectLibrary(path.stem, file.expanded(), file.classes, content_hash)
