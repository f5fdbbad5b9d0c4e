"""Flags of the commands that are asked before a run: what will not work, what it will take."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from nimbus.runner.data_flags import Add, add_json


def add_ask_commands(add: Add, *, add_skills: Callable[[argparse.ArgumentParser], None]) -> None:
    """Add the commands, each with its flags."""
    doctor = add("doctor", "say what will not work in a task, and which field to change; or look at this machine")
    doctor.add_argument("task", nargs="?", metavar="TASK", help="a task's name, or the path of its file")
    doctor.add_argument("--machine", action="store_true", help="look at Python, packages, GPU, simulators, disk")
    doctor.add_argument("--quick", action="store_true", help="attempt nothing: no forecast of yield and time")
    add_json(doctor)
    add_skills(doctor)
