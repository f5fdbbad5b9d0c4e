"""Transforms of openpi for exports to ``lerobot-v2.1``: one arm, a camera ``front``, a camera ``wrist``.

Export with ``--state commanded``: state and action then have the same entries, and the mask of relative actions fits
both. Add :func:`config` to openpi's list of configs; see docs/training.md.
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
"""Number of joints of the arm; the gripper's entry follows them."""


def picture(values: Any) -> np.ndarray:
    """Convert an image of a dataset, (3, H, W) from 0 to 1, or of a robot to (H, W, 3) uint8."""
    found = np.asarray(values)
    if np.issubdtype(found.dtype, np.floating):
        found = np.rint(found * 255).astype(np.uint8)
    return np.moveaxis(found, 0, -1) if found.shape[0] == 3 else found


@dataclasses.dataclass(frozen=True)
class NimbusInputs(transforms.DataTransformFn):
    """Renames Nimbus's inputs to those of the model."""

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
    """Selects the entries of the model's actions that belong to the robot."""

    def __call__(self, data: dict[str, Any]) -> dict[str, Any]:
        return {"actions": np.asarray(data["actions"][:, : JOINTS + 1])}


@dataclasses.dataclass(frozen=True)
class NimbusData(training.DataConfigFactory):
    """Data of an export, with joints relative to the state and an absolute gripper, as in the model's training."""

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
    """Return the config of pi0 for an export in ``HF_LEROBOT_HOME/repo_id``."""
    return training.TrainConfig(
        name="pi0_nimbus",
        model=pi0_config.Pi0Config(action_horizon=16),
        data=NimbusData(repo_id=repo_id, base_config=training.DataConfig(prompt_from_task=True)),
        num_train_steps=steps,
    )
