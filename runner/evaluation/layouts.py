"""Layouts that a policy is evaluated on: held out, of a run, or those of a dataset."""

from __future__ import annotations

import re
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from nimbus.datagen.errors import InputError
from nimbus.datagen.policies.policy import DEFAULT_LIMIT, TIMES_LONGEST
from nimbus.datagen.random_streams import EVALUATION, RUN
from nimbus.datagen.store.info import read_single_task_info
from nimbus.datagen.store.ledger.ledger import Ledger
from nimbus.datagen.tasks.task import Task

_SPELLING = "write a number, run:SEED, run:SEED:NUMBER, or train:DATASET"
_MOST = 100_000
"""Layouts of one evaluation."""
DEFAULT = 100


@dataclass(frozen=True, kw_only=True)
class Layouts:
    """Addresses of the layouts of an evaluation."""

    split: str
    seed: int
    indices: tuple[int, ...]
    steps: int = 0
    """Longest stored episode of the dataset that they come from; 0: not known."""
    dataset: str = ""
    """Folder of that dataset; empty: they come from none."""
    task_hash: str = ""
    """Content hash of that dataset's task."""

    @property
    def limit(self) -> int:
        """Steps of an episode at most, where the policy states none: twice the longest demonstration."""
        return TIMES_LONGEST * self.steps or DEFAULT_LIMIT

    def compare(self, task: Task) -> None:
        """Compare the task of the dataset with the one that is evaluated.

        Raises:
            InputError: It is another one: the stored layouts would not be drawn again.
        """
        if self.dataset and self.task_hash != task.content_hash:
            what = f"its task is not {task.name} as it is evaluated: {self.task_hash}, not {task.content_hash}"
            instead = f"evaluate the task that made it, or write run:{self.seed}:{len(self.indices)}"
            raise InputError(what, where=f"--layouts train:{self.dataset}", instead=instead)


def parse_layouts(text: str, *, seed: int = 0, where: str = "--layouts") -> Layouts:
    """Find the layouts that ``--layouts`` names.

    Args:
        text: ``100``: held-out ones, that no seed of a run draws; ``run:7:50``: those of ``nimbus run --seed 7``;
            ``train:out/data``: those that are stored there.
        seed: Of held-out layouts.
        where: Flag, for messages.

    Raises:
        InputError: It names none.
    """
    if text.startswith("train:"):
        return _stored(Path(text.removeprefix("train:")))
    if found := re.fullmatch(r"run:([0-9]{1,18})(?::([0-9]{1,18}))?", text):
        return Layouts(split=RUN, seed=int(found[1]), indices=_first(found[2] or str(DEFAULT), where=where))
    return Layouts(split=EVALUATION, seed=seed, indices=_first(text, where=where))


def _first(text: str, *, where: str) -> tuple[int, ...]:
    if not re.fullmatch("[0-9]{1,18}", text) or not 1 <= int(text) <= _MOST:
        raise InputError(f"'{text}' is not a number of layouts from 1 to {_MOST}", where=where, instead=_SPELLING)
    return tuple(range(int(text)))


def _stored(folder: Path) -> Layouts:
    info = read_single_task_info(folder)
    with closing(Ledger(folder, read_only=True)) as ledger:
        stored = ledger.stored()
    if not stored:
        raise InputError(
            "it holds no episode", where=f"--layouts train:{folder}", instead="make one with 'nimbus run' first"
        )
    return Layouts(
        split=info.inputs.get("split", RUN),
        seed=info.seed,
        indices=tuple(sorted({attempt.idx for attempt in stored})),
        steps=max(attempt.step_count for attempt in stored),
        dataset=str(folder),
        task_hash=info.task_hash,
    )
