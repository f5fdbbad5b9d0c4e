"""Pipeline stage of rendering in Isaac Sim: RTX renders K steps together, in K regions of one stage.

Workers that run in Isaac Sim's Python load it. Kit is imported inside functions, after it has been started.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, ClassVar, Self

from nimbus.datagen.episode.layout import Camera, Layout
from nimbus.datagen.episode.observation import Observation
from nimbus.datagen.files.owned_folder import make_owned
from nimbus.datagen.files.strict_yaml import StrictModel
from nimbus.datagen.pipeline import RunContext, register_component
from nimbus.datagen.progress import allow, tick
from nimbus.datagen.render.camera_model.sensor import SensorModel, shown_poses
from nimbus.datagen.render.isaacsim.region_renderer import RegionRenderer
from nimbus.datagen.simulate.kit_app import progress_by_update
from nimbus.datagen.stages import Planned, Rendered, Renderer
from nimbus.datagen.usd.stack_layout import most_in_memory
from nimbus.datagen.usd.stage import layout_stage

if TYPE_CHECKING:
    from nimbus.datagen.tasks.scene_assets import VisibleAssets

_STACK, _MOST = 16, 64
"""K when the GPU's memory is unknown, and the largest default K."""
_MESHES = 64 << 20
"""Estimated GPU memory of one region's copy of the scene [bytes], to be replaced by a measurement."""
_PATIENCE = 600.0
"""Longest silence while a stage opens or renders its first batch [s], because both compile or load for minutes."""
logger = logging.getLogger("nimbus.isaacsim")


class IsaacSimRendererSettings(StrictModel):
    """Settings of :class:`IsaacSimRenderer`."""

    warm_up: int = 16
    settle: int = 4
    flow: bool = False


class IsaacSimRenderer(Renderer["VisibleAssets"]):
    """Renders trajectories in chunks of K steps, on the writer's demand.

    Args:
        stack: K; by default the largest number that fits into the memory.
        free_bytes: Free memory of the GPU; 0 if unknown.
        warm_up: Updates after a stage was loaded, before the first valid frame.
        settle: Frames rendered for each batch, until the denoiser's history of the previous batch has faded.
        flow: Also compute optical flow for cameras that do not list it.
    """

    version: ClassVar[int] = 2
    NOT_APPLIED: ClassVar[frozenset[str]] = frozenset({"table_height"})
    """Randomizers without effect in this renderer: its floor stays at the height in the scene's file."""

    @classmethod
    def create(cls, context: RunContext, settings: IsaacSimRendererSettings) -> Self:
        """Create the renderer of a run."""
        return cls(
            stack=context.stack,
            free_bytes=context.free_bytes,
            warm_up=settings.warm_up,
            settle=settings.settle,
            flow=settings.flow,
        )

    def __init__(
        self,
        *,
        stack: int | None = None,
        free_bytes: int = 0,
        warm_up: int = 16,
        settle: int = 4,
        flow: bool = False,
    ) -> None:
        self._given, self._free_bytes, self._warm_up, self._settle = stack, free_bytes, warm_up, settle
        self._flow = flow
        self._stack = stack or _STACK
        self._folder = make_owned("nimbus-isaacsim-")
        self._shown: tuple[Layout, RegionRenderer] | None = None
        self._count = 0
        self._has_rendered = False

    def process(self, item: Planned[VisibleAssets]) -> Iterator[Rendered[VisibleAssets]]:
        """Yield one result for each layout; a failed attempt has no observations."""
        for layout in item.layouts:
            failed = not item.trajectory.outcome.success
            yield Rendered(
                scene=item.scene,
                layout=layout,
                trajectory=item.trajectory,
                labels=None if failed else self._load(item, layout).labels,
                observations=iter(()) if failed else self._observe(item, layout),
                attempt=item.attempt,
                final=item.final,
            )

    def close(self) -> None:
        """Remove the written stages."""
        self._leave()
        self._folder.remove()

    def _observe(self, item: Planned[VisibleAssets], layout: Layout) -> Iterator[Observation]:
        trajectory, start = item.trajectory, 0
        motion = trajectory.body_positions, trajectory.body_wxyz
        shown_positions, shown_wxyz = shown_poses(*motion, rate=trajectory.rate, latency=layout.visual.latency)
        sensors = {camera.name: SensorModel(camera) for camera in layout.visual.cameras}
        while start < trajectory.step_count:
            steps, next_steps = (slice(start + later, start + later + self._stack) for later in (0, 1))
            positions, wxyz = shown_positions[steps], shown_wxyz[steps]
            following = shown_positions[next_steps], shown_wxyz[next_steps]
            tick()
            renderer = self._load(item, layout)
            with nullcontext() if self._has_rendered else allow(_PATIENCE):
                seen = renderer.render(positions, wxyz, following=following, flow=self._flow)
            self._has_rendered = True
            tick()  # once per batch: iterations of Kit's loop do not show progress of the rendering
            taken = {name: sensors[name].take(frames, first_step=start) for name, frames in seen.items()}
            yield Observation(start=start, cameras=taken)
            start += len(positions)

    def _load(self, item: Planned[VisibleAssets], layout: Layout) -> RegionRenderer:
        """Load a layout, unless it is already loaded."""
        if self._shown is None or self._shown[0] is not layout:
            self._count += 1
            assets = item.scene.assets
            self._stack = self._given or stack_in_memory(layout.visual.cameras, free_bytes=self._free_bytes)
            renderer = RegionRenderer(
                layout_stage(assets.stage, layout.physical),
                assets.robot,
                layout,
                item.trajectory,
                libraries=tuple(assets.libraries),
                stack=self._stack,
                folder=self._folder.path / f"{self._count:05d}",
                settle=self._settle,
            )
            placed, gib = renderer.layout, self._free_bytes / 2**30
            logger.info("K %d, regions %g m apart, %.1f GiB of memory", placed.count, placed.spacing, gib)
            with allow(_PATIENCE):
                self._leave()
                self._shown, self._has_rendered = (layout, renderer), False
                try:
                    with progress_by_update():
                        renderer.open(warm_up=self._warm_up)
                except BaseException:
                    self._leave()  # closed explicitly, because Kit crashes when sensors are garbage-collected
                    raise
                # The previous stage is closed by now, so that its files can be removed.
                shutil.rmtree(self._folder.path / f"{self._count - 1:05d}", ignore_errors=True)
        return self._shown[1]

    def _leave(self) -> None:
        """Close the last stage before another one is opened."""
        if self._shown is not None:
            self._shown[1].close()
            self._shown = None


register_component("render", "isaacsim", IsaacSimRenderer, IsaacSimRendererSettings)


def stack_in_memory(cameras: Sequence[Camera], *, free_bytes: int) -> int:
    """Return K for a GPU's free memory."""
    if not free_bytes:
        return _STACK
    return min(_MOST, most_in_memory(cameras, free_bytes=free_bytes, region_bytes=_MESHES))
