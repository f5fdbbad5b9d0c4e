"""Checks of the views of the fixed cameras, at their nominal poses and at poses drawn by randomization."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.doctor.case import make_finding
from nimbus.datagen.episode.layout import Camera, PhysicalLayout
from nimbus.datagen.errors import Diagnostic
from nimbus.datagen.geometry.cameras import is_in_picture, project, world_T_camera
from nimbus.datagen.geometry.mujoco_library import mujoco
from nimbus.datagen.random_streams import generator
from nimbus.datagen.randomize.base import Draft
from nimbus.datagen.randomize.camera import CameraRandomization

if TYPE_CHECKING:
    from nimbus.datagen.arrays import FloatArray
    from nimbus.datagen.doctor.case import Case

_ENOUGH = 0.5
"""Fraction of a region that a fixed camera, or all of them together, should see."""
_ABOVE = 0.03
"""Height of the checked points above the surface [m]."""
_SKIN = 0.02
"""Distance from the target below which a ray has hit the target's own surface and not an obstacle [m]."""
_POSES = 16
"""Number of drawn poses that are checked for each camera: those of the first episodes of a run."""
_TURNS = (45.0, 30.0, 20.0, 10.0, 5.0, 2.0)
"""Ranges of rotation that are tried in turn [deg]."""
_SHIFTS = (0.5, 0.3, 0.2, 0.1, 0.05, 0.02)
"""Ranges of translation that are tried in turn [m]."""


def check_cameras(case: Case) -> Iterator[Diagnostic]:
    """Cast rays from every fixed camera to the regions in which objects start."""
    regions = {group.region for group in case.task.objects.values()} & case.task.regions.keys()
    fixed = {name: settings for name, settings in case.task.cameras.items() if not settings.mount}
    if not regions or not fixed:
        return
    case.simulation.load(PhysicalLayout(objects=()))
    points = {name: grid(case, name) for name in sorted(regions)}
    center = np.concatenate(list(points.values())).mean(axis=0)
    together = {name: np.zeros(len(found), dtype=bool) for name, found in points.items()}
    blind = []
    for name, settings in fixed.items():
        camera = settings.camera(name)
        seen = {region: _seen(case, camera, found) for region, found in points.items()}
        case.seen[name] = {region: float(mine.mean()) for region, mine in seen.items()}
        for region, mine in seen.items():
            together[region] |= mine
        every = np.concatenate(list(seen.values()))
        if not every.any():
            blind.append(name)
            yield _blind(case, name, camera, np.concatenate(list(points.values())), center)
    for region, seen in together.items():
        if len(blind) < len(fixed) and seen.mean() < _ENOUGH:
            what = f"the fixed cameras see {seen.mean():.0%} of region '{region}'"
            keys = ("cameras", next(name for name in fixed if name not in blind))
            yield make_finding(
                "cameras", case.task, keys, what, instead=f"add look_at: {write_point(points[region].mean(axis=0))}"
            )


def _blind(case: Case, name: str, camera: Camera, points: FloatArray, center: FloatArray) -> Diagnostic:
    inside = _are_inside(camera, points)
    keys: tuple[str, ...] = ("cameras", name, "look_at" if case.task.cameras[name].look_at is not None else "wxyz")
    if inside.any():
        blocker = _blocker(case, np.array(camera.position), points[inside][0])
        keys = ("cameras", name, "position")
        what = f"'{blocker}' hides everything" if blocker else "the scene hides everything"
        instead = f"write a position with a free view, such as {write_point(center + (0.6, 0.0, 0.6))}"
    elif np.linalg.norm(np.array(camera.position) - center) > 20:
        what, instead = "the camera is too far away", f"write position: {write_point(center + (0.8, 0.0, 0.6))}"
        keys = ("cameras", name, "position")
    else:
        what, instead = "the camera does not see the area where objects start", f"write look_at: {write_point(center)}"
    return make_finding("cameras", case.task, keys, what, instead=instead)


def grid(case: Case, name: str) -> FloatArray:
    """Return points (n, 3) spread over a region, slightly above its surface [m]."""
    region = case.task.regions[name]
    height = case.assets.stage.surfaces[region.on].upper[2] + _ABOVE
    shares = np.array([-0.45, -0.2, 0.0, 0.2, 0.45])
    x, y = (middle + shares * side for middle, side in zip(region.center, region.size, strict=True))
    return np.array([(a, b, height) for a in x for b in y])


def still_pose(camera: Camera) -> FloatArray:
    """Return ``frame_T_camera`` (4, 4), OpenCV axes: in the world, or in the frame of the camera's mount."""
    return world_T_camera(np.array([camera.position]), np.array([camera.wxyz]))[0]


