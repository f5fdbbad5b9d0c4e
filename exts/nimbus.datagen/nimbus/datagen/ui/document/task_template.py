"""Template of a new task: the smallest task that runs."""

from __future__ import annotations

BLANK_TASK = """\
# What the robot does, in one line.
robot: panda
scene: table
regions:
  start: {on: table, center: [0.5, 0.0], size: [0.3, 0.3]}    # x, y [m]
objects:
  things: {library: blocks, region: start}
steps:
  - home
success:
  - gripper_clear
cameras: front+wrist
randomize: small
instructions: ["Say here what the robot does."]
"""


def with_template(text: str) -> str:
    """Return the text of a task file; a file without content gets the template, after its comments."""
    lines = [line.strip() for line in text.splitlines()]
    if any(line and not line.startswith("#") for line in lines):
        return text
    kept = text if not text or text.endswith("\n") else text + "\n"
    return kept + (BLANK_TASK.partition("\n")[2] if any(lines) else BLANK_TASK)
