"""Labels of the masks of a stage of regions, with the same indices as every other renderer of Nimbus."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.episode.layout import Layout
from nimbus.datagen.episode.observation import Labels
from nimbus.datagen.render.labels import make_labels
from nimbus.datagen.render.render_inputs import ROBOT
from nimbus.datagen.usd.stacked_stage import body_prim
from nimbus.datagen.usd.stage import StageInfo
from nimbus.datagen.usd.visual_assets import VisualAssets, asset_bounds


@dataclass(frozen=True)
class _LabelBox:
    vertices: NDArray[np.float64]


@dataclass(frozen=True)
class _Thing:
    """Properties of a part from which labels are made."""

    instance: str
    body: str
    triangles: _LabelBox


def make_region_labels(
    stage: StageInfo, layout: Layout, assets: VisualAssets, *, libraries: Sequence[str]
) -> tuple[Labels, Mapping[str, str]]:
    """Return labels, and the instance of each path below a region's root.

    Args:
        stage: The scene.
        layout: Layout with the objects.
        assets: Visible assets.
        libraries: Object libraries of the task, in its order.
    """
    objects = layout.physical.objects
    own = {item.name for item in objects} | set(stage.fixtures)
    instance_of = {
        body_prim(name): name if name in own or name.partition(".")[0] in own else ROBOT for name in assets.bodies
    }
    still = {role: places for role, places in stage.roles.items() if role not in stage.fixtures}
    instance_of |= {f"scene/{place.split('/', 2)[2]}": role for role, places in still.items() for place in places}
    # This is the order of make_labels: objects first, then the bodies of scene and robot, then static parts.
    order = [item.name for item in objects] + [name for name in assets.bodies if name not in {o.name for o in objects}]
    things: list[Any] = [
        _Thing(instance_of[body_prim(name)], name, _LabelBox(asset_bounds(assets.bodies[name]))) for name in order
    ]
    boxes = _role_bounds(assets, still)
    things += [_Thing(role, "", _LabelBox(boxes[role])) for role in still]
    return make_labels(stage, objects, things, libraries=libraries), instance_of


def _role_bounds(assets: VisualAssets, roles: Mapping[str, Sequence[str]]) -> dict[str, NDArray[np.float64]]:
    """Return (2, 3) corners of static parts by role [m]; a single point for invisible ones."""
    from pxr import Usd, UsdGeom

    stage: Any = Usd.Stage.Open(str(assets.scene))
    cache: Any = UsdGeom.BBoxCache(Usd.TimeCode.Default(), ["default", "render"])
    found = {}
    for role, places in roles.items():
        prims = [prim for place in places if (prim := stage.GetPrimAtPath(place))]
        boxes = [cache.ComputeWorldBound(prim).ComputeAlignedRange() for prim in prims]
        corners = [np.array([box.GetMin(), box.GetMax()]) for box in boxes if not box.IsEmpty()] or [np.zeros((2, 3))]
        found[role] = np.stack([np.min(corners, axis=(0, 1)), np.max(corners, axis=(0, 1))])
    return found
