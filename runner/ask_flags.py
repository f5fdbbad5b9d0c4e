"""Flags of the commands that are asked before a run: what will not work, what it will take."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from nimbus.runner.data_flags import Add, add_json
from nimbus.runner.flags import one_of, price, whole


def add_ask_commands(add: Add, *, add_skills: Callable[[argparse.ArgumentParser], None]) -> None:
    """Add the commands, each with its flags."""
    doctor = add("doctor", "say what will not work in a task, and which field to change; or look at this machine")
    doctor.add_argument("task", nargs="?", metavar="TASK", help="a task's name, or the path of its file")
    doctor.add_argument("--machine", action="store_true", help="look at Python, packages, GPU, simulators, disk")
    doctor.add_argument("--quick", action="store_true", help="attempt nothing: no forecast of yield and time")
    add_json(doctor)
    add_skills(doctor)
    estimate = add("estimate", "forecast time and disk of a run, from five of its episodes")
    estimate.add_argument("task", metavar="TASK", help="a task's name, or the path of its file")
    estimate.add_argument("--episodes", type=whole(1, 10**9), default=1000, metavar="N", help="of the run (1000)")
    estimate.add_argument("--seed", type=whole(0, 2**63 - 1), default=0, metavar="S", help="of the run (0)")
    estimate.add_argument("--cores", type=whole(1, 100_000), metavar="N", help="that it will have (as this machine)")
    estimate.add_argument(
        "--images", type=one_of(("lossless", "video", "both")), default="lossless", metavar="HOW", help="as in a run"
    )
    estimate.add_argument("--price-per-hour", type=price, metavar="X", help="of the machine")
    add_json(estimate)
    add_skills(estimate)
