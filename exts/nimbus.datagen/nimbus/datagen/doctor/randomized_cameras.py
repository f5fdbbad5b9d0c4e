"""Whether cameras still see where things happen once a layout has moved, turned and zoomed them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from nimbus.datagen.doctor.cameras import grid, sees_any
from nimbus.datagen.doctor.finding import make_finding
from nimbus.datagen.episode.layout import Camera, PhysicalLayout
from nimbus.datagen.errors import Diagnostic
from nimbus.datagen.random_streams import generator
from nimbus.datagen.randomize.base import Draft
from nimbus.datagen.randomize.camera import CameraRandomization

if TYPE_CHECKING:
    from nimbus.datagen.arrays import FloatArray
    from nimbus.datagen.doctor.case import Case

_POSES = 16
"""Of each camera, as the first episodes of a run have them."""
_TURNS = (45.0, 30.0, 20.0, 10.0, 5.0, 2.0)
"""[deg] Ranges that are tried in turn."""
_SHIFTS = (0.5, 0.3, 0.2, 0.1, 0.05, 0.02)
"""[m]"""


def check_randomized_cameras(case: Case) -> Iterator[Diagnostic]:
    """Draw poses of every camera that stands still, and look from each to where objects start."""
    settings = case.task.randomize.get("camera")
    regions = {group.region for group in case.task.objects.values()} & case.task.regions.keys()
    if not isinstance(settings, CameraRandomization) or not regions:
        return
    case.simulation.load(PhysicalLayout(objects=()))
    points = np.concatenate([grid(case, name) for name in sorted(regions)])
    fixed = {name: camera.camera(name) for name, camera in case.task.cameras.items() if not camera.mount}
    for name, camera in fixed.items():
        if not sees_any(case, camera, points):  # told by the check of the poses before they are drawn
            continue
        if blind := _blind(case, settings, camera, points):
            field, instead = _instead(case, settings, camera, points)
            what = f"in {blind} of {_POSES} drawn poses '{name}' sees nothing of where objects start"
            yield make_finding("cameras", case.task, ("randomize", "camera", field), what, instead=instead)
            return


def _blind(case: Case, settings: CameraRandomization, camera: Camera, points: FloatArray) -> int:
    """How many drawn poses see nothing."""
    drawn = (_drawn(settings, camera, index, seed=case.seed) for index in range(_POSES))
    return sum(not sees_any(case, pose, points) for pose in drawn)


def _drawn(settings: CameraRandomization, camera: Camera, index: int, *, seed: int) -> Camera:
    draft = Draft(objects=[], cameras=[camera])
    settings.draw(draft, partial(generator, seed, index, "visual", 0, "camera"))
    return draft.cameras[0]


def _instead(case: Case, settings: CameraRandomization, camera: Camera, points: FloatArray) -> tuple[str, str]:
    """The field to change, and ranges with which every drawn pose sees something."""
    turns = [value for value in _TURNS if math.radians(value) < settings.rotation]
    shifts = [value for value in _SHIFTS if value < settings.position]
    tried: list[dict[str, Any]] = [{"rotation": math.radians(turn)} for turn in turns]
    tried += [{"position": shift} for shift in shifts]
    tried += [
        {"rotation": min(math.radians(turn), settings.rotation), "position": min(shift, settings.position)}
        for turn, shift in zip(_TURNS, _SHIFTS, strict=True)
    ]
    for change in tried:
        if not _blind(case, settings.model_copy(update=change), camera, points):
            said = {
                "rotation": lambda value: f"{math.degrees(value):.3g} deg",
                "position": lambda value: f"{value:g} m",
            }
            return next(iter(change)), "write " + ", ".join(
                f"{key}: {said[key](value)}" for key, value in change.items()
            )
    return "fov", "write a smaller range"
