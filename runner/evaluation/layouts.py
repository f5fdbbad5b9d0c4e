"""Layouts on which a policy is evaluated: held-out layouts, those of a run, or those of a dataset."""

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
"""Largest number of layouts of one evaluation."""
DEFAULT = 100


@dataclass(frozen=True, kw_only=True)
class Layouts:
    """Split, seed and indices of the layouts of an evaluation."""

    split: str
    seed: int
    indices: tuple[int, ...]
    steps: int = 0
    """Length of the longest stored episode of the dataset with these layouts [steps]; 0 if unknown."""
    dataset: str = ""
    """Folder of the dataset with these layouts; empty if they come from no dataset."""
    task_hash: str = ""
    """Content hash of the dataset's task."""

    @property
    def limit(self) -> int:
        """Return the step limit of an episode if the policy sets none: twice the longest demonstration."""
        return TIMES_LONGEST * self.steps or DEFAULT_LIMIT

    def compare(self, task: Task) -> None:
        """Check that the dataset's task is the evaluated task.

        Raises:
            InputError: The tasks differ, so the stored layouts cannot be drawn again.
        """
        if self.dataset and self.task_hash != task.content_hash:
            what = f"its task differs from the evaluated {task.name}: {self.task_hash}, not {task.content_hash}"
            instead = f"evaluate the task that made it, or write run:{self.seed}:{len(self.indices)}"
            raise InputError(what, where=f"--layouts train:{self.dataset}", instead=instead)


def parse_layouts(text: str, *, seed: int = 0, where: str = "--layouts") -> Layouts:
    """Parse the value of ``--layouts``.

    Args:
        text: ``100`` for held-out layouts, which no run draws; ``run:7:50`` for those of ``nimbus run --seed 7``;
            ``train:out/data`` for those of the stored dataset.
        seed: Seed of held-out layouts.
        where: Name of the flag, for messages.

    Raises:
        InputError: The text is malformed, or the dataset has no episodes.
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
            "the dataset has no episodes", where=f"--layouts train:{folder}", instead="make one with 'nimbus run' first"
        )
    return Layouts(
        split=info.inputs.get("split", RUN),
        seed=info.seed,
        indices=tuple(sorted({attempt.idx for attempt in stored})),
        steps=max(attempt.step_count for attempt in stored),
        dataset=str(folder),
        task_hash=info.task_hash,
    )
