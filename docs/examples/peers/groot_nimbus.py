"""Data config of GR00T N1.5 for exports to ``lerobot-v2.1`` of one arm, with cameras ``front`` and ``wrist``.

The export's ``meta/modality.json`` names the parts. For poses of the tool, export with ``--actions tool_pose`` and put
:data:`TOOL` in the place of ``action_keys``; that file also names the form of rotations.
"""

# pyright: reportMissingImports=false, reportUntypedBaseClass=false
from __future__ import annotations

from gr00t.experiment.data_config import So100DataConfig

TOOL = ["action.eef_position", "action.eef_rotation", "action.gripper"]


class NimbusDataConfig(So100DataConfig):
    """Names of an export's parts; transforms are those of other single arms."""

    video_keys = ["video.front", "video.wrist"]
    state_keys = ["state.arm", "state.gripper"]
    action_keys = ["action.arm", "action.gripper"]
    language_keys = ["annotation.human.task_description"]
    observation_indices = [0]
    action_indices = list(range(16))
