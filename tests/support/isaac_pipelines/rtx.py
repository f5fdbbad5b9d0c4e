"""A renderer that renders in Isaac Sim, and returns the images of the point robot."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Self

import numpy as np

from nimbus.datagen.episode.observation import Observation
from nimbus.datagen.pipeline import NoSettings, RunContext, register_component
from nimbus.datagen.stages import Planned, Rendered, Renderer
from tests.support.point_robot import frames


class Rtx(Renderer):
    """Renders five steps at a time, with a frame of Isaac Sim for each."""

    @classmethod
    def create(cls, context: RunContext, settings: NoSettings) -> Self:
        return cls()

    def process(self, item: Planned) -> Iterator[Rendered]:
        for layout in item.layouts:
            yield Rendered(
                scene=item.scene,
                layout=layout,
                trajectory=item.trajectory,
                labels=None,
                observations=self._views(item),
                attempt=item.attempt,
                final=item.final,
            )

    def _views(self, item: Planned) -> Iterator[Observation]:
        import omni.replicator.core as rep  # pyright: ignore[reportMissingImports]

        count = item.trajectory.step_count
        for start in range(0, count, 5):
            rep.orchestrator.step(rt_subframes=1, pause_timeline=False, delta_time=0.0)
            shown = np.full((min(5, count - start), 8, 8, 3), start % 256, np.uint8)
            yield Observation(start=start, cameras={"map": frames(shown)})


register_component("render", "rtx", Rtx, NoSettings)
