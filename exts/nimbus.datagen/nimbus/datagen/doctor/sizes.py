"""Sizes of things in images, from the poses in drawn layouts, without rendering."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from nimbus.datagen.doctor.cameras import grid, still_pose, write_point
from nimbus.datagen.doctor.case import CameraView, make_finding
from nimbus.datagen.episode.layout import Camera, PhysicalLayout, PlacedObject
from nimbus.datagen.errors import Diagnostic
from nimbus.datagen.geometry.cameras import is_in_picture, project, projected_width
from nimbus.datagen.geometry.transforms import make_transform
from nimbus.datagen.objects.articulated.pose import object_T_part
from nimbus.datagen.render.silhouette import outline_points
from nimbus.datagen.tasks.checks.references import references_of
from nimbus.datagen.tasks.references import names_in
from nimbus.datagen.tasks.steps import walk

if TYPE_CHECKING:
    from nimbus.datagen.arrays import FloatArray
    from nimbus.datagen.doctor.case import Case

LEAST_PIXELS, ENOUGH_PIXELS = 16, 24
"""Median width below which the objects of a group are too small, and recommended width [px]. Common image encoders
halve an image four times in their first layers, after which 16 pixels are a single cell."""
_MOST = 4096
"""Largest side of an image [px]."""
_IN_VIEW = 0.5
"""Fraction of a thing's points that must be in the image."""
_TURN_OVER = np.diag([1.0, -1.0, -1.0])
"""Rotation between the world and a tool that points straight down."""


def check_sizes(case: Case) -> Iterator[Diagnostic]:
    """Project the manipulated things into every camera.

    A fixed camera sees objects at their initial positions. A wrist camera is evaluated with objects between the
    fingers, and not from the home posture. A camera on another link is not evaluated.
    """
    groups, others = _named(case)
    case.simulation.load(PhysicalLayout(objects=()))
    outlines: dict[str, list[FloatArray]] = {name: [] for name in groups}
    for item in (item for layout in case.layouts for item in layout.objects if item.group in groups):
        points, handles = _outline(case, item)
        outlines[item.group].append(points)
        if len(handles):
            others.setdefault(f"handle of '{item.group}'", []).append(handles)
    for arm in case.assets.robot.arms:
        tool = case.simulation.body_pose(arm.tool.link) @ make_transform(arm.tool.position, arm.tool.wxyz)
        label = "gripper" if len(case.assets.robot.arms) == 1 else f"{arm.name} gripper"
        others[label] = [tool[None, :3, 3]]
    still = {name: one.camera(name) for name, one in case.task.cameras.items() if not one.mount}
    for name, camera in still.items():
        case.views[name] = _view(camera, {group: outlines[group] for group in groups}, others)
    yield from _small(case, still, outlines, handled=[name for name, is_handled in groups.items() if is_handled])
    yield from _hands(case, {name: outlines[name] for name, is_handled in groups.items() if is_handled})


def _named(case: Case) -> tuple[dict[str, bool], dict[str, list[FloatArray]]]:
    """Return the groups that the steps name, with True if a step manipulates one, and points of other named things."""
    groups: dict[str, bool] = {}
    others: dict[str, list[FloatArray]] = {}
    for step, loops in walk(case.task.steps):
        named = {name: name for name in case.task.objects} | {loop.variable: loop.group for loop in loops}
        for keys, _, expression in references_of(case.task, step):
            is_handled = keys[len(step.keys)] == type(step.statement).main
            for name in names_in(expression):
                if group := named.get(name):
                    groups[group] = is_handled or groups.get(group, False)
                elif name in case.task.regions:
                    others[f"region '{name}'"] = [grid(case, name)]
        for field in type(step.statement).references():
            if isinstance(text := getattr(step.statement, field), str):
                for name in case.fixtures(text, loops):
                    low, high = np.array(case.assets.stage.fixtures[name].world_bounds)
                    others[f"'{name}'"] = [np.array([[*(low + high)[:2] / 2, high[2]]])]
    return groups, others


def _outline(case: Case, item: PlacedObject) -> tuple[FloatArray, FloatArray]:
    """Return points (n, 3) around an object at its start, and points (m, 3) of its handles and buttons [m]."""
    model = case.library(item.group).model(item.kind, item.variant)
    around, handles = [outline_points(model.vertices.astype(np.float32))], [np.zeros((0, 3))]
    for part in model.parts:
        place = object_T_part(part, item.joints.get(part.name, 0.0))
        held = np.array([one.position for one in (*part.handles, *part.pressings)]).reshape(-1, 3)
        for found, points in ((around, outline_points(part.vertices.astype(np.float32))), (handles, held)):
            found.append(points @ place[:3, :3].T + place[:3, 3])
    pose = make_transform(item.position, item.wxyz)
    first, second = (item.scale * np.vstack(points) @ pose[:3, :3].T + pose[:3, 3] for points in (around, handles))
    return first, second


