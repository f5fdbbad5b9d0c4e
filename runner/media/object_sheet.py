"""Kinds of an object library with size, mass and grasps, also as a picture."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from nimbus.datagen.plan.grasp import rank_grasps

if TYPE_CHECKING:
    from PIL import Image

    from nimbus.datagen.objects.library import ObjectLibrary
    from nimbus.datagen.objects.model import ObjectModel
    from nimbus.datagen.plan.grasp import GripperShape

_TILE, _COLUMNS = 180, 6


def figures(library: ObjectLibrary, gripper: GripperShape) -> Iterator[tuple[str, ...]]:
    """Of each kind's first variant: name, class, variants, size, mass, pieces, grasps in each rest pose."""
    for kind in library.kinds:
        model = library.model(kind, 0)
        size = " x ".join(f"{1000 * side:.0f}" for side in np.ptp(model.bounds, axis=0))
        grasps = ", ".join(f"{name} {count}" for name, count in grasp_counts(library, kind, gripper).items())
        pieces = "ball" if model.ball else str(len(model.convex_pieces))
        said = library.kind(kind)
        yield kind, said.object_class, str(said.variants), size, f"{1000 * model.mass:.3g}", pieces, grasps


def grasp_counts(library: ObjectLibrary, kind: str, gripper: GripperShape) -> dict[str, int]:
    """Hands that could close on a kind's first variant where it lies on a table, by rest pose."""
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
    """Draw every kind's first variant, each as large as its tile allows."""
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
