"""Modalities of GR00T N1.7 for exports to ``lerobot-v2.1`` of one arm, with cameras ``front`` and ``wrist``.

The export's ``meta/modality.json`` names the parts. Give this file as ``--modality-config-path`` to GR00T's
``stats.py``, ``launch_finetune.py`` and ``run_gr00t_server.py``; see docs/training.md.
"""

# pyright: reportMissingImports=false
from __future__ import annotations

from gr00t.configs.data.embodiment_configs import register_modality_config
from gr00t.data.types import ActionConfig, ActionFormat, ActionRepresentation, ActionType, ModalityConfig

HORIZON = 16
"""Number of actions in an answer."""
ABSOLUTE = ActionConfig(rep=ActionRepresentation.ABSOLUTE, type=ActionType.NON_EEF, format=ActionFormat.DEFAULT)
PARTS = ["arm", "gripper"]

register_modality_config(
    {
        "video": ModalityConfig(delta_indices=[0], modality_keys=["front", "wrist"]),
        "state": ModalityConfig(delta_indices=[0], modality_keys=PARTS),
        "action": ModalityConfig(
            delta_indices=list(range(HORIZON)), modality_keys=PARTS, action_configs=[ABSOLUTE] * len(PARTS)
        ),
        "language": ModalityConfig(delta_indices=[0], modality_keys=["annotation.human.task_description"]),
    }
)
