"""Names of the indices in masks; they are independent of the simulator, so that all renderers share them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.episode.layout import PlacedObject
from nimbus.datagen.episode.observation import Labels
from nimbus.datagen.errors import InputError
from nimbus.datagen.objects.libraries import open_library
from nimbus.datagen.render.render_inputs import ROBOT, RenderPart
from nimbus.datagen.usd.stage import StageInfo

BACKGROUND = "background"


def make_labels(
    stage: StageInfo, objects: Sequence[PlacedObject], parts: Sequence[RenderPart], *, libraries: Sequence[str]
) -> Labels:
    """Name everything visible.

    Instances are, in this order, the background, the objects, their moving parts, the fixtures, the robot, and static
    parts. A moving part is a separate instance of its object's class. Semantic names depend only on the stage and the
    libraries, so that an index means the same in every episode of a task. The robot has no single frame, and therefore
    a NaN box and no body.

    Args:
        stage: The scene.
        objects: Objects of this episode.
        parts: All visible parts.
        libraries: Object libraries of the task, in its order.

    Raises:
        InputError: An object is of no library of the task, or the scene has too many things.
    """
    drawn = list(dict.fromkeys(part.instance for part in parts))
    whole = {item.name: item.kind for item in objects}
    parts_of = [name for name in drawn if name.partition(".")[0] in whole and name not in whole]
    moving = [*whole, *parts_of, *(name for name in stage.fixtures if name in drawn)]
    still = [name for name in drawn if name not in moving and name != ROBOT]
    instances = [BACKGROUND, *moving, ROBOT, *still]
    kinds = whole | {name: whole[name.partition(".")[0]] for name in parts_of}
    groups = {name: fixture.group or name for name, fixture in stage.fixtures.items()}
    furniture = {name: kind for name, kind in stage.furnishings.items() if name in still}
    plain = [name for name in still if name not in furniture]
    known = [kind for name in libraries for kind in open_library(name).kinds]
    semantics = list(dict.fromkeys([BACKGROUND, ROBOT, *plain, *groups.values(), *known, *stage.classes]))
    _check_kinds(objects, semantics, libraries)
    classes = furniture | groups | kinds
    # Masks are stored with 8 bits.
    if max(len(instances), len(semantics)) > 255:
        raise InputError(
            f"{len(instances)} things of {len(semantics)} kinds in one scene", instead="use at most 255 of each"
        )
    return Labels(
        instance_names=tuple(instances),
        instance_bodies=tuple(name if name in moving else "" for name in instances),
        instance_semantics=np.array([semantics.index(classes.get(name, name)) for name in instances], dtype=np.uint8),
        semantic_names=tuple(semantics),
        boxes_3d=np.stack([_bounds([part for part in parts if part.instance == name]) for name in instances]),
    )


def _check_kinds(objects: Sequence[PlacedObject], semantics: Sequence[str], libraries: Sequence[str]) -> None:
    """Check that masks have an index for each object; a stored layout can be rendered with another task.

    Raises:
        InputError: An object is of a kind that no library of the task has.
    """
    if other := next((item for item in objects if item.kind not in semantics), None):
        what = f"its kind '{other.kind}' is in no library of the task, which has {', '.join(libraries) or 'none'}"
        instead = f"give a task with objects of the library '{other.library}'"
        raise InputError(what, where=f"object '{other.name}' of the layout", instead=instead)


def _bounds(parts: Sequence[RenderPart]) -> NDArray[np.float64]:
    """Return the bounding box (2, 3) of parts of one frame [m]; NaN without parts, or for parts of several frames."""
    if len({part.body for part in parts}) != 1:
        return np.full((2, 3), np.nan)
    vertices = np.concatenate([part.triangles.vertices for part in parts])
    return np.stack([vertices.min(axis=0), vertices.max(axis=0)]).astype(np.float64)
