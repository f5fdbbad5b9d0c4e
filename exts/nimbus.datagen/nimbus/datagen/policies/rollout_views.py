"""Pictures of several environments of one task at the same time, as their policies see them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.episode.layout import Layout
from nimbus.datagen.policies.environment import Environment, policy_renderer, with_cameras
from nimbus.datagen.render.layout_states import LayoutStates
from nimbus.datagen.render.loaded_layout import LoadedLayout, load_layout
from nimbus.datagen.render.stacked import StackedRenderer
from nimbus.datagen.tasks.scene_assets import SceneAssets

Pictures = Mapping[str, NDArray[np.uint8]]
"""Pictures (H, W, 3) by camera."""


class RolloutViews:
    """Renderer of the present states of environments, each with its own layout.

    Args:
        assets: Assets of the task.
        cameras: Names of the cameras to render.
        device: ``cpu`` or ``cuda``.
        together: Render all in one launch per camera. This is the default on a GPU. On a CPU it would save no time;
        there, environments are rendered one after the other, and pixels that do not change are kept. Pictures are
        bit-identical either way.
    """

    def __init__(
        self, assets: SceneAssets, cameras: Sequence[str], *, device: str = "cpu", together: bool | None = None
    ) -> None:
        self._cameras = tuple(cameras)
        self._shared = policy_renderer(assets, device)
        self._together = self._shared.device.is_cuda if together is None else together
        self._loaded: dict[int, tuple[Layout, LoadedLayout]] = {}
        self._shown: tuple[LoadedLayout, ...] = ()
        self._stacked = StackedRenderer(stack=1, device=device, modalities=("rgb",))

    def pictures(self, environments: Mapping[int, Environment]) -> dict[int, Pictures]:
        """Return the pictures of environments.

        Args:
            environments: Environments by place; the layout of a place is prepared when it is new.
        """
        if not self._cameras:
            return {place: {} for place in environments}
        if not self._together:
            return {place: environment.pictures() for place, environment in environments.items()}
        layouts = tuple(self._load(place, environment.layout) for place, environment in environments.items())
        if layouts != self._shown:
            self._stacked.load_layouts(layouts)
            self._shown = layouts
        states = [_state(environment, number) for number, environment in enumerate(environments.values())]
        frames = self._stacked.render_states(states)
        return {
            place: {name: shown[name].rgb[0] for name in self._cameras}
            for place, shown in zip(environments, frames, strict=True)
        }

    def _load(self, place: int, layout: Layout) -> LoadedLayout:
        if place not in self._loaded or self._loaded[place][0] is not layout:
            inputs = self._shared.inputs(with_cameras(layout, self._cameras))
            self._loaded[place] = layout, load_layout(inputs, self._shared.device, shadows=True)
        return self._loaded[place][1]


def _state(environment: Environment, number: int) -> LayoutStates:
    simulation = environment.simulation
    return LayoutStates(
        names=simulation.body_names,
        positions=simulation.body_positions()[None],
        wxyz=simulation.body_wxyz()[None],
        layout=number,
        first_step=environment.step_count,
    )
