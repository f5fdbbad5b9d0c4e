"""Vector environment of a task: episodes advance in lockstep in one process, and share rendering calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space, concatenate, create_empty_array, iterate
from numpy.typing import NDArray

from nimbus.datagen.arrays import BoolArray, FloatArray
from nimbus.gym.environment import NimbusEnv, Observation, check_options

Stepped = tuple[Observation, FloatArray, BoolArray, BoolArray, dict[str, Any]]


class _BlindEnv(NimbusEnv):
    """Environment whose images are rendered by the vector environment."""

    _renders = False


class NimbusVectorEnv(VectorEnv[Observation, NDArray[Any], NDArray[Any]]):
    """N episodes of a task; each equals that of :class:`NimbusEnv` with the same layout and actions, to the bit.

    An episode that is reset without a seed gets the first layout after all layouts used so far.

    Args:
        num_envs: Number N of episodes.
        task: Name or path of a task file.
        autoreset_mode: Time at which an episode that has ended is reset.
        together: True to render all episodes in one launch per camera; by default only on a GPU.
        options: Further arguments of :class:`NimbusEnv`.

    Raises:
        InputError: An argument has an invalid value.
    """

    def __init__(
        self,
        num_envs: int = 1,
        *,
        task: str,
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
        together: bool | None = None,
        **options: Any,
    ) -> None:
        check_options(num_envs=num_envs)
        self.num_envs, self._mode = num_envs, AutoresetMode(autoreset_mode)
        self.envs = [_BlindEnv(task, **options) for _ in range(num_envs)]
        first = self.envs[0]
        self.metadata = first.metadata | {"autoreset_mode": self._mode}
        self.render_mode = first.render_mode
        self.single_observation_space, self.single_action_space = first.observation_space, first.action_space
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        # The renderer is not imported, and not loaded, for environments without pictures.
        from nimbus.datagen.policies.rollout_views import RolloutViews

        own, device = first.environment, options.get("device", "cpu")
        cameras = own.camera_names
        self._views = RolloutViews(own.assets, cameras, device=device, together=together) if cameras else None
        self._next, self._has_ended = 0, np.zeros(num_envs, dtype=bool)
        self._observed: list[Observation] = [{} for _ in range(num_envs)]

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start episodes.

        Args:
            seed: Indices of the layouts; a single number is the first of N consecutive ones.
            options: ``reset_mask`` (N,) is True for the episodes to start; the others continue.

        Raises:
            ValueError: The number of seeds or the length of the mask is not N.
        """
        if isinstance(seed, int | np.integer):
            seeds = [int(seed) + place for place in range(self.num_envs)]
        else:
            seeds = [] if seed is None else list(seed)
        seeds = seeds or [None] * self.num_envs
        mask = np.asarray((options or {}).get("reset_mask", np.ones(self.num_envs, dtype=bool)), dtype=bool)
        if len(seeds) != self.num_envs or mask.shape != (self.num_envs,):
            raise ValueError(f"expected {self.num_envs} seeds and flags, got {len(seeds)} and {mask.shape}")
        infos: dict[str, Any] = {}
        places = [int(place) for place in np.flatnonzero(mask)]
        for place in places:
            infos = self._add_info(infos, self._begin(place, seeds[place]), place)
        self._has_ended[mask] = False
        self._look(places)
        return self._batch(), infos

    def step(self, actions: NDArray[Any]) -> Stepped:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Execute one action in every episode.

        Args:
            actions: (N, A) actions in the control mode.

        Returns:
            Observations, rewards, terminated, truncated, and infos; see the autoreset modes of Gymnasium.

        Raises:
            ValueError: An action is not finite, or an episode has ended and is not reset.
        """
        if self._mode == AutoresetMode.DISABLED and self._has_ended.any():
            raise ValueError(f"episodes {np.flatnonzero(self._has_ended).tolist()} have ended; reset them")
        rewards, infos = np.zeros(self.num_envs), dict[str, Any]()
        over, late = np.zeros(self.num_envs, dtype=bool), np.zeros(self.num_envs, dtype=bool)
        given: dict[int, dict[str, Any]] = {}
        for place, (env, action) in enumerate(zip(self.envs, iterate(self.action_space, actions), strict=True)):
            if self._has_ended[place]:
                info = self._begin(place, None)
            else:
                self._observed[place], rewards[place], over[place], late[place], info = env.step(action)
            given[place] = info
            infos = self._add_info(infos, info, place)
        self._look(range(self.num_envs))
        self._has_ended = over | late
        if self._mode == AutoresetMode.SAME_STEP and self._has_ended.any():
            infos = self._begin_ended(infos, given)
        return self._batch(), rewards, over, late, infos

    def render(self) -> tuple[NDArray[np.uint8] | None, ...] | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Return the last image of the first camera of each episode; None without ``render_mode``."""
        return None if self.render_mode is None else tuple(env.render() for env in self.envs)

    def close_extras(self, **kwargs: Any) -> None:
        """Close all environments."""
        for env in self.envs:
            env.close()

    def _begin(self, place: int, seed: int | None) -> dict[str, Any]:
        index = self._next if seed is None else seed
        self._next = max(self._next, index + 1)
        self._observed[place], info = self.envs[place].reset(seed=index)
        return info

    def _begin_ended(self, infos: dict[str, Any], given: Mapping[int, dict[str, Any]]) -> dict[str, Any]:
        """Start new episodes where one has just ended, and add the last observations of the ended ones to the infos."""
        places = [int(place) for place in np.flatnonzero(self._has_ended)]
        for place in places:
            last = {"final_obs": self._observed[place], "final_info": given[place]}
            infos = self._add_info(infos, last, place)
            infos = self._add_info(infos, self._begin(place, None), place)
        self._has_ended[:] = False
        self._look(places)
        return infos

    def _look(self, places: Sequence[int]) -> None:
        """Render some episodes, and add the images to their observations."""
        if self._views is None or not places:
            return
        seen = self._views.pictures({place: self.envs[place].environment for place in places})
        for place, pictures in seen.items():
            self.envs[place].show(pictures, self._observed[place])

    def _batch(self) -> Observation:
        empty = create_empty_array(self.single_observation_space, n=self.num_envs, fn=np.zeros)
        return concatenate(self.single_observation_space, self._observed, empty)  # pyright: ignore[reportReturnType]
