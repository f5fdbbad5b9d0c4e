"""Test of action views: episodes of every robot are exported in each view, read back, and played in the environment.

Run it as ``python benchmarks/action_views.py [ROBOT ...] [--episodes N] [--out DIR]``; without a robot, all shipped
robots are tested. Nothing is rendered. The table has a row for each robot with the number of successful episodes in
each view. The exit code is 1 if a rate is below 98 %.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "exts/nimbus.datagen")]

from nimbus.runner.cli import main as nimbus  # noqa: E402
from tests.support.view_replay import replay_view, views_of  # noqa: E402

REACHES = {"panda": 0.5, "ur5": 0.45, "ur10": 0.5, "xarm7": 0.45, "z1": 0.38, "baxter": 0.32}
"""Center of the area in which each robot's block starts and ends [m]."""
SHIPPED = {"so101": "so101_block", "dual_panda": "handover_block"}
"""Shipped tasks of the robots that have any."""
TASK = """\
robot: {robot}
scene: table
regions:
  start: {{on: table, center: [{x}, 0.12], size: [0.08, 0.1]}}
  goal: {{on: table, center: [{x}, -0.02], size: [0.1, 0.1]}}
objects:
  block: {{library: blocks, kinds: [red_cube, green_cube], count: 1, region: start, yaw: any}}
steps:
  - pick: block
  - place: {{object: block, on: goal}}
success:
  - on: {{object: block, support: goal}}
cameras: {{}}
randomize: medium
instructions: ["Put {{block}} on the mark."]
"""
GOAL = 0.98


def task_of(robot: str, folder: Path) -> str:
    """Return the name or path of the task with which a robot is tested."""
    if robot in SHIPPED:
        return SHIPPED[robot]
    path = folder / f"{robot}.yaml"
    path.write_text(TASK.format(robot=robot, x=REACHES[robot]))
    return str(path)


def tell(text: str) -> None:
    """Print a line at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main() -> int:
    """Test the robots and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("robots", nargs="*", default=[*REACHES, *SHIPPED])
    parser.add_argument("--episodes", type=int, default=50)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    folder = arguments.out or Path(tempfile.mkdtemp(prefix="action_views_"))
    folder.mkdir(parents=True, exist_ok=True)
    worst = 1.0
    for robot in arguments.robots:
        task, data = task_of(robot, folder), folder / robot
        words = ["run", "--serial", "--task", task, "--episodes", str(arguments.episodes), "--images", "none"]
        if (code := nimbus([*words, "--out", str(data)])) > 1:  # 1: some layouts were given up
            return code
        shares: list[str] = []
        for view in views_of(robot):
            name = f"{view.actions} {view.rotation}" if view.actions.startswith("tool") else view.actions
            reasons = [why for _, why in replay_view(data, view, task=task, out=folder / f"{robot}_{name}")]
            for why in filter(None, reasons):
                tell(f"  {robot} {name}: {why}")
            shares.append(f"{name} {reasons.count('')}/{len(reasons)}")
            worst = min(worst, reasons.count("") / len(reasons))
        tell(f"{robot}: {', '.join(shares)}")
    return int(worst < GOAL)


if __name__ == "__main__":
    sys.exit(main())
