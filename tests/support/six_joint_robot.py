"""A user's robot: joints j1 to j6, a palm, and two sliding fingers."""

from __future__ import annotations

_FILE = """name: {name}
urdf: {model}
arm: {{joints: [j1, j2, j3, j4, j5, j6], home: [0, 0.4, 1.3, 0, 1.4, 0]}}
tool: {{link: palm, position: [0.0, 0.0, 0.09]}}
gripper:
  {{joints: [left, right], links: [palm, finger_l, finger_r], fingers: [finger_l, finger_r], open: 0.04, closed: 0.0,
   effort_limit: 15.0, stiffness: 1500.0, damping: 40.0, armature: 0.2,
   pad_width: 0.02, pad_height: 0.02, finger_thickness: 0.01, finger_depth: 0.05}}
"""


def robot_file(name: str, *, model: str) -> str:
    """Return the text of its robot file.

    Args:
        name: Name of the robot in tasks.
        model: Path of its model, relative to the robot file.
    """
    return _FILE.format(name=name, model=model)
