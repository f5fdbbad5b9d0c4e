"""Makes ``docs/examples/report.html``: a run of ``pick_and_place`` with ``randomize: large`` on an idle machine.

Run it as ``python docs/make_example_report.py [OUT.html] [--episodes N] [--force]``; the dataset is deleted.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TASK = "pick_and_place"
MAX_LOAD = 0.5
"""Largest load average of the last minute; a higher load would affect all times in the report."""


def task_text() -> str:
    """Read the task and replace its randomization."""
    text = (ROOT / "scenes/tasks" / f"{TASK}.yaml").read_text(encoding="utf-8")
    without = re.sub(r"^randomize:.*?(?=^\S)", "", text, flags=re.MULTILINE | re.DOTALL)
    return f"{without}randomize: large\n"


def make_report(out: Path, *, episodes: int) -> int:
    """Run the task and keep the report.

    Args:
        out: File of the report.
        episodes: Number of stored episodes.

    Returns:
        Exit code of the run.
    """
    with tempfile.TemporaryDirectory() as folder:
        task, data = Path(folder, f"{TASK}.yaml"), Path(folder, "data")
        task.write_text(task_text(), encoding="utf-8")
        run = [sys.executable, str(ROOT / "runner/runner.py"), "run", "--task", str(task), "--out", str(data)]
        done = subprocess.run([*run, "--episodes", str(episodes)])
        if not done.returncode:
            shutil.copy(data / "report.html", out)
        return done.returncode


def main() -> int:
    """Make the report, unless other work would falsify its times."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", nargs="?", type=Path, default=ROOT / "docs/examples/report.html")
    parser.add_argument("--episodes", type=int, default=28)
    parser.add_argument("--force", action="store_true", help="also on a busy machine")
    arguments = parser.parse_args()
    load = os.getloadavg()[0]
    if load > MAX_LOAD and not arguments.force:
        sys.stderr.write(f"the machine is busy (load {load:.1f}, at most {MAX_LOAD}): wait, or give --force\n")
        return 1
    return make_report(arguments.out, episodes=arguments.episodes)


if __name__ == "__main__":
    sys.exit(main())
