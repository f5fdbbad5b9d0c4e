"""Tasks of Nimbus as environments of LeRobot: ``lerobot-eval --env.type=nimbus --env.task=sort_trash``.

LeRobot imports installed distributions whose names begin with ``lerobot_env_``; importing this one registers the type.
"""

# pyright: reportMissingImports=false, reportUntypedBaseClass=false
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gymnasium import spaces
from lerobot.configs.types import FeatureType, PolicyFeature
from lerobot.envs.configs import EnvConfig

from nimbus.gym import NimbusEnv


@EnvConfig.register_subclass("nimbus")
@dataclass
class NimbusEnvConfig(EnvConfig):
    """One task; the options are those of an export, so that a policy meets what it was trained on."""

    task: str | None = "pick_and_place"
    fps: int = 15
    episode_length: int = 200
    control_mode: str = "joint"
    rotation: str = "6d"
    state: str = "measured"
    environment_state: bool = False

    def __post_init__(self) -> None:
        """Describe what the environment gives and takes."""
        env = NimbusEnv(str(self.task), **self.gym_kwargs)
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
        """Name of the task in Gymnasium."""
        return f"nimbus/{self.task}-v0"

    @property
    def gym_kwargs(self) -> dict[str, Any]:
        """Arguments of the environment."""
        return {
            "control_mode": self.control_mode,
            "rotation": self.rotation,
            "state": self.state,
            "environment_state": self.environment_state,
            "max_steps": self.episode_length,
            "render_mode": "rgb_array",
        }
