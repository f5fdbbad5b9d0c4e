"""Check that the gripper can grasp every variant of the objects that the steps pick."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from nimbus.datagen.doctor.case import make_finding
from nimbus.datagen.doctor.diagnosis import finding_from_error
from nimbus.datagen.errors import Diagnostic, InputError
from nimbus.datagen.execute.motions.grasps import model_axes
from nimbus.datagen.geometry.transforms import quat_to_matrix
from nimbus.datagen.objects.prepared.library import PreparedLibrary
from nimbus.datagen.plan.grasp import GripperShape
from nimbus.datagen.plan.grasp_ranking import rank_grasps

if TYPE_CHECKING:
    from nimbus.datagen.doctor.case import Case
    from nimbus.datagen.objects.model import ObjectModel

_HEAVY = 3.0
"""Payload that is assumed for every arm [kg]."""
_FEW = 3
"""Largest number of refused assets that a finding names."""
_MOST_VARIANTS = 40
"""Largest number of variants of a group that are checked, spread over its kinds."""
ENOUGH = 5
"""Number of grasps of a variant at which counting stops."""


def check_assets(case: Case) -> Iterator[Diagnostic]:
    """Build the first variant of each kind at its smallest and its largest size."""
    picked = {group for _, group in case.picks()}
    for group in case.task.objects:
        yield from _refused_assets(case, group)
        heavy: dict[str, float] = {}
        for kind in case.kinds(group):
            for scale in case.scales(group):
                try:
                    mass = case.library(group).model(kind, 0, scale).mass
                except InputError as error:
                    yield finding_from_error("assets", error)
                    continue
                if group in picked and mass > _HEAVY:
                    heavy[kind] = mass
        if heavy:
            kind, mass = max(heavy.items(), key=lambda entry: entry[1])
            field = "scale" if case.task.objects[group].scale is not None else "kinds"
            what = f"'{kind}' weighs up to {mass:.1f} kg, but an arm carries only {_HEAVY:g} kg"
            lightest = [name for name in case.kinds(group) if name not in heavy]
            instead = (
                f"write kinds: [{', '.join(lightest[:8])}]" if lightest else "choose lighter kinds, or a smaller scale"
            )
            yield make_finding("assets", case.task, ("objects", group, field), what, instead=instead)


def _refused_assets(case: Case, group: str) -> Iterator[Diagnostic]:
    """Name the assets that the import of a group's library refused, if the group draws from the whole library."""
    library = case.library(group)
    if isinstance(library, PreparedLibrary) and library.refused and case.task.objects[group].kinds == "all":
        few = list(library.refused.items())[:_FEW]
        what = f"{len(library.refused)} assets of '{library.name}' were refused by the import: "
        what += "; ".join(f"'{kind}': {line}" for kind, line in few)
        instead = f"change their asset.yaml and import again, or leave them out; see {library.folder.name}/index.json"
        yield make_finding("assets", case.task, ("objects", group, "library"), what, instead=instead)


def check_grasps(case: Case) -> Iterator[Diagnostic]:
    """Count the grasps of each variant that a group may draw."""
    for _, group in _once(case):
        slippery, fixed = _not_graspable(case, group), _fixed_kinds(case, group)
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
        good = [
            kind for kind, rows in counts.items() if kind not in (*slippery, *fixed) and all(row[2] for row in rows)
        ]
        if fixed:
            what = f"{len(fixed)} of {len(counts)} kinds are fixed in place and cannot be picked: "
            yield _about_kinds(case, group, what + ", ".join(f"'{kind}'" for kind in fixed), good)
        if slippery:
            what = f"{len(slippery)} of {len(counts)} kinds could not be grasped in the trials at import: "
            what += "; ".join(f"'{kind}': {line}" for kind, line in list(slippery.items())[:_FEW])
            yield _about_kinds(case, group, what, good)
        yield from _tell(case, group, counts, shapes, good)


def _not_graspable(case: Case, group: str) -> dict[str, str]:
    """Return the kinds of a group for which no grasp held during the import, with the reasons."""
    library = case.library(group)
    if not isinstance(library, PreparedLibrary):
        return {}
    return {kind: line for kind in case.kinds(group) if (line := library.entries[kind].not_graspable)}


def _fixed_kinds(case: Case, group: str) -> list[str]:
    """List the kinds of a group that do not move as a whole, such as cabinets."""
    given = case.task.objects[group].anchored
    return [
        kind for kind in case.kinds(group) if (case.library(group).model(kind, 0).anchored if given is None else given)
    ]


def check_graspable(case: Case) -> Iterator[Diagnostic]:
    """Find groups of which no variant can be grasped; a quick check at the start of a run."""
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
    """Count the grasps at the first rest pose at which a gripper finds any, up to :data:`ENOUGH`."""
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


def _tell(case: Case, group: str, counts: dict, shapes: list[GripperShape], good: list[str]) -> Iterator[Diagnostic]:
    bad = {kind: [row for row in rows if not row[2]] for kind, rows in counts.items()}
    lost = [kind for kind, rows in counts.items() if len(bad[kind]) == len(rows)]
    if len(lost) == len(counts):
        yield _hopeless(case, group, shapes)
        return
    for kind in lost:
        model = case.library(group).model(kind, 0, case.scales(group)[0])
        what = f"no grasp of any '{kind}': {_size(model, shapes)}"
        yield _about_kinds(case, group, what, good)
    for kind in (kind for kind in counts if bad[kind] and kind not in lost):
        names = ", ".join(f"variant {_variant(variant, scale)}" for variant, scale, _ in bad[kind])
        yield _about_kinds(case, group, f"no grasp of '{kind}' {names}: its episodes will be missing", good)


def _about_kinds(case: Case, group: str, what: str, good: list[str]) -> Diagnostic:
    listed = f"{', '.join(good[:12])}{', …' if len(good) > 12 else ''}"
    instead = f"write kinds: [{listed}]" if good else "choose other kinds"
    return make_finding("grasps", case.task, ("objects", group, "kinds"), what, instead=instead)


def _hopeless(case: Case, group: str, shapes: list[GripperShape]) -> Diagnostic:
    kind, scales = case.kinds(group)[0], case.scales(group)
    model = case.library(group).model(kind, 0, scales[0])
    what = f"the gripper cannot hold any object of '{group}': {_size(model, shapes)}"
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
        return f"'{model.kind}' is {narrow * 1000:.0f} mm across, but the fingers open only {opening * 1000:.0f} mm"
    return f"'{model.kind}' has no two opposite sides for the fingers, or none above the table"
