"""Stacked renderer for the episodes of a stage; it derives its inputs from layouts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, TypeAlias

import warp as wp

from nimbus.datagen.episode.layout import Layout, Modality, Vector
from nimbus.datagen.render.baked_light.light_basis import LightBasis
from nimbus.datagen.render.keypoints import find_keypoints
from nimbus.datagen.render.labels import make_labels
from nimbus.datagen.render.render_inputs import RenderInputs, RenderPart
from nimbus.datagen.render.render_parts import build_object_parts, build_scene_parts
from nimbus.datagen.render.stacked import StackedRenderer
from nimbus.datagen.render.still_light import bake_parts, light_parts
from nimbus.datagen.render.table_height import around_table
from nimbus.datagen.robots.robot import Robot
from nimbus.datagen.usd.stage import StageInfo, layout_stage

SceneLight: TypeAlias = Literal["auto", "baked", "direct"]
"""Light on static parts."""
_BEFORE = 0.45
"""Distance from the robot's mount to the center of its default workplace [m]."""


class SceneRenderer(StackedRenderer):
    """Renderer of the states of episodes on one stage, one episode at a time.

    Args:
        stage: The scene.
        robot: The robot on its mount.
        libraries: Object libraries of the task, whose kinds are the semantic names; by default the libraries of each
            episode.
        stack: K, the number of steps rendered together; chosen for the device by default.
        device: ``cpu`` or ``cuda``.
        shadows: Let the light cast shadows.
        modalities: Modalities of every camera, in place of its own.
        reuse: Keep pixels that do not change; chosen for the device by default.
        light: ``baked`` or ``direct``; by default ``baked`` for rooms and scene files.

    Raises:
        InputError: The device does not exist.
    """

    def __init__(
        self,
        stage: StageInfo,
        robot: Robot,
        *,
        libraries: Sequence[str] = (),
        stack: int | None = None,
        device: str | wp.Device = "cpu",
        shadows: bool = True,
        modalities: Sequence[Modality] | None = None,
        reuse: bool | None = None,
        light: SceneLight = "auto",
    ) -> None:
        super().__init__(stack=stack, device=device, shadows=shadows, modalities=modalities, reuse=reuse)
        self._stage, self._robot, self._libraries = stage, robot, tuple(libraries)
        self._light_kind: SceneLight = light

    def load(self, layout: Layout) -> None:
        """Prepare the objects, looks, light and cameras of an episode."""
        self.load_inputs(self.inputs(layout))

    def inputs(self, layout: Layout) -> RenderInputs:
        """Make the parts and labels of an episode."""
        objects = layout.physical.objects
        parts = [part for item in objects for part in build_object_parts(item)]
        stage = layout_stage(self._stage, layout.physical)
        scene, basis = load_scene(stage, self._robot, light=self._light_kind)
        visual = layout.visual
        baked = basis and light_parts(basis, scene, visual)
        if baked:
            visual = replace(visual, light=baked.light)
        parts += around_table(scene, rise=visual.table_rise)
        libraries = self._libraries or tuple(dict.fromkeys(item.library for item in objects))
        labels = make_labels(stage, objects, parts, libraries=libraries)
        if any("keypoints" in camera.modalities for camera in visual.cameras):
            labels = replace(labels, keypoints=find_keypoints(objects, self._robot, labels))
        return RenderInputs(parts=tuple(parts), labels=labels, visual=visual, baked=baked)


def load_scene(
    stage: StageInfo, robot: Robot, *, light: SceneLight = "auto"
) -> tuple[tuple[RenderPart, ...], LightBasis | None]:
    """Return the parts of a stage with its robot, and the basis of its light if that is baked."""
    parts = build_scene_parts(stage, robot)
    is_baked = light == "baked" or (light == "auto" and (stage.room is not None or stage.is_own))
    return bake_parts(parts, _workplace(stage)) if is_baked else (parts, None)


def _workplace(stage: StageInfo) -> Vector:
    """Return the center of a stage's work surface, or a default point in front of the robot [m]."""
    if (table := stage.surfaces.get("table")) is None:
        x, y, z = stage.robot_position
        return x + _BEFORE, y, z
    (x0, y0, _), (x1, y1, top) = table.lower, table.upper
    return (x0 + x1) / 2, (y0 + y1) / 2, top
