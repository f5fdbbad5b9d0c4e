"""Whether the gripper can take hold of every variant of everything that the steps pick."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from nimbus.datagen.doctor.finding import make_finding
from nimbus.datagen.errors import Diagnostic
from nimbus.datagen.execute.motions.grasps import model_axes
from nimbus.datagen.geometry.transforms import quat_to_matrix
from nimbus.datagen.plan.grasp import GripperShape, rank_grasps

if TYPE_CHECKING:
    from nimbus.datagen.doctor.case import Case
    from nimbus.datagen.objects.model import ObjectModel

_MOST_VARIANTS = 40
"""Of one group that are looked at, spread over its kinds."""
ENOUGH = 5
"""Grasps of a variant; more are not counted."""


def check_grasps(case: Case) -> Iterator[Diagnostic]:
    """Count the grasps of each variant that a group may draw."""
    for step, group in _once(case):
        shapes = _grippers(case)
        most = max(1, _MOST_VARIANTS // max(1, len(case.kinds(group))))
        counts = {
            kind: [
                (variant, scale, _count(case, group, kind, variant, scale, shapes))
                for scale in case.scales(group)
                for variant in range(min(most, case.library(group).variant_count(kind)))
            ]
            for kind in case.kinds(group)
        }
        case.grasps[group] = {
            f"{kind} {_variant(variant, scale)}": count
            for kind, rows in counts.items()
            for variant, scale, count in rows
        }
        yield from _tell(case, step.keys, group, counts, shapes)


def check_graspable(case: Case) -> Iterator[Diagnostic]:
    """The same for a run that begins: only whether anything at all can be picked, which is quick to see."""
    for _, group in _once(case):
        shapes = _grippers(case)
        every = (
            _count(case, group, kind, variant, scale, shapes)
            for kind in case.kinds(group)
            for scale in case.scales(group)
            for variant in range(case.library(group).variant_count(kind))
        )
        if not any(every):
            yield _hopeless(case, group, shapes)


def _variant(number: int, scale: float) -> str:
    return f"{number} at {scale:g}" if scale != 1 else str(number)


def _once(case: Case) -> list:
    found = {}
    for step, group in case.picks():
        found.setdefault(group, step)
    return [(step, group) for group, step in found.items()]


def _grippers(case: Case) -> list[GripperShape]:
    return [arm.gripper.shape for arm in case.assets.robot.arms]


def _count(case: Case, group: str, kind: str, variant: int, scale: float, shapes: list[GripperShape]) -> int:
    """Grasps of the gripper that has most of them, however the variant rests."""
    library = case.library(group)
    model = library.model(kind, variant, scale)
    most = 0
    for shape in shapes:
        axes = model_axes(library.name, kind, variant, shape, scale)
        for rest in model.rest_poses:
            pose = np.eye(4)
            pose[:3, :3], pose[2, 3] = quat_to_matrix(rest.wxyz), rest.height
            most = max(most, len(rank_grasps(axes, pose, limit=ENOUGH)))
            if most:
                return most
    return most


def _tell(case: Case, keys: tuple, group: str, counts: dict, shapes: list[GripperShape]) -> Iterator[Diagnostic]:
    bad = {kind: [row for row in rows if not row[2]] for kind, rows in counts.items()}
    lost = [kind for kind, rows in counts.items() if len(bad[kind]) == len(rows)]
    if len(lost) == len(counts):
        yield _hopeless(case, group, shapes)
        return
    good = [kind for kind in counts if not bad[kind]]
    for kind in lost:
        model = case.library(group).model(kind, 0, case.scales(group)[0])
        what = f"no grasp of any '{kind}': {_size(model, shapes)}"
        yield _about_kinds(case, group, what, good)
    for kind in (kind for kind in counts if bad[kind] and kind not in lost):
        names = ", ".join(f"variant {_variant(variant, scale)}" for variant, scale, _ in bad[kind])
        yield _about_kinds(case, group, f"no grasp of '{kind}' {names}: its episodes will be missing", good)


def _about_kinds(case: Case, group: str, what: str, good: list[str]) -> Diagnostic:
    instead = f"write kinds: [{', '.join(good[:12])}{', …' if len(good) > 12 else ''}]" if good else "choose others"
    return make_finding("grasps", case.task, ("objects", group, "kinds"), what, instead=instead)


def _hopeless(case: Case, group: str, shapes: list[GripperShape]) -> Diagnostic:
    kind, scales = case.kinds(group)[0], case.scales(group)
    model = case.library(group).model(kind, 0, scales[0])
    what = f"the gripper can hold nothing of '{group}': {_size(model, shapes)}"
    narrow, opening = _narrowest(model), _opening(shapes)
    field, instead = "kinds", "choose kinds that are narrower, or another robot"
    if narrow > opening:
        factor = 0.9 * opening / narrow * scales[0]
        if case.task.objects[group].scale is not None:
            field = "scale"
        if factor >= 0.2:
            instead = f"write scale: {factor:.2f}, or choose kinds that are narrower"
    return make_finding("grasps", case.task, ("objects", group, field), what, instead=instead, certain=True)


def _opening(shapes: list[GripperShape]) -> float:
    return max(shape.max_width for shape in shapes)


def _narrowest(model: ObjectModel) -> float:
    return float(np.ptp(model.bounds, axis=0).min())


def _size(model: ObjectModel, shapes: list[GripperShape]) -> str:
    narrow, opening = _narrowest(model), _opening(shapes)
    if narrow > opening:
        return f"'{model.kind}' is {narrow * 1000:.0f} mm across, the fingers take {opening * 1000:.0f} mm"
    return f"'{model.kind}' offers the fingers no two sides, or not above the table"