def _are_inside(camera: Camera, points: FloatArray) -> NDArray[np.bool_]:
    return is_in_picture(camera, project(camera, still_pose(camera), points))


def _seen(case: Case, camera: Camera, points: FloatArray) -> NDArray[np.bool_]:
    inside = _are_inside(camera, points)
    eye = np.array(camera.position)
    return np.array([bool(ok) and _blocker(case, eye, point) is None for ok, point in zip(inside, points, strict=True)])


def sees_any(case: Case, camera: Camera, points: FloatArray) -> bool:
    """Return True if at least one of the points (n, 3) in the world frame [m] is in the image and not occluded."""
    inside = _are_inside(camera, points)
    return any(_blocker(case, np.array(camera.position), point) is None for point in points[inside])


def _blocker(case: Case, eye: FloatArray, point: FloatArray) -> str | None:
    """Return the obstacle in the line of sight, ignoring the robot: its name, empty for the scene; None without one."""
    model, data = case.simulation.model, case.simulation.data
    way = point - eye
    distance = float(np.linalg.norm(way))
    hit = np.zeros(1, dtype=np.int32)
    begin, left = eye.copy(), distance
    for _ in range(8):
        gone = mujoco.mj_ray(model, data, begin, way / distance, None, 1, -1, hit)
        if gone < 0 or gone >= left - _SKIN:
            return None
        body = int(model.geom_bodyid[hit[0]])
        name = model.body(body).name
        links = {link for arm in case.assets.robot.arms for link in (arm.tool.link, *arm.gripper.links)}
        root = {int(model.body_rootid[model.body(link).id]) for link in links}
        if int(model.body_rootid[body]) not in root:
            return "" if not name or name == "world" else name
        begin, left = begin + way / distance * (gone + 1e-4), left - gone - 1e-4
    return None


def write_point(point: FloatArray) -> str:
    """Format a point (3,) [m] for a task file."""
    return "[" + ", ".join(f"{round(float(value), 2) + 0.0:g}" for value in point) + "]"


def check_randomized_cameras(case: Case) -> Iterator[Diagnostic]:
    """Draw poses of every fixed camera, and check from each that the places where objects start are visible."""
    settings = case.task.randomize.get("camera")
    regions = {group.region for group in case.task.objects.values()} & case.task.regions.keys()
    if not isinstance(settings, CameraRandomization) or not regions:
        return
    case.simulation.load(PhysicalLayout(objects=()))
    points = np.concatenate([grid(case, name) for name in sorted(regions)])
    fixed = {name: camera.camera(name) for name, camera in case.task.cameras.items() if not camera.mount}
    for name, camera in fixed.items():
        if not sees_any(case, camera, points):  # reported by the check of the nominal poses
            continue
        if blind := _count_blind(case, settings, camera, points):
            field, instead = _instead(case, settings, camera, points)
            what = f"in {blind} of {_POSES} drawn poses '{name}' does not see the area where objects start"
            yield make_finding("cameras", case.task, ("randomize", "camera", field), what, instead=instead)
            return


def _count_blind(case: Case, settings: CameraRandomization, camera: Camera, points: FloatArray) -> int:
    """Count the drawn poses with nothing in view."""
    drawn = (_drawn(settings, camera, index, seed=case.seed) for index in range(_POSES))
    return sum(not sees_any(case, pose, points) for pose in drawn)


def _drawn(settings: CameraRandomization, camera: Camera, index: int, *, seed: int) -> Camera:
    draft = Draft(objects=[], cameras=[camera])
    settings.draw(draft, partial(generator, seed, index, "visual", 0, "camera"))
    return draft.cameras[0]


def _instead(case: Case, settings: CameraRandomization, camera: Camera, points: FloatArray) -> tuple[str, str]:
    """Return the field to change, and ranges for which every drawn pose sees something."""
    turns = [value for value in _TURNS if math.radians(value) < settings.rotation]
    shifts = [value for value in _SHIFTS if value < settings.position]
    tried: list[dict[str, Any]] = [{"rotation": math.radians(turn)} for turn in turns]
    tried += [{"position": shift} for shift in shifts]
    tried += [
        {"rotation": min(math.radians(turn), settings.rotation), "position": min(shift, settings.position)}
        for turn, shift in zip(_TURNS, _SHIFTS, strict=True)
    ]
    for change in tried:
        if not _count_blind(case, settings.model_copy(update=change), camera, points):
            said = {
                "rotation": lambda value: f"{math.degrees(value):.3g} deg",
                "position": lambda value: f"{value:g} m",
            }
            return next(iter(change)), "write " + ", ".join(
                f"{key}: {said[key](value)}" for key, value in change.items()
            )
    return "fov", "write a smaller range"