def _view(camera: Camera, groups: dict[str, list[FloatArray]], others: dict[str, list[FloatArray]]) -> CameraView:
    """Measure the objects in view.

    Objects with less than half of their points in the image, or with a point behind the camera, are not measured.
    """
    pose, widths, out = still_pose(camera), {}, []
    shown = {
        name: [points for points in found if is_in_picture(camera, project(camera, pose, points)).mean() >= _IN_VIEW]
        for name, found in groups.items()
    }
    for name, found in shown.items():
        if measured := [width for points in found if (width := projected_width(camera, pose, points))]:
            widths[name] = (float(np.median(measured)), min(measured))
        if len(found) < _IN_VIEW * len(groups[name]):
            out.append(f"'{name}'")
    for name, found in others.items():
        if is_in_picture(camera, project(camera, pose, np.vstack(found))).mean() < _IN_VIEW:
            out.append(name)
    return CameraView(widths=widths, out_of_view=tuple(out))


def _small(
    case: Case, still: dict[str, Camera], outlines: dict[str, list[FloatArray]], *, handled: list[str]
) -> Iterator[Diagnostic]:
    """Find groups that are too small in every image. One near camera is enough; others may be far away."""
    for group in handled:
        widths = {name: case.views[name].widths[group] for name in still if group in case.views[name].widths}
        name = max(widths, key=lambda key: widths[key], default="")
        if not name or widths[name][0] >= LEAST_PIXELS:
            continue
        (median, least), camera = widths[name], still[name]
        wide = f"objects of '{group}' are {median:.0f} pixels wide (median); the smallest is {least:.0f}"
        what = f"in the camera's images, {wide}"
        share = median / ENOUGH_PIXELS
        fov = math.degrees(2 * math.atan(math.tan(0.5 * camera.vertical_fov) * share))
        middle = np.concatenate(outlines[group]).mean(axis=0)
        near = middle + share * (np.array(camera.position) - middle)
        instead = f"write vertical_fov: {max(fov, 1):.0f} deg, or position: {write_point(near)}"
        width, height = (math.ceil(side / share / 16) * 16 for side in (camera.width, camera.height))
        if max(width, height) <= _MOST:
            instead += f", or size: [{width}, {height}]"
        yield make_finding("sizes", case.task, ("cameras", name, "vertical_fov"), what, instead=instead)


def _hands(case: Case, outlines: dict[str, list[FloatArray]]) -> Iterator[Diagnostic]:
    """Measure objects in the images of wrist cameras, between the fingers of a hand that points straight down."""
    tools = {arm.tool.link: arm.tool for arm in case.assets.robot.arms}
    for name, settings in case.task.cameras.items():
        camera = case.assets.robot.mounted(settings.camera(name))
        if not (tool := tools.get(camera.mount)):
            continue
        link_T_tool = make_transform(tool.position, tool.wxyz)
        middle, turn = link_T_tool[:3, 3], link_T_tool[:3, :3] @ _TURN_OVER
        held = {
            group: [(points - (points.min(axis=0) + points.max(axis=0)) / 2) @ turn.T + middle for points in found]
            for group, found in outlines.items()
        }
        pose = still_pose(camera)
        sizes = {  # an object that extends behind the camera has no projected width
            group: [width for points in found if (width := projected_width(camera, pose, points))]
            for group, found in held.items()
        }
        is_seen = bool(is_in_picture(camera, project(camera, pose, middle[None]))[0])
        case.views[name] = CameraView(
            widths={group: (float(np.median(found)), min(found)) for group, found in sizes.items() if found},
            out_of_view=() if is_seen else ("place between the fingers",),
        )
        if not is_seen:
            keys = ("cameras", name, "look_at" if settings.look_at is not None else "wxyz")
            what = "the point between the fingers is outside the image"
            is_hand = settings.mount != tool.link
            there = np.linalg.inv(tool.link_T_hand if is_hand else np.eye(4)) @ link_T_tool
            instead = f"write look_at: {write_point(there[:3, 3])}"
            yield make_finding("sizes", case.task, keys, what, instead=instead)
