"""Flags and arguments that several commands share, and the parsers of their values."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from nimbus.datagen.errors import InputError, suggest
from nimbus.runner.cell.transport.spec import MOST_WORKERS
from nimbus.runner.cluster.cluster_address import ClusterAddress, parse_cluster
from nimbus.runner.commands.parser import DatasetAddress, new_path, path

if TYPE_CHECKING:
    from nimbus.datagen.language_model.client import LanguageModel

_REPLIES = "replies"
"""Folder with the questions to a model and its replies."""
IMAGES = ("lossless", "video", "both", "none")
ACTIONS = ("joint", "joint_relative", "tool_pose", "tool_delta")
ROTATIONS = ("6d", "quaternion", "euler")
STATES = ("measured", "commanded")
LEROBOT_FORMATS = ("lerobot", "lerobot-v2.1")
SIMULATORS = ("newton", "isaacsim")
PLANNERS = ("ompl", "curobo")
DEVICES = ("cpu", "cuda")
ROLES = ("dynamic", "fixed", "fused")


def whole(low: int, high: int) -> Callable[[str], int]:
    """Make the parser of a whole number from ``low`` to ``high``."""

    def parse(text: str) -> int:
        if not re.fullmatch(r"[-+]?[0-9]{1,20}", text) or not low <= int(text) <= high:
            raise ValueError(f"expected a whole number from {low} to {high}, found '{text}'")
        return int(text)

    return parse


@dataclass(frozen=True)
class RunPart:
    """Part of a run: its number, from 1, and the number of parts."""

    number: int = 1
    count: int = 1


def parse_part(text: str) -> RunPart:
    """Parse the number of a part and the number of parts, such as ``2/5``."""
    match = re.fullmatch(r"([0-9]{1,6})/([0-9]{1,6})", text)
    if match is None or not 1 <= int(match[1]) <= int(match[2]):
        raise ValueError(f"expected K/N, such as 2/5 for the second of five parts, found '{text}'")
    return RunPart(int(match[1]), int(match[2]))


@dataclass(frozen=True)
class CountRange:
    """Smallest and largest count, the value of ``M..N``."""

    least: int
    most: int


def count_range(text: str) -> CountRange:
    """Parse a range of counts such as ``2..40``, or one count."""
    match = re.fullmatch(r"([0-9]{1,5})(?:\.\.([0-9]{1,5}))?", text)
    if match is None or not 1 <= int(match[1]) <= int(match[2] or match[1]) <= 16_384:
        raise ValueError(f"expected M..N such as 2..40, from 1 to 16384, found '{text}'")
    return CountRange(int(match[1]), int(match[2] or match[1]))


def one_of(known: tuple[str, ...]) -> Callable[[str], str]:
    """Make the parser of one of several names."""

    def parse(text: str) -> str:
        if text not in known:
            raise ValueError(f"unknown '{text}'; {suggest(text, known)}")
        return text

    return parse


def sample(text: str) -> int | None:
    """Parse a number of episodes; return None for ``all``."""
    return None if text == "all" else whole(1, 10**7)(text)


def stack(text: str) -> int | None:
    """Parse a number of time steps that are rendered together; return None for ``auto``."""
    return None if text == "auto" else whole(1, 4096)(text)


def price(text: str) -> float:
    """Parse an amount of money."""
    if not re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?", text):
        raise ValueError(f"expected a price such as 0.85, found '{text}'")
    return float(text)


def size(text: str) -> int:
    """Parse a size such as ``256MB`` [bytes]."""
    match = re.fullmatch(r"([0-9]{1,6})(MB|GB)", text)
    if match is None or not int(match[1]):
        raise ValueError(f"expected a size such as 256MB or 1GB, found '{text}'")
    return int(match[1]) * {"MB": 10**6, "GB": 10**9}[match[2]]


def dataset_place(text: str) -> Path | DatasetAddress:
    """Parse the folder or the address of a dataset; an address is opened when the command runs."""
    return DatasetAddress(text) if "://" in text else path(text)


def run_place(text: str) -> Path | DatasetAddress:
    """Parse the folder or the address of a dataset of which only the status is needed."""
    return DatasetAddress(text, may_be_empty=True) if "://" in text else path(text)


# Each flag with a value has a parser, also for paths and text, because nothing else converts the words.
DatasetFolder = Annotated[
    Path, typer.Argument(metavar="DIR", parser=dataset_place, help="folder of the dataset, or its address (s3://…)")
]
RunFolder = Annotated[
    Path, typer.Argument(metavar="DIR", parser=run_place, help="folder of the dataset, or its address (s3://…)")
]
AsJson = Annotated[bool, typer.Option("--json", help="print JSON")]
ModelName = Annotated[
    str, typer.Option("--model-name", metavar="NAME", parser=str, help="model (needed if the server has several)")
]
Budget = Annotated[
    int,
    typer.Option(
        "--budget", metavar="N", parser=whole(1, 10**9), help="budget of tokens for all questions and replies"
    ),
]
Replay = Annotated[
    Path | None,
    typer.Option("--replay", metavar="DIR", parser=path, help="replies of an earlier run, in place of a server"),
]
Skills = Annotated[
    list[Path] | None, typer.Option("--skills", metavar="DIR", parser=path, help="a folder with custom skills")
]
StoredTask = Annotated[
    str | None,
    typer.Option(
        "--task",
        metavar="NAME",
        parser=str,
        help="your file of the episodes' task, if another user made them; it names the files to open",
    ),
]
Robot = Annotated[
    str,
    typer.Option(
        "--robot",
        metavar="NAME",
        parser=str,
        help="name or file of a robot, in place of the task's",
        show_default=False,
    ),
]
Seed = Annotated[int, typer.Option("--seed", metavar="S", parser=whole(0, 2**63 - 1), help="seed of the whole run")]
Images = Annotated[
    Literal["lossless", "video", "both", "none"],
    typer.Option(
        "--images",
        metavar="HOW",
        parser=one_of(IMAGES),
        help="lossless: in the episode's file, bit for bit; video: one H.264 MP4 per camera; both; none: no cameras",
    ),
]
Price = Annotated[
    float | None,
    typer.Option(
        "--price-per-hour",
        metavar="X",
        parser=price,
        help="price of an hour of the machine; the output then states the cost of an episode",
    ),
]
Device = Annotated[
    str, typer.Option("--device", metavar="NAME", parser=one_of(DEVICES), help="device that renders: cpu, cuda")
]
Gpus = Annotated[
    str | None,
    typer.Option(
        "--gpus",
        metavar="all|0,2|UUID,…",
        parser=str,
        help="GPUs for --device cuda or --sim isaacsim, by number or UUID (all)",
    ),
]
Stack = Annotated[
    int | None,
    typer.Option("--stack", metavar="K", parser=stack, help="number of time steps rendered in one launch (auto)"),
]
EpisodeSize = Annotated[
    int,
    typer.Option("--episode-size", metavar="N", parser=whole(1, 10**6), help="largest number of episodes in a file"),
]
ShardSize = Annotated[
    int,
    typer.Option(
        "--shard-size",
        metavar="SIZE",
        parser=size,
        show_default="1GB",
        help="largest size of a file, such as 256MB",
    ),
]
NewFolder = Annotated[
    Path, typer.Option("--out", metavar="OUT", parser=new_path, help="folder of the output", show_default=False)
]


TokenFile = Annotated[
    Path | None,
    typer.Option(
        "--token-file",
        metavar="FILE",
        parser=path,
        help="store the server's token in a file until the server ends, for programs such as Prometheus",
    ),
]
Serial = Annotated[bool, typer.Option("--serial", help="run everything in this process")]
Execute = Annotated[
    int,
    typer.Option("--execute", metavar="K", parser=whole(1, 1000), help="number of actions executed from each answer"),
]
Videos = Annotated[
    int,
    typer.Option(
        "--videos", metavar="N", parser=whole(0, 1000), help="number of failures, and of successes, to render"
    ),
]


@dataclass(frozen=True)
class WorkerSplit:
    """Value of ``PxR``: planners and renderers."""

    counts: tuple[int, int] | None
    """Planners and renderers; None to choose by the number of cores."""


def worker_split(text: str) -> WorkerSplit:
    """Parse planners and renderers such as ``2x1``, or ``auto``."""
    if text == "auto":
        return WorkerSplit(None)
    match = re.fullmatch(r"([0-9]{1,4})x([0-9]{1,4})", text)
    if match is None or not int(match[1]) or not int(match[2]):
        raise ValueError(f"expected 'auto' or planners x renderers such as 2x1, found '{text}'")
    planners, renderers = int(match[1]), int(match[2])
    if planners + renderers > MOST_WORKERS:
        raise ValueError(f"{text} means {planners + renderers} workers; the limit is {MOST_WORKERS}")
    return WorkerSplit((planners, renderers))


Cluster = Annotated[
    ClusterAddress | None,
    typer.Option(
        "--cluster",
        metavar="PLACE",
        parser=parse_cluster,
        help="share the work over nodes, each with a cell: local:N on this machine; auto, ray://HOST:10001 or "
        "http://HOST:8265 on a Ray cluster",
    ),
]

Workers = Annotated[
    WorkerSplit | None,
    typer.Option(
        "--workers", metavar="PxR", parser=worker_split, help="number of planners P and of renderers R (auto)"
    ),
]


def open_model(url: str, name: str, budget: int, replay: Path | None, out: Path) -> LanguageModel:
    """Open a language model, or the replies that an earlier run stored."""
    from nimbus.datagen.files.asset_folders import file_in
    from nimbus.datagen.language_model.client import LanguageModel, Limits
    from nimbus.datagen.language_model.exchange import Address
    from nimbus.datagen.language_model.records import RecordFolder

    limits = Limits(budget=budget)
    if replay is None:
        return LanguageModel(RecordFolder(file_in(out, _REPLIES)), Address.from_environment(url), name, limits)
    if url:
        raise InputError("stored replies need no model", where="--replay", instead="leave --model out")
    inside = file_in(replay, _REPLIES)
    return LanguageModel(RecordFolder(inside if inside.is_dir() else replay, is_complete=True), limits=limits)
