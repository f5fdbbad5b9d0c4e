"""Commands about USD stages and the Isaac Sim that renders them."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from nimbus.runner.data_flags import add_json
from nimbus.runner.flags import stack, whole


def add_usd_commands(
    add: Callable[[str, str], argparse.ArgumentParser], *, add_skills: Callable[[argparse.ArgumentParser], None]
) -> None:
    """Add them to the parser.

    Args:
        add: Makes a command from its name and meaning.
        add_skills: Adds the flag for folders with skills.
    """
    export = add("export-usd", "write a layout or a stored episode as one USD stage")
    export.add_argument("task", nargs="?", metavar="TASK", help="a task's name, or the path of its file")
    export.add_argument("--seed", type=whole(0, 2**63 - 1), default=0, metavar="S", help="of the run (0)")
    export.add_argument("--index", type=whole(0, 10**7), default=0, metavar="N", help="which episode of it (0)")
    export.add_argument("--variant", type=whole(0, 10**6), default=0, metavar="N", help="which of its looks (0)")
    export.add_argument(
        "--episode", nargs=2, metavar=("DIR", "ID"), help="a stored episode in place of a task, as an animation"
    )
    export.add_argument("--out", type=Path, metavar="FILE", help="a .usda or .usdc file (<episode id>.usda)")
    add_skills(export)
    check = add("verify-isaacsim", "try what Nimbus does with the Isaac Sim of this machine: a pass/fail table")
    check.add_argument("--task", default="sort_trash", metavar="NAME", help="a task's name or path (sort_trash)")
    check.add_argument("--stack", type=stack, metavar="K", help="steps rendered together (16)")
    folder = Path("out/verify-isaacsim")
    check.add_argument("--out", type=Path, default=folder, metavar="DIR", help=f"a new folder ({folder})")
    add_json(check)
