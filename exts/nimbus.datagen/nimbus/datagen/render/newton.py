"""The default renderer as a stage."""

from __future__ import annotations

import time
from collections.abc import Iterator

from nimbus.datagen.layout import Layout
from nimbus.datagen.observation import Observation
from nimbus.datagen.registry import register
from nimbus.datagen.render.stacked import StackedRenderer
from nimbus.datagen.robot import Robot
from nimbus.datagen.stages import Planned, Rendered, Renderer
from nimbus.datagen.trajectory import Trajectory
from nimbus.datagen.usd.stage import StageInfo


@register("render", "newton")
class NewtonRenderer(Renderer):
    """Replays trajectories and renders them in chunks of K steps, as the writer asks for them.

    Args:
        stage: The scene.
        robot: The robot.
        stack: K; chosen for the device when not given.
        device: ``cpu`` or ``cuda``.
        shadows: Let the light cast shadows.
    """

    def __init__(
        self,
        stage: StageInfo,
        robot: Robot,
        *,
        stack: int | None = None,
        device: str = "cpu",
        shadows: bool = True,
    ) -> None:
        self._renderer = StackedRenderer(stage, robot, stack=stack, device=device, shadows=shadows)

    def process(self, item: Planned) -> Iterator[Rendered]:
        """Yield one result for each layout; a failed attempt has no observations."""
        for layout in item.layouts:
            times = dict(item.times)
            failed = not item.trajectory.outcome.success
            labels = None if failed else self._load(layout, times)
            yield Rendered(
                scene=item.scene,
                layout=layout,
                trajectory=item.trajectory,
                labels=labels,
                observations=iter(()) if failed else self.observations(item.trajectory, times=times),
                attempt=item.attempt,
                final=item.final,
                times=times,
            )

    def _load(self, layout: Layout, times: dict[str, float]):
        start = time.process_time()
        self._renderer.load(layout)
        times["render"] = times.get("render", 0.0) + time.process_time() - start
        return self._renderer.labels

    def observations(self, trajectory: Trajectory, *, times: dict[str, float] | None = None) -> Iterator[Observation]:
        """Render the steps of a trajectory with the layout loaded last; a chunk when it is asked for.

        Args:
            trajectory: What to show.
            times: CPU seconds are added to its entry ``render``.
        """
        spent = {} if times is None else times
        for start in range(0, trajectory.step_count, self._renderer.stack):
            begin = time.process_time()
            steps = slice(start, start + self._renderer.stack)
            cameras = self._renderer.render(
                trajectory.body_names, trajectory.body_positions[steps], trajectory.body_wxyz[steps]
            )
            spent["render"] = spent.get("render", 0.0) + time.process_time() - begin
            yield Observation(start=start, cameras=cameras)
