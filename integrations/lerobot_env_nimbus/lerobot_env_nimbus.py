"""Nimbus's tasks as LeRobot environments: ``lerobot-eval --env.type=nimbus --env.task=sort_trash``.

LeRobot imports installed distributions whose names begin with ``lerobot_env_``; importing this module registers the
environment type.
"""

# pyright: reportMissingImports=false, reportUntypedBaseClass=false
from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gymnasium import spaces
from lerobot.configs.types import FeatureType, PolicyFeature
from lerobot.envs.configs import EnvConfig

from nimbus.datagen.datasets.export.training_source import read_training_source
from nimbus.datagen.tasks.task import load_task
from nimbus.gym import ANY_TASK, NimbusEnv

_DATASET = "--env.dataset"


@EnvConfig.register_subclass("nimbus")
@dataclass
class NimbusEnvConfig(EnvConfig):
    """One task; its options are those of an export, so that a policy gets the same signals as in training."""

    task: str | None = "pick_and_place"
    """Name of a task, or the path of its file."""
    dataset: str | None = None
    """Export on which the policy was trained; it sets the four options below and must match the task."""
    fps: int = 15
    episode_length: int = 200
    control_mode: str = "joint"
    rotation: str = "6d"
    state: str = "measured"
    environment_state: bool = False

    def __post_init__(self) -> None:
        """Describe the environment's observations and actions."""
        if self.dataset is not None:
            source = read_training_source(Path(self.dataset), where=_DATASET)
            source.compare(load_task(str(self.task)), where=_DATASET)
            self.control_mode, self.rotation = source.view.actions, source.view.rotation
            self.state, self.environment_state = source.view.state, source.view.environment_state
        arguments = self.gym_kwargs
        env = NimbusEnv(arguments.pop("task"), **arguments)
        self.fps = round(env.metadata["render_fps"])
        kinds = {"agent_pos": FeatureType.STATE, "environment_state": FeatureType.ENV}
        names = {"agent_pos": "observation.state", "environment_state": "observation.environment_state"}
        observed: Any = env.observation_space
        for name, space in observed.items():
            if isinstance(space, spaces.Dict):
                for camera, picture in space.items():
                    self._add(f"{name}/{camera}", FeatureType.VISUAL, picture.shape, f"observation.images.{camera}")
            else:
                self._add(name, kinds[name], space.shape, names[name])
        self._add("action", FeatureType.ACTION, env.action_space.shape, "action")
        env.close()

    def _add(self, name: str, kind: FeatureType, shape: tuple[int, ...] | None, feature: str) -> None:
        self.features[name] = PolicyFeature(type=kind, shape=tuple(shape or ()))
        self.features_map[name] = feature

    @property
    def package_name(self) -> str:
        """Module that registers the tasks."""
        return "nimbus.gym"

    @property
    def gym_id(self) -> str:
        """Id in Gymnasium of the environment that runs a task by name or by file."""
        return ANY_TASK

    @property
    def gym_kwargs(self) -> dict[str, Any]:
        """Keyword arguments of the environment."""
        return {
            "task": str(self.task),
            "control_mode": self.control_mode,
            "rotation": self.rotation,
            "state": self.state,
            "environment_state": self.environment_state,
            "max_steps": self.episode_length,
            "render_mode": "rgb_array",
        }
