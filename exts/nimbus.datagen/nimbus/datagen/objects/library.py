"""Object library: kinds of objects by name, and every variant of them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.errors import InputError, suggest
from nimbus.datagen.files.cache import cache_folder
from nimbus.datagen.objects.build import build_object
from nimbus.datagen.objects.model import FLEXIBLE_NOUNS, FlexibleKind, ObjectModel

if TYPE_CHECKING:
    from nimbus.datagen.objects.declaration import ObjectKind
    from nimbus.datagen.objects.model import ObjectModel

GENERATOR_VERSION = 1
"""Version of the object generator; raise it when any variant changes."""

_MODELS_KEPT = 512
"""Number of models that a library keeps in memory; each takes 0.2 MB, and 40 ms to rebuild."""
_SCALED_KEPT = 64


def scale_object(model: ObjectModel, factor: float) -> ObjectModel:
    """Scale every length of a model at constant density; the mass grows with the cube of the factor.

    Args:
        model: Rigid model without moving parts.
        factor: Factor above 0.

    Raises:
        InputError: The model is cloth, a cable or grains, or has moving parts.
    """
    if factor == 1.0:
        return model
    if model.parts or model.is_flexible:
        where = f"object library '{model.library}': kinds.{model.kind}"
        what = f"is {FLEXIBLE_NOUNS[bends]}" if (bends := model.bends_as) else "has moving parts"
        raise InputError(f"{what} and exists in one size only", where=where, instead="leave out 'scale'")
    return replace(
        model,
        vertices=model.vertices * factor,
        convex_pieces=tuple((points * factor, faces) for points, faces in model.convex_pieces),
        mass=model.mass * factor**3,
        center_of_mass=model.center_of_mass * factor,
        inertia=model.inertia * factor**5,
        keypoints={name: point * factor for name, point in model.keypoints.items()},
        rest_poses=tuple(replace(pose, height=pose.height * factor) for pose in model.rest_poses),
        bounds=model.bounds * factor,
        frames={name: _moved(frame, factor) for name, frame in model.frames.items()},
        cavities={name: box * factor for name, box in model.cavities.items()},
        ball=model.ball * factor,
        tried_grasps=(),
        not_graspable="",
    )


def kind_name(path: Path) -> str:
    """Derive the name of a kind from a file name: ``Coffee Mug-2`` is ``coffee_mug_2``."""
    name = re.sub(r"[^a-z0-9]+", "_", path.name.lower()).strip("_")
    return name if name[:1].isalpha() else f"object_{name}".rstrip("_")


def _moved(frame: FloatArray, factor: float) -> FloatArray:
    frame = frame.copy()
    frame[:3, 3] *= factor
    return frame


class Kind(Protocol):
    """Properties of a kind in every library."""

    @property
    def object_class(self) -> str:
        """Class name, for example to choose a bin."""
        ...

    @property
    def category(self) -> str:
        """Common name, used in instructions."""
        ...

    @property
    def variants(self) -> int:
        """Number of variants."""
        ...

    @property
    def colors(self) -> Mapping[str, str]:
        """Name of the kind's color; empty if it has none."""
        ...

    @property
    def bends_as(self) -> FlexibleKind:
        """Flexible kind, such as ``cloth``; empty for a rigid kind."""
        ...


class ObjectLibrary:
    """Kinds of objects by name, and their variants by number.

    Open one with :func:`~nimbus.datagen.objects.libraries.open_library`; equal files share one instance in a process.
    """

    def __init__(self, name: str, kinds: Mapping[str, Kind], classes: tuple[str, ...], content_hash: str) -> None:
        self.name = name
        self.content_hash = content_hash
        """Hash of the file and the generator's version: libraries with equal names and hashes give equal objects."""
        self._kinds, self._classes = kinds, classes
        self._model = lru_cache(maxsize=_MODELS_KEPT)(self._build)
        self._scaled = lru_cache(maxsize=_SCALED_KEPT)(self._build_scaled)

    @property
    def kinds(self) -> tuple[str, ...]:
        """Names of the kinds, in the file's order."""
        return tuple(self._kinds)

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of the classes, in the file's order."""
        return self._classes

    def kind(self, name: str) -> Kind:
        """Return a kind's record.

        Raises:
            InputError: The library has no such kind.
        """
        try:
            return self._kinds[name]
        except KeyError:
            where = f"object library '{self.name}'"
            raise InputError(f"unknown kind '{name}'", where=where, instead=suggest(name, self.kinds)) from None

    def variant_count(self, kind: str) -> int:
        """Return the number of variants of a kind."""
        return self.kind(kind).variants

    def model(self, kind: str, variant: int, scale: float = 1.0) -> ObjectModel:
        """Return one variant; it is shared within the process and must not be changed.

        Args:
            kind: Name of the kind.
            variant: Number of the variant.
            scale: Factor on every length.

        Raises:
            InputError: The library has no such kind or variant.
        """
        count = self.variant_count(kind)
        if not 0 <= variant < count:
            where = f"object library '{self.name}'"
            raise InputError(f"no variant {variant} of '{kind}'", where=where, instead=f"write 0 to {count - 1}")
        return self._model(kind, variant) if scale == 1.0 else self._scaled(kind, variant, scale)

    def usd_path(self, kind: str, variant: int, scale: float = 1.0) -> Path:
        """Return the path of a variant's USD file, which is generated on first use.

        Raises:
            InputError: The library has no such kind; a layout of others may have a path instead.
        """
        self.kind(kind)
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
            return build_object(self.name, kind, cast("ObjectKind", self.kind(kind)), variant)
        except InputError as error:
            where = f"object library '{self.name}': kinds.{kind}"
            raise InputError(error.what, where=where, instead=error.instead) from None
