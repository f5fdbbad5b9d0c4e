"""Transforms of openpi for exports to ``lerobot-v2.1``: one arm, a camera ``front``, a camera ``wrist``.

Export with ``--state commanded``, so that state and action have the same entries and the mask of relative actions fits
both. Give :func:`config` to openpi's list of configs; see docs/training.md.
"""

# ruff: noqa: D102
# pyright: reportMissingImports=false, reportUntypedBaseClass=false
from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
from openpi import transforms
from openpi.models import model as models
from openpi.models import pi0_config
from openpi.training import config as training

JOINTS = 7
"""Joints of the arm; the gripper's entry is behind them."""


def picture(values: Any) -> np.ndarray:
    """(H, W, 3) uint8 of what a dataset (3, H, W in [0, 1]) or a robot gives."""
    found = np.asarray(values)
    if np.issubdtype(found.dtype, np.floating):
        found = np.rint(found * 255).astype(np.uint8)
    return np.moveaxis(found, 0, -1) if found.shape[0] == 3 else found


@dataclasses.dataclass(frozen=True)
class NimbusInputs(transforms.DataTransformFn):
    """Names of Nimbus to those of the model."""

    model_type: models.ModelType

    def __call__(self, data: dict[str, Any]) -> dict[str, Any]:
        front, wrist = picture(data["front"]), picture(data["wrist"])
        pictures = {"base_0_rgb": front, "left_wrist_0_rgb": wrist, "right_wrist_0_rgb": np.zeros_like(front)}
        is_fast = self.model_type == models.ModelType.PI0_FAST
        masks = dict.fromkeys(pictures, np.True_) | {"right_wrist_0_rgb": np.bool_(is_fast)}
        rest = {name: data[name] for name in ("actions", "prompt") if name in data}
        return {"state": data["state"], "image": pictures, "image_mask": masks, **rest}


@dataclasses.dataclass(frozen=True)
class NimbusOutputs(transforms.DataTransformFn):
    """The entries of the model's actions that are the robot's."""

    def __call__(self, data: dict[str, Any]) -> dict[str, Any]:
        return {"actions": np.asarray(data["actions"][:, : JOINTS + 1])}


@dataclasses.dataclass(frozen=True)
class NimbusData(training.DataConfigFactory):
    """An export, with joints relative to the state and the gripper absolute, as the model was trained."""

    def create(self, assets_dirs: Path, model_config: models.BaseModelConfig) -> training.DataConfig:
        names = {"front": "observation.images.front", "wrist": "observation.images.wrist"}
        names |= {"state": "observation.state", "actions": "action", "prompt": "prompt"}
        mask = transforms.make_bool_mask(JOINTS, -1)
        data = transforms.Group(inputs=[NimbusInputs(model_config.model_type)], outputs=[NimbusOutputs()])
        return dataclasses.replace(
            self.create_base_config(assets_dirs, model_config),
            repack_transforms=transforms.Group(inputs=[transforms.RepackTransform(names)]),
            data_transforms=data.push(
                inputs=[transforms.DeltaActions(mask)], outputs=[transforms.AbsoluteActions(mask)]
            ),
            model_transforms=training.ModelTransformFactory()(model_config),
            action_sequence_keys=("action",),
        )


def config(repo_id: str, *, steps: int = 20_000) -> training.TrainConfig:
    """A run of pi0 on an export that lies under ``HF_LEROBOT_HOME/repo_id``."""
    return training.TrainConfig(
        name="pi0_nimbus",
        model=pi0_config.Pi0Config(action_horizon=16),
        data=NimbusData(repo_id=repo_id, base_config=training.DataConfig(prompt_from_task=True)),
        num_train_steps=steps,
    )
