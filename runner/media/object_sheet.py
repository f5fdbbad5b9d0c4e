"""Table and contact sheet of an object library's kinds, with size, mass and grasps."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from pydantic import TypeAdapter

from nimbus.datagen.files.atomic import write_atomic
from nimbus.datagen.files.cache import cache_folder, writing
from nimbus.datagen.plan.grasp import GRASP_VERSION
from nimbus.datagen.plan.grasp_ranking import rank_grasps
from nimbus.datagen.version import versioned_hash

if TYPE_CHECKING:
    from PIL import Image

    from nimbus.datagen.objects.library import ObjectLibrary
    from nimbus.datagen.objects.model import ObjectModel
    from nimbus.datagen.plan.grasp import GripperShape

_TILE, _COLUMNS = 180, 6


@dataclass(frozen=True, kw_only=True)
class KindFigures:
    """Figures of a kind's first variant."""

    size: tuple[float, float, float]
    """Extent of the bounds [m]."""
    mass: float
    """Mass [kg]."""
    pieces: int
    """Number of convex collision pieces; 0 for a ball."""
    grasps: dict[str, int]
    """Number of feasible grasps by rest pose."""


_FIGURES = TypeAdapter(dict[str, KindFigures])


def table_rows(library: ObjectLibrary, gripper: GripperShape) -> Iterator[tuple[str, ...]]:
    """Yield, for each kind's first variant: name, class, variants, size, mass, pieces, grasps in each rest pose."""
    for kind, found in kind_figures(library, gripper).items():
        size = " x ".join(f"{1000 * side:.0f}" for side in found.size)
        grasps = ", ".join(f"{name} {count}" for name, count in found.grasps.items())
        said, pieces = library.kind(kind), str(found.pieces or "ball")
        yield kind, said.object_class, str(said.variants), size, f"{1000 * found.mass:.3g}", pieces, grasps


def kind_figures(library: ObjectLibrary, gripper: GripperShape) -> dict[str, KindFigures]:
    """Return the figures of each kind; they are cached, because computing them takes seconds."""
    identity = versioned_hash(f"{library.content_hash} {gripper}".encode(), GRASP_VERSION)
    path = cache_folder("figures") / f"{library.name}-{identity}.json"
    with suppress(OSError, ValueError):
        return _FIGURES.validate_json(path.read_bytes())
    found = {kind: _figures(library, kind, gripper) for kind in library.kinds}
    with writing(path.parent):
        write_atomic(path, _FIGURES.dump_json(found), durable=False, shared=True)
    return found


def _figures(library: ObjectLibrary, kind: str, gripper: GripperShape) -> KindFigures:
    model = library.model(kind, 0)
    x, y, z = np.ptp(model.bounds, axis=0).tolist()
    pieces = 0 if model.ball else len(model.convex_pieces)
    return KindFigures(
        size=(x, y, z), mass=float(model.mass), pieces=pieces, grasps=grasp_counts(library, kind, gripper)
    )


def grasp_counts(library: ObjectLibrary, kind: str, gripper: GripperShape) -> dict[str, int]:
    """Count the feasible grasps of a kind's first variant on a table, by rest pose."""
    from nimbus.datagen.execute.motions.grasps import model_axes
    from nimbus.datagen.geometry.transforms import quat_to_matrix

    model, counts = library.model(kind, 0), {}
    axes = model_axes(library.name, kind, 0, gripper)
    for rest in model.rest_poses:
        pose = np.eye(4)
        pose[:3, :3], pose[2, 3] = quat_to_matrix(rest.wxyz), rest.height
        counts[rest.name] = len(rank_grasps(axes, pose))
    return counts


def sheet(library: ObjectLibrary) -> Image.Image:
    """Draw every kind's first variant, each scaled to fill its tile."""
    from nimbus.datagen.media.contact_sheet import SheetRow, draw_contact_sheet
    from nimbus.datagen.objects.portrait import portrait

    models = [library.model(kind, 0) for kind in library.kinds]
    rows = [models[first : first + _COLUMNS] for first in range(0, len(models), _COLUMNS)]
    drawn = [
        SheetRow(pictures=[portrait(model, pixels=_TILE) for model in row], labels=[*map(_label, row)]) for row in rows
    ]
    return draw_contact_sheet(drawn, tile_height=_TILE)


def _label(model: ObjectModel) -> tuple[str, str]:
    size = " x ".join(f"{1000 * side:.0f}" for side in np.ptp(model.bounds, axis=0))
    return model.kind.replace("_", " "), f"{size} mm, {1000 * model.mass:.3g} g"
