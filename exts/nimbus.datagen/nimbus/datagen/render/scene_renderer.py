"""The stacked renderer for the episodes of a stage: its inputs are made from layouts."""

from __future__ import annotations

from collections.abc import Sequence

import warp as wp

from nimbus.datagen.episode.layout import Layout, Modality
from nimbus.datagen.render.labels import make_labels
from nimbus.datagen.render.render_inputs import RenderInputs
from nimbus.datagen.render.render_parts import build_object_parts, build_scene_parts
from nimbus.datagen.render.stacked import StackedRenderer
from nimbus.datagen.render.table_height import around_table
from nimbus.datagen.robots.robot import Robot
from nimbus.datagen.usd.stage import StageInfo, layout_stage


class SceneRenderer(StackedRenderer):
    """Renders states of episodes on one stage, one episode at a time.

    Args:
        stage: The scene.
        robot: The robot on its mount.
        libraries: Object libraries of the task, whose kinds are the semantic names; default those of each episode.
        stack: K, the number of steps rendered together; chosen for the device when not given.
        device: ``cpu`` or ``cuda``.
        shadows: Let the light cast shadows.
        modalities: What every camera makes, in place of its own modalities.
        reuse: Keep the pixels that stand still; chosen for the device when not given.

    Raises:
        InputError: The device is not there.
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
    ) -> None:
        super().__init__(stack=stack, device=device, shadows=shadows, modalities=modalities, reuse=reuse)
        self._stage, self._robot, self._libraries = stage, robot, tuple(libraries)

    def load(self, layout: Layout) -> None:
        """Prepare the objects, looks, light and cameras of an episode."""
        self.load_inputs(self.inputs(layout))

    def inputs(self, layout: Layout) -> RenderInputs:
        """Make the parts and labels of an episode."""
        objects = layout.physical.objects
        parts = [part for item in objects for part in build_object_parts(item)]
        stage = layout_stage(self._stage, layout.physical)
        parts += around_table(build_scene_parts(stage, self._robot), rise=layout.visual.table_rise)
        libraries = self._libraries or tuple(dict.fromkeys(item.library for item in objects))
        labels = make_labels(stage, objects, parts, libraries=libraries)
        return RenderInputs(parts=tuple(parts), labels=labels, visual=layout.visual)
