"""A state-based policy, trained once per dataset of demonstrations and settings."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.bounded import read_typed
from nimbus.datagen.files.codec import to_json
from nimbus.datagen.store.ledger.ledger import Ledger
from nimbus.datagen.store.publish import replace_text
from nimbus.runner.system.output import shown_path

if TYPE_CHECKING:
    from nimbus.datagen.policies.perceptron import TrainingSettings

NAME = "training.json"


@dataclass(frozen=True, kw_only=True)
class TrainingLog:
    """Record of a training run, stored beside its policy."""

    inputs: str
    """Hash of the demonstrations and the settings; a policy with another hash is trained again."""
    episode_count: int
    row_count: int
    losses: tuple[tuple[int, float], ...]
    """Pairs of step and loss, about 20."""


def train_on(
    data: Path, folder: Path, *, settings: TrainingSettings, report: Callable[[str], None] | None = None
) -> TrainingLog:
    """Train a policy on the stored episodes of a dataset, unless the folder already holds this policy.

    Args:
        data: The dataset.
        folder: Folder of the policy.
        settings: Size of the network and further settings of the training run.
        report: Called with lines about the progress: at the start, about ten times during the training, at the end.

    Raises:
        InputError: The dataset has no stored episode.
    """
    from nimbus.datagen.policies.state_training import Demonstrations, train_state_policy, write_state_policy
    from nimbus.datagen.policies.trained_policy import generated_policy

    with closing(Ledger(data, read_only=True)) as ledger:
        digests = sorted(attempt.sha256 for attempt in ledger.stored())
    if not digests:
        raise InputError("no demonstration was stored", where=str(data), instead="see the reasons in its report.html")
    inputs = hashlib.sha256(to_json([digests, settings]).encode()).hexdigest()[:16]
    # A folder of others may have another policy.py, which the user would take for the result of this training.
    if (
        generated_policy(folder)
        and (folder / NAME).is_file()
        and (known := read_typed(TrainingLog, folder / NAME)).inputs == inputs
    ):
        _tell(report, f"the policy in {shown_path(folder)} was trained on these demonstrations")
        return known
    rows = Demonstrations.read(data)
    _tell(report, f"{rows.episode_count} episodes, {len(rows.inputs)} rows; a short training chooses the inputs")
    losses: list[tuple[int, float]] = []

    def note(step: int, loss: float) -> None:
        """Record a loss; every second one is reported."""
        losses.append((step, round(loss, 5)))
        if len(losses) % 2:
            _tell(report, f"step {step} of {settings.steps}, loss {loss:.3f}")

    weights = train_state_policy(rows, settings=settings, report=note)
    write_state_policy(folder, weights, replace(rows.settings, dataset=inputs))
    training = TrainingLog(
        inputs=inputs, episode_count=rows.episode_count, row_count=len(rows.inputs), losses=tuple(losses)
    )
    replace_text(folder / NAME, to_json(training) + "\n")
    _tell(report, f"policy: {shown_path(folder)}")
    return training


def _tell(report: Callable[[str], None] | None, text: str) -> None:
    if report:
        report(text)
