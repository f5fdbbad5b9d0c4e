"""Flags of the commands that check, convert, certify and show datasets that are there."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from nimbus.runner.flags import one_of, sample, size, whole

LEROBOT_FORMATS = ("lerobot", "lerobot-v2.1")

Add = Callable[[str, str], argparse.ArgumentParser]


def add_data_commands(add: Add) -> None:
    """Add the commands, each with its flags."""
    _add_qa(add("qa", "check whether a dataset is fit to train on: one of Nimbus, or of LeRobot v3.0 or v2.1"))
    _add_certify(add("certify", "prove a dataset: replay, fresh renderings, labels against poses, accounting"))
    _add_convert(add("convert", "write a LeRobot dataset in another version or cut; no picture is encoded again"))
    _add_filter(add("filter", "write the episodes that meet a condition as a dataset of their own"))
    _add_view(add("view", "look at a dataset in Rerun, or draw a contact sheet of it"))
    _add_card(add("card", "write the README.md of a dataset: figures, pictures, how to load it"))


def add_folder(command: argparse.ArgumentParser) -> None:
    """The dataset that a command is about."""
    command.add_argument("folder", type=Path, metavar="DIR", help="folder of the dataset")


def add_json(command: argparse.ArgumentParser) -> None:
    """Output for machines."""
    command.add_argument("--json", action="store_true", help="print JSON")


def add_cut(command: argparse.ArgumentParser) -> None:
    """How a dataset is cut into files."""
    command.add_argument(
        "--episode-size", type=whole(1, 10**6), default=1000, metavar="N", help="episodes in a file at most (1000)"
    )
    command.add_argument(
        "--shard-size", type=size, default=10**9, metavar="SIZE", help="bytes of a file at most, such as 256MB (1GB)"
    )


def _add_qa(command: argparse.ArgumentParser) -> None:
    add_folder(command)
    command.add_argument("--html", type=Path, metavar="FILE", help="write a page with plots and pictures")
    command.add_argument("--set", action="append", default=[], metavar="NAME=X", help="a threshold, such as jump=12")
    command.add_argument("--robot", metavar="NAME", help="whose joint limits hold (that of the dataset)")
    command.add_argument("--strict", action="store_true", help="exit code 1 also for warnings")
    add_json(command)


def _add_certify(command: argparse.ArgumentParser) -> None:
    add_folder(command)
    command.add_argument(
        "--sample", type=sample, default=8, metavar="N", help="episodes that are replayed and rendered, or all (8)"
    )
    command.add_argument("--skills", type=Path, action="append", default=[], metavar="DIR", help="skills of your own")
    add_json(command)


def add_proof(command: argparse.ArgumentParser) -> None:
    """Certificates at the end of a run."""
    command.add_argument(
        "--certify", type=sample, default=0, metavar="N", help="at the end, replay and prove N episodes, or all"
    )


def _add_convert(command: argparse.ArgumentParser) -> None:
    add_folder(command)
    formats = LEROBOT_FORMATS
    command.add_argument("--to", type=one_of(formats), default=formats[0], metavar="FORMAT", help=", ".join(formats))
    command.add_argument("--out", type=Path, metavar="OUT", help="folder of the new dataset (DIR_FORMAT beside DIR)")
    add_cut(command)
    add_json(command)


def _add_filter(command: argparse.ArgumentParser) -> None:
    add_folder(command)
    command.add_argument(
        "--where", required=True, metavar="EXPR", help="such as 'success and length > 50'; unknown columns are answered"
    )
    command.add_argument("--out", type=Path, required=True, metavar="OUT", help="folder of the new dataset")
    add_json(command)


def _add_view(command: argparse.ArgumentParser) -> None:
    add_folder(command)
    command.add_argument("--episode", type=whole(0, 10**7), action="append", metavar="N", help="which (the first)")
    command.add_argument("--save", type=Path, metavar="FILE", help="a recording (.rrd) in place of a window")
    command.add_argument("--sheet", type=Path, metavar="FILE", help="a contact sheet (.png) in place of Rerun")


def _add_card(command: argparse.ArgumentParser) -> None:
    add_folder(command)
    command.add_argument("--out", type=Path, metavar="FILE", help="the card (README.md of the dataset)")
    command.add_argument("--license", default="apache-2.0", metavar="ID", help="of the dataset (apache-2.0)")
