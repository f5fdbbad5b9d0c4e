"""Gymnasium environment of a task: ``reset(seed=i)`` is evaluation layout ``i``, independent of earlier calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from numbers import Integral
from pathlib import Path
from typing import Any, Literal

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from nimbus.datagen.episode.layout import EpisodeKey, Layout
from nimbus.datagen.episode.trajectory import Reason
from nimbus.datagen.errors import InputError
from nimbus.datagen.policies.environment import Environment
from nimbus.datagen.policies.policy import DEFAULT_LIMIT, Needs, PolicyFault, PolicyObservation
from nimbus.datagen.policies.robot_signals import RobotSignals
from nimbus.datagen.policies.signal_view import SignalView
from nimbus.datagen.random_streams import EVALUATION, RUN
from nimbus.datagen.randomize.tabletop import draw_physical, draw_visual
from nimbus.datagen.tasks.scene_assets import SceneAssets
from nimbus.datagen.tasks.task import Task

Observation = dict[str, Any]


class NimbusEnv(gymnasium.Env[Observation, NDArray[Any]]):
    """Task in which a policy acts.

    Observations are ``agent_pos`` (S,), the joint positions [rad or m], ``pixels`` (H, W, 3) uint8 by camera, and on
    request ``environment_state`` (F,). The reward is 1 when the task is done, and 0 otherwise.

    Args:
        task: Name or path of a task file.
        control_mode: ``joint``, ``joint_relative``, ``tool_pose`` or ``tool_delta``.
        rotation: Form of rotations in actions: ``6d``, ``quaternion`` or ``euler``.
        state: ``measured``, or ``commanded``, with one number in ``agent_pos`` for each gripper: its last command.
        cameras: Names of the cameras to render; by default all cameras of the task, empty for states only.
        environment_state: True to observe the state of the scene as well.
        max_steps: Largest number of steps of an episode.
        seed: Seed of the evaluation layouts.
        split: Layouts to draw: held-out ones by default, or with ``run`` those of ``nimbus run`` with the same seed.
        device: Device that renders the images: ``cpu`` or ``cuda``.
        render_mode: With ``rgb_array``, ``render()`` returns the image of the first camera.
        skills: Folders with custom skills that the task uses.

    Raises:
        InputError: The task, a camera or a mode does not exist.
    """

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": 15}
    _renders = True
    """False if a vector environment renders the images of several environments together."""

    def __init__(
        self,
        task: str | Path,
        *,
        control_mode: str = "joint",
        rotation: str = "6d",
        state: str = "measured",
        cameras: tuple[str, ...] | None = None,
        environment_state: bool = False,
        max_steps: int = DEFAULT_LIMIT,
        seed: int = 0,
        split: str = EVALUATION,
        device: str = "cpu",
        render_mode: Literal["rgb_array"] | None = None,
        skills: tuple[str | Path, ...] = (),
    ) -> None:
        check_options(cameras=cameras, environment_state=environment_state, max_steps=max_steps, seed=seed, split=split)
        check_options(
            control_mode=control_mode, rotation=rotation, state=state, device=device, skills=skills, task=task
        )
        cameras = None if cameras is None else tuple(dict.fromkeys(cameras))
        self._task, self._assets = _loaded(str(task), device, tuple(map(str, skills)))
        if unknown := set(cameras or ()) - set(self._task.cameras):
            known = ", ".join(self._task.cameras) or "none"
            raise InputError(f"no camera '{min(unknown)}'", where="cameras", instead=f"the task has {known}")
        needs = Needs(cameras=cameras, environment_state=environment_state)
        self._environment = Environment(self._task, self._assets, needs=needs, device=device, renders=self._renders)
        view = SignalView(actions=control_mode, rotation=rotation, state=state)
        self._signals = RobotSignals(self._assets.robot, view)
        self._conventions = self._signals.conventions(self._environment.conventions)
        self.control_mode, self.render_mode = control_mode, render_mode
        self._seed, self._split, self._next = seed, split, 0
        self._max_episode_steps = max_steps
        self.task = self.task_description = self._task.name
        whole = int(self._task.rate) == self._task.rate  # video writers expect an integer rate where possible
        self.metadata = NimbusEnv.metadata | {"render_fps": int(self._task.rate) if whole else self._task.rate}
        self._pictures: dict[str, NDArray[np.uint8]] = {}
        self.observation_space = self._observation_space()
        self.action_space = self._action_space()

    @property
    def environment(self) -> Environment:
        """Physics of the episode, and evaluation of its success."""
        return self._environment

    @property
    def action_names(self) -> tuple[str, ...]:
        """Names of the entries of an action."""
        return self._signals.action_names

    @property
    def state_names(self) -> tuple[str, ...]:
        """Names of the entries of ``agent_pos``."""
        return self._signals.state_names

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the entries of ``environment_state``."""
        return self._environment.conventions.feature_names

    def _observation_space(self) -> spaces.Dict:
        conventions = self._conventions
        joints = len(conventions.state_names)
        found: dict[str, spaces.Space[Any]] = {"agent_pos": spaces.Box(-np.inf, np.inf, (joints,), np.float64)}
        if names := self._environment.camera_names:
            sizes = {name: conventions.cameras[name] for name in names}
            pictures: dict[str, spaces.Space[Any]] = {
                name: spaces.Box(0, 255, (high, wide, 3), np.uint8) for name, (wide, high) in sizes.items()
            }
            found["pixels"] = spaces.Dict(pictures)
        if conventions.feature_names:
            found["environment_state"] = spaces.Box(-np.inf, np.inf, (len(conventions.feature_names),), np.float64)
        return spaces.Dict(found)

    def _action_space(self) -> spaces.Box:
        return spaces.Box(self._conventions.action_low, self._conventions.action_high, dtype=np.float64)

    def layout(self, index: int) -> Layout:
        """Draw an evaluation layout."""
        task, assets = self._task, self._assets
        key = EpisodeKey(task=task.name, task_hash=task.content_hash, seed=self._seed, index=index, split=self._split)
        physical = draw_physical(task, assets, seed=self._seed, index=index, split=self._split)
        visual = draw_visual(task, assets.stage, assets.robot, physical, key=key)
        return Layout(key=key, physical=physical, visual=visual)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start an episode.

        Args:
            seed: Index of the layout; by default the next one.
            options: Ignored.
        """
        super().reset(seed=seed)
        self._index = self._next if seed is None else seed
        self._next = self._index + 1
        layout = self.layout(self._index)
        seen = self._environment.reset(layout)
        self._signals.begin(self._environment.simulation)
        self.task_description = layout.visual.instruction
        return self._observed(seen), self._info(is_success=False, reason="")

    def step(self, action: NDArray[np.floating]) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Execute one action.

        Args:
            action: Action in the control mode; it is clipped to the limits.

        Returns:
            Observation, reward, terminated (True if the task is done or physics failed), truncated, and info.

        Raises:
            ValueError: The action is not finite, or has another shape.
        """
        environment = self._environment
        values = np.asarray(action, dtype=float)
        if values.shape != self.action_space.shape or not np.isfinite(values).all():
            raise ValueError(f"expected {self.action_space.shape} finite numbers, found {values.shape}: {values}")
        try:
            command = self._signals.command(values, environment.present_action())
        except PolicyFault as fault:
            raise ValueError(str(fault)) from None
        limits = environment.conventions
        command = np.clip(command, limits.action_low, limits.action_high)
        self._signals.asked(command)
        result = environment.step(command)
        is_over = result.is_success or not result.is_stable
        is_late = not is_over and environment.step_count >= self._max_episode_steps
        reason = "" if result.failure is None else str(result.failure.reason)
        if is_late:
            reason = str(Reason.TIME_LIMIT)
        info = self._info(is_success=result.is_success, reason=reason)
        return self._observed(environment.observe()), float(result.is_success), is_over, is_late, info

    def render(self) -> NDArray[np.uint8] | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Return the last image of the first camera (H, W, 3); None without ``render_mode``."""
        if self.render_mode is None:
            return None
        if not self._pictures:
            raise InputError("no camera is rendered", where="render", instead="make it with cameras=None")
        return next(iter(self._pictures.values()))

    def _observed(self, seen: PolicyObservation) -> Observation:
        found: Observation = {"agent_pos": self._signals.observed(seen).state}
        self.show(seen.images, found)
        if len(seen.environment_state):
            found["environment_state"] = seen.environment_state
        return found

    def show(self, pictures: Mapping[str, NDArray[np.uint8]], observation: Observation) -> None:
        """Add images by camera to an observation; without images it stays unchanged."""
        if pictures:
            observation["pixels"] = self._pictures = dict(pictures)

    def _info(self, *, is_success: bool, reason: str) -> dict[str, Any]:
        key = self._environment.layout.key
        return {"is_success": is_success, "reason": reason, "layout": self._index, "episode_id": key.id}


def _is_whole(value: object, *, least: int) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool) and least <= int(value) < 2**63


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_path(value: object) -> bool:
    return isinstance(value, str | Path)


def _is_list(value: object, kind: Callable[[object], bool]) -> bool:
    return isinstance(value, list | tuple) and all(map(kind, value))


_CHECKS: dict[str, tuple[Callable[[object], bool], str]] = {
    "task": (_is_path, "the name or path of a task file"),
    "control_mode": (_is_text, "a text"),
    "rotation": (_is_text, "a text"),
    "state": (_is_text, "a text"),
    "cameras": (lambda value: value is None or _is_list(value, _is_text), "a list of names, or None for all"),
    "environment_state": (lambda value: isinstance(value, bool), "True or False"),
    "max_steps": (partial(_is_whole, least=1), "a whole number from 1"),
    "num_envs": (partial(_is_whole, least=1), "a whole number from 1"),
    "seed": (partial(_is_whole, least=0), "a whole number from 0"),
    "split": (lambda value: _is_text(value) and value in (EVALUATION, RUN), f"'{EVALUATION}' or '{RUN}'"),
    "device": (_is_text, "'cpu' or 'cuda'"),
    "skills": (partial(_is_list, kind=_is_path), "a list of folders"),
}
"""Check of each option and description of valid values; Gymnasium passes on any argument of ``make``."""


def check_options(**options: object) -> None:
    """Refuse invalid values of options.

    Raises:
        InputError: An option has an invalid value.
    """
    for name, value in options.items():
        passes, wanted = _CHECKS[name]
        if not passes(value):
            raise InputError(f"{ascii(value)[:80]} is not a valid value", where=name, instead=f"give {wanted}")


@cache
def _loaded(task: str, device: str, skills: tuple[str, ...]) -> tuple[Task, SceneAssets]:
    """Load a task once per process, so that environments of the same task share the scene."""
    from nimbus.datagen.load.scene_loader import load_assets
    from nimbus.datagen.tasks.task import load_task
    from nimbus.runner.system.threads import prepare_libraries

    folders = [Path(folder) for folder in skills]
    prepare_libraries(skill_folders=folders, device=device)
    loaded = load_task(task, skill_folders=folders)
    return loaded, load_assets(loaded)
